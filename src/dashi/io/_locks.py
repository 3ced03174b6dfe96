"""Locks of the system on open files and folders: each goes with the process that holds it, however that ends."""

from __future__ import annotations

import errno
import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import Final

FREE: Final = "free"
BUSY: Final = "busy"
UNKNOWN: Final = "unknown"
"""Systems and disks that have no such locks."""


def try_lock(handle: int) -> str:
    """Locks an open file or folder until the handle is closed, if nobody else has it: what became of that."""
    system = _system()
    if system is None:
        return UNKNOWN
    try:
        system.flock(handle, system.LOCK_EX | system.LOCK_NB)
    except OSError as error:
        return BUSY if error.errno in (errno.EAGAIN, errno.EACCES) else UNKNOWN
    return FREE


def open_folder(folder: Path) -> int:
    """A handle to lock a folder by; one that stands for nothing on systems without locks, which open no folders."""
    return os.open(folder if has_locks() else os.devnull, os.O_RDONLY)


def has_locks() -> bool:
    """Whether this system knows of locks."""
    return _system() is not None


def _system() -> ModuleType | None:
    """The module that knows of locks; Windows has none."""
    try:
        return importlib.import_module("fcntl")
    except ImportError:
        return None
