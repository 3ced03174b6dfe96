"""Refusals before the work begins: more than fits into this machine's memory, or on a disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dashi.errors import InputError
from dashi.io._files import nearest_folder


def require_memory(needed: int, what: str, fix: str) -> None:
    """Refuses what would not fit into the memory of this machine, whatever else runs on it."""
    there = memory()
    if there is not None and needed > there:
        raise InputError(f"{what} take {_about(needed)}; this machine has {size_text(there)} of memory.", fix)


def require_disk(path: Path, needed: int, what: str, fix: str) -> None:
    """Refuses what would not fit on the disk of a place."""
    try:
        free = shutil.disk_usage(nearest_folder(path)).free
    except OSError:
        return  # some file systems do not tell
    if needed > free:
        raise InputError(f"{what} take {_about(needed)}; {path} is on a disk with {size_text(free)} free.", fix)


def memory() -> int | None:
    """Bytes of this machine's memory; None where the system does not tell."""
    try:
        nbytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return nbytes if nbytes > 0 else None


def size_text(nbytes: int) -> str:
    """Bytes as people write them: 512 B, 16 GiB."""
    amount, units = float(nbytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.3g} {units[0]}"


def _about(needed: int) -> str:
    # A number from a caller may be larger than any float.
    return f"about {size_text(needed)}" if needed < 1 << 80 else "more than anything holds"
