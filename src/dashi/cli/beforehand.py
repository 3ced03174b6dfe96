"""What is refused before the work begins: places that cannot be written, and more than there is room for."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from dashi.cli.output import size
from dashi.errors import FileError, InputError
from dashi.io.files import unwritable


def require_writable(path: Path, *, folder: bool = False) -> None:
    """Refuses a file or folder to be that cannot be written where it is to lie. Nothing is left behind."""
    try:
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
        with tempfile.NamedTemporaryFile(dir=there, prefix=f".{path.name}-", suffix=".part"):
            pass
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        if isinstance(error, FileError):
            raise
        told = error if isinstance(error, OSError) else OSError(str(error))
        raise unwritable(path, told) from error


def nearest_folder(path: Path) -> Path:
    """Of the folders above a path, the nearest that is there; it may turn out to be a file."""
    above = path.absolute().parent
    while not os.path.lexists(above):
        above = above.parent
    return above


def require_memory(needed: int, what: str, fix: str) -> None:
    """Refuses what would not fit into the memory of this machine, whatever else runs on it."""
    there = memory()
    if there is not None and needed > there:
        raise InputError(f"{what} take {_told(needed)}; this machine has {size(there)} of memory.", fix)


def require_disk(path: Path, needed: int, what: str, fix: str) -> None:
    """Refuses what would not fit on the disk of a place."""
    try:
        free = shutil.disk_usage(nearest_folder(path)).free
    except OSError:
        return  # some file systems do not tell
    if needed > free:
        raise InputError(f"{what} take {_told(needed)}; {path} is on a disk with {size(free)} free.", fix)


def memory() -> int | None:
    """Bytes of this machine's memory; None where the system does not tell."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return found if found > 0 else None


def _told(needed: int) -> str:
    # A number from the command line may be larger than any float.
    return f"about {size(needed)}" if needed < 1 << 80 else "more than anything holds"
