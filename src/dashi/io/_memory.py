"""Room in memory: what a file claims to hold is held against what this machine has left, before it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dashi.errors import FileError

SMALL: Final = 1 << 26
"""Bytes below which nobody asks."""
_MEMINFO: Final = Path("/proc/meminfo")
_CGROUP: Final = Path("/sys/fs/cgroup")


def require_room(nbytes: int, what: str) -> None:
    """Refuses what would not fit into the memory that is left."""
    if nbytes <= SMALL:
        return
    free = available_memory()
    if free is not None and nbytes > free:
        raise FileError(
            f"{what} takes {_gigabytes(nbytes)} of memory; {_gigabytes(free)} are free on this machine.",
            "use a machine with more memory, or a smaller file.",
        )


def out_of_memory(what: object) -> FileError:
    """The error for what was begun, and then found no memory."""
    return FileError(f"{what} does not fit into memory.", "use a machine with more memory, or a smaller file.")


def available_memory() -> int | None:
    """Bytes of memory that this process could still take; None where the system does not tell."""
    try:
        lines = _MEMINFO.read_text().splitlines()
        table = {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":", 1) for line in lines)}
        free = table["MemAvailable"] + table.get("SwapFree", 0)
    except (OSError, ValueError, KeyError, IndexError):
        return None
    try:
        limit, used = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no such limit: "max", or another system
        return free
    return min(free, max(0, limit - used))


def _gigabytes(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f} GiB" if nbytes < 1 << 60 else "more than anything holds"
