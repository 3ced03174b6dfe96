"""What fits the memory of a device, by arithmetic: refused before any work, with the bytes."""

from __future__ import annotations

import os

from dashi.errors import OutOfMemoryError
from dashi.runtime.device import Device


def memory_bytes(device: Device) -> int:
    """Bytes of a device's own memory, or of the host's; 0 where it is not known."""
    local = max((heap.size for heap in device.info.heaps if heap.device_local), default=0)
    if local:
        return local
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def require_bytes(device: Device, needed: int, what: str) -> None:
    """An error for work that takes more memory than there is."""
    there = memory_bytes(device)
    if there and needed > there:
        raise OutOfMemoryError(
            f"{what} takes {needed / 2**30:,.1f} GiB ({needed:,} bytes), and {device.info.name!r} has "
            f"{there / 2**30:,.1f} GiB.",
            "transform fewer or smaller arrays, or use another device.",
        )
