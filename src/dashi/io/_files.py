"""Files that are either the old ones or the new ones: written beside their place, made durable, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Final, TypeVar

from dashi.errors import DashiError, FileError
from dashi.io._locks import has_locks
from dashi.io._memory import out_of_memory, require_room
from dashi.io._parts import open_part, remove_stale_parts

Result = TypeVar("Result")
MARK: Final = ".dashi-run"
"""The file that makes a folder that of a run."""
PARSED: Final = 30
"""Bytes of Python's objects for a byte of JSON, where it is all brackets: an empty list takes 56."""
_AT_A_TIME: Final = 8
"""Files that are written at the same time."""
_UMASK: Final = threading.Lock()
_FIXES: Final = {
    errno.ENOSPC: "make room on that disk, or write to another one.",
    errno.EDQUOT: "make room within your quota, or write to another place.",
    errno.EACCES: "get permission to write there, or choose another place.",
    errno.EPERM: "get permission to write there, or choose another place.",
    errno.EPIPE: "let whoever reads it read to the end.",
    errno.EROFS: "choose a place that is not read-only.",
}


def write_atomic(path: Path, write: Callable[[IO[bytes]], None], *, durable: bool = True) -> None:
    """Fills a new file and puts it in the place of `path`. Whatever fails, the old file stays as it was. A link is
    followed; in the folder of a run, which may come from anyone, it is replaced. Without `durable` it outlives this
    process, and a loss of power only after `make_durable`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path.parent / MARK):
            _write_beside(path, write, durable)
        elif path.exists() and not path.is_file():
            # A device or a pipe is written to; it is not a file that another could replace. A folder refuses.
            with path.open("wb") as file:
                write(file)
        else:
            _write_beside(path.resolve() if path.is_symlink() else path, write, durable)
    except OSError as error:
        raise unwritable(path, error) from error


def write_text(path: Path, text: str) -> None:
    """A text file, all or nothing."""
    write_atomic(path, lambda file: _all(file, text.encode()))


def _all(file: IO[bytes], data: bytes) -> None:
    file.write(data)


def make_durable(path: Path) -> None:
    """Waits until a file that was written, and its name, are on the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise unwritable(path, error) from error
    sync_folder(path.parent)


def _write_beside(path: Path, write: Callable[[IO[bytes]], None], durable: bool) -> None:
    handle, part = open_part(path)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
            os.chmod(part, 0o666 & ~umask())  # temporary files are private; this one becomes an ordinary one
            if not has_locks():
                file.close()  # such systems do not rename what is open
            os.replace(part, path)  # with its lock: nobody takes it for a leftover
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if durable:
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
    """The process' mask of permissions, which can only be read by setting it: by one thread at a time."""
    with _UMASK:
        mask = os.umask(0o022)
        os.umask(mask)
    return mask


def do_together(pieces: Sequence[Callable[[], Result]]) -> list[Result]:
    """What pieces of work give that wait for the disk, several at a time: a disk makes many files durable for little
    more than the price of one. All are done before the first error is raised."""
    with ThreadPoolExecutor(max(1, min(len(pieces), _AT_A_TIME)), "dashi files") as pool:
        done = [pool.submit(piece) for piece in pieces]
    return [one.result() for one in done]


def unwritable(path: Path | str, error: OSError) -> FileError:
    """The error for a place that cannot be written, with the fix that fits the cause."""
    why = error.strerror or str(error)
    return FileError(f"{path} cannot be written: {why}.", _FIXES.get(error.errno or 0, "choose another place."))


def require_writable(path: Path, *, folder: bool = False) -> None:
    """Refuses, before the work that would fill it, a file or folder that cannot be written where it is to lie. Nothing
    is left behind."""
    try:
        if not folder and path.exists() and not path.is_file() and not path.is_dir():
            # A device or a pipe is written to, not replaced. To open one could wait for ever, or wake its reader.
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        if path.is_symlink():
            # What a link leads to is replaced, not the link; its folder is not made.
            path = path.resolve(strict=False)
            if not path.parent.is_dir():
                raise FileError(f"the link to {path} leads nowhere.", "choose another place.")
        there = path if folder and path.is_dir() else nearest_folder(path)
        if not there.is_dir():
            raise FileError(f"{path} cannot be written: {there} is no folder.", "choose another place.")
        if not folder and path.is_dir():
            raise FileError(f"{path} cannot be written: it is a folder.", "name a file.")
        # Only an attempt knows of all that stands in the way: permissions, read-only disks, quotas, long names.
        attempt = there / (path.absolute().name or "out")
        handle, part = open_part(attempt)
        part.unlink(missing_ok=True)
        os.close(handle)
        remove_stale_parts(attempt)
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        if isinstance(error, FileError):
            raise
        told = error if isinstance(error, OSError) else OSError(str(error))
        raise unwritable(path, told) from error


def nearest_folder(path: Path) -> Path:
    """The nearest of the folders above a path that is there; it may turn out to be a file."""
    above = path.absolute().parent
    while not os.path.lexists(above):
        above = above.parent
    return above


@contextlib.contextmanager
def open_plain(
    path: Path, limit: int, *, within: Path | None = None, follow: bool = True
) -> Generator[tuple[IO[bytes], int]]:
    """An ordinary file for reading, and its size; devices, pipes and files above the limit are refused unread. A link
    may not lead out of the folder `within`, nor anywhere where links are not followed."""
    if within is not None:
        require_within(path, within)
    try:
        # Not blocking: a pipe without a writer would wait for ever before its kind can be seen.
        how = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
        handle = os.open(path, how)
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
        try:
            yield file, status.st_size
        except MemoryError as error:
            if isinstance(error, DashiError):  # of a device, which has an error of its own
                raise
            raise out_of_memory(path) from error


def read_plain(path: Path, limit: int, within: Path | None = None) -> bytes:
    """Contents of an ordinary document of at most `limit` bytes, if there is room for what it becomes when it is
    parsed; one that grows while it is read is refused, and one that links lead out of `within`."""
    with open_plain(path, limit, within=within) as (file, size):
        require_room(PARSED * size, str(path))
        data = file.read(size + 1)
    if len(data) > size:
        raise FileError(f"{path} has more than the {size} bytes that it says.", "name a file that nobody writes to.")
    return data


def require_within(path: Path, folder: Path) -> None:
    """Refuses a path that links lead out of a folder, which may come from anyone."""
    try:
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {error}.", "correct the path.") from error
    if not inside:
        raise FileError(f"{path} is a link that leads out of {folder}.", "put what it leads to in its place.")
