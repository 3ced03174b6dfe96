"""What is written beside its place and renamed into it: `.NAME.part`, locked by the process that fills it.

A process that is killed leaves that one name behind, and whoever writes NAME next takes it over. The lock tells such a
leftover from what another process fills at the same time; that process gets another name, `.NAME-xxxxxxxx.part`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

from dashi.io._locks import BUSY, FREE, try_lock

_PART: Final = re.compile(r"\.(?P<name>.+?)(?:-[a-z0-9_]{8})?\.part", re.DOTALL)
_ATTEMPTS: Final = 8
_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE: Final = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def part_of(path: Path) -> Path:
    """Where a file or folder is filled that will be `path`."""
    return path.with_name(f".{path.name}.part")


def named_by(part: str) -> str | None:
    """The NAME that a part is of; None if it is the name of no part."""
    match = _PART.fullmatch(part)
    return match["name"] if match else None


def open_part(path: Path) -> tuple[int, Path]:
    """An empty file to fill, which nobody else has: a handle, which holds its lock, and its name."""
    part = part_of(path)
    for _ in range(_ATTEMPTS):
        try:
            handle, fresh = _create(part)
        except FileNotFoundError:
            if part.parent.is_dir():
                continue  # somebody removed or renamed it just now
            raise
        except OSError:
            break  # a link, a folder, somebody else's file: not ours to fill
        lock = try_lock(handle)
        if (lock == FREE or (fresh and lock != BUSY)) and _is(handle, part):
            os.ftruncate(handle, 0)
            return handle, part
        os.close(handle)
        if lock != FREE:
            break
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part")
    try_lock(handle)
    return handle, Path(name)


def _create(part: Path) -> tuple[int, bool]:
    """The handle of a part, and whether it was not there before."""
    with contextlib.suppress(FileExistsError):
        return os.open(part, _WRITE | os.O_CREAT | os.O_EXCL, 0o600), True
    return os.open(part, _WRITE), False


def _is(handle: int, part: Path) -> bool:
    """Whether a handle is of the ordinary file that has this name now, and no other name."""
    mine = os.fstat(handle)
    try:
        there = os.lstat(part)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(mine.st_mode) and mine.st_nlink == 1 and os.path.samestat(mine, there)


def remove_stale(part: Path) -> None:
    """Removes a part that a process left which is gone; one that is being filled stays, and so does a link."""
    try:
        handle = os.open(part, _READ)
    except OSError:
        return  # gone, a link, or not ours to look at
    try:
        mode = os.fstat(handle).st_mode
        if try_lock(handle) == BUSY:
            return
        if stat.S_ISDIR(mode):
            shutil.rmtree(part, ignore_errors=True)
        elif _is(handle, part):
            part.unlink(missing_ok=True)
    finally:
        os.close(handle)


def remove_stale_parts(path: Path) -> None:
    """Removes what processes that are gone left of `path`, under all names that parts have."""
    for entry in list(path.parent.iterdir()) if path.parent.is_dir() else ():
        if named_by(entry.name) == path.name:
            remove_stale(entry)


def remove(path: Path) -> None:
    """Removes a file, a link or a folder; a folder under the name of a part first, so that nobody sees half of it."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        path.unlink()
        return
    part = part_of(path)
    if os.path.lexists(part):
        remove_part(part)
    os.rename(path, part)
    shutil.rmtree(part)


def remove_part(part: Path) -> None:
    """Removes a part, whatever it is."""
    if stat.S_ISDIR(os.lstat(part).st_mode):
        shutil.rmtree(part)
    else:
        part.unlink()
