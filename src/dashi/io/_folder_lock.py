"""One run at a time in a folder: a lock of the system, which goes with the process that holds it, however that ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from dashi.errors import FileError
from dashi.io._files import unwritable
from dashi.io._locks import BUSY, has_locks, try_lock


@contextlib.contextmanager
def locked(folder: Path) -> Generator[None]:
    """A folder, made where it is not there, that no other run has meanwhile. The lock is the folder's own: no file is
    left behind. Systems and disks that have no such locks go without."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY) if has_locks() else None
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        if handle is not None and try_lock(handle) == BUSY:
            raise FileError(f"another run is at work in {folder}.", "wait for it, or choose another with `out=`.")
        yield
    finally:
        if handle is not None:
            os.close(handle)
