"""What is refused before the work begins: more than there is room for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dashi.cli.output import size
from dashi.errors import InputError
from dashi.io.files import nearest_folder


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
