"""Files that are either the old ones or the new ones: written beside their place, made durable, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO, Final

from dashi.errors import FileError

_FIXES: Final = {
    errno.ENOSPC: "make room on that disk, or write to another one.",
    errno.EDQUOT: "make room within your quota, or write to another place.",
    errno.EACCES: "get permission to write there, or choose another place.",
    errno.EPERM: "get permission to write there, or choose another place.",
    errno.EPIPE: "let whoever reads it read to the end.",
    errno.EROFS: "choose a place that is not read-only.",
}


def write_atomic(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Fills a new file and puts it in the place of `path`. Whatever fails, the old file stays as it was."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            # A device or a pipe is written to; it is not a file that another could replace. A folder refuses.
            with path.open("wb") as file:
                write(file)
        else:
            _write_beside(path.resolve() if path.is_symlink() else path, write)
    except OSError as error:
        raise unwritable(path, error) from error


def write_text(path: Path, text: str) -> None:
    """A text file, all or nothing."""
    write_atomic(path, lambda file: _all(file, text.encode()))


def _all(file: IO[bytes], data: bytes) -> None:
    file.write(data)


def _write_beside(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~umask())  # temporary files are private; this one becomes an ordinary one
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes renames in a folder durable, where the file system knows how."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def umask() -> int:
    """The process' mask of permissions, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def unwritable(path: Path | str, error: OSError) -> FileError:
    """The error for a place that cannot be written, with the fix that fits the cause."""
    why = error.strerror or str(error)
    return FileError(f"{path} cannot be written: {why}.", _FIXES.get(error.errno or 0, "choose another place."))


def require_place(path: Path) -> None:
    """Refuses a place where no file can be written, before the work that would fill it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        # A file is replaced, for which its folder must be open; a device or a pipe is written to.
        if not os.access(path if path.exists() and not path.is_file() else path.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise unwritable(path, error) from error


@contextlib.contextmanager
def open_plain(path: Path, limit: int) -> Generator[tuple[IO[bytes], int]]:
    """An ordinary file for reading, and its size; devices, pipes and files above the limit are refused unread."""
    try:
        # Not blocking: a pipe without a writer would wait for ever before its kind can be seen.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError as error:
        raise FileError(f"there is no file {path}.", "correct the path.") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise FileError(f"{path} cannot be read: {why}.", "correct the path, or get permission to read it.") from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise FileError(f"{path} is not an ordinary file.", "name a file.")
    with os.fdopen(handle, "rb") as file:
        if status.st_size > limit:
            raise FileError(f"{path} has {status.st_size} bytes; at most {limit} are read.", "name a smaller file.")
        yield file, status.st_size
