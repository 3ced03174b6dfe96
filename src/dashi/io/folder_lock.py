"""One run at a time in a folder: a lock of the system, which goes with the process that holds it, however that ends."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

from dashi.errors import FileError
from dashi.io.files import unwritable


@contextlib.contextmanager
def locked(folder: Path) -> Generator[None]:
    """A folder, made where it is not there, that no other run has meanwhile. The lock is the folder's own: no file is
    left behind. Systems and disks that have no such locks go without."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        system = _system()
        handle = os.open(folder, os.O_RDONLY) if system else None
    except OSError as error:
        raise unwritable(folder, error) from error
    if system is None or handle is None:
        yield
        return
    try:
        try:
            system.flock(handle, system.LOCK_EX | system.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                what = f"another run is at work in {folder}."
                raise FileError(what, "wait for it, or choose another with --out.") from error
        yield
    finally:
        os.close(handle)


def _system() -> ModuleType | None:
    """The module that knows of locks; Windows has none."""
    try:
        return importlib.import_module("fcntl")
    except ImportError:
        return None
