"""Files that dashi keeps between runs and can rebuild: a digest, then the bytes. Whatever is odd about one, it is
ignored and written anew: a cache may lie where others write, and must never be believed more than the driver."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from dashi._atomic_file import replace_file

_DIGEST: Final = 32
_LARGEST: Final = 256 << 20
_NOWHERE: Final = Path(os.devnull) / "dashi"
"""A folder that cannot be: nothing is read from there, and nothing written."""


def cache_folder() -> Path:
    """Where dashi keeps what it can rebuild: DASHI_CACHE_DIR, else the user's cache folder; a private folder among
    temporary files for users who have no home."""
    chosen = os.environ.get("DASHI_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "dashi"
    try:
        return Path.home() / ".cache" / "dashi"
    except RuntimeError:
        return _temporary_folder()


def _temporary_folder() -> Path:
    """A folder of this user's among temporary files, or nowhere, if somebody else was there first."""
    if not hasattr(os, "getuid"):
        return _NOWHERE  # such systems do not say whose a folder is
    with contextlib.suppress(OSError):
        folder = Path(tempfile.gettempdir()) / f"dashi-{os.getuid()}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        about = folder.lstat()
        if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077:
            return folder
    return _NOWHERE


def read_cache(path: Path) -> bytes:
    """The cached bytes, or nothing if the file is missing, damaged, not a plain file, too large, or not ours."""
    # Neither a link nor a pipe: the first leads anywhere, the second would be waited for.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST or not _trusted(about):
                return b""
            data = file.read(about.st_size)
    except (OSError, ValueError):
        return b""
    body = data[_DIGEST:]
    return body if hashlib.sha256(body).digest() == data[:_DIGEST] else b""


def _trusted(about: os.stat_result) -> bool:
    """Whether a file is this user's, or root's."""
    return not hasattr(os, "geteuid") or about.st_uid in (os.geteuid(), 0)


def write_cache(path: Path, body: bytes) -> str:
    """Writes atomically; a cache that cannot be written is not an error. Returns why it could not be, or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, hashlib.sha256(body).digest() + body)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def read_number(path: Path, least: int, most: int) -> int | None:
    """A cached number, or None if there is none within these bounds."""
    with contextlib.suppress(ValueError):
        value = int(read_cache(path).decode("ascii"))
        return value if least <= value <= most else None
    return None
