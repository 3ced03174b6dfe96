"""What a driver does not say of itself and must be tried: how long a loop may run before it is cut short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dashi._cache import cache_folder, read_number, write_cache

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import VulkanDevice

_TRIED: Final = 1 << 22
SAFE_TRIPS: Final = 65000
"""Right on every driver seen: lavapipe 22.3.6 ends loops after 65,535 iterations without a word."""


def loop_limit(device: VulkanDevice) -> int:
    """Loop iterations per invocation that this device is known to run; tried once, then remembered on disk."""
    file = cache_folder() / "probes" / f"{device.info.uuid}-loops.bin"
    known = read_number(file, SAFE_TRIPS, _TRIED)
    if known in (SAFE_TRIPS, _TRIED):
        return known
    start = np.array([1], np.uint32)
    result = int(device.run("iterate", start, steps=_TRIED).numpy()[0])
    limit = _TRIED if result == expected(1, _TRIED) else SAFE_TRIPS
    write_cache(file, str(limit).encode())
    return limit


def expected(start: int, steps: int) -> int:
    """What the `iterate` kernel (x <- 1664525 x + 1013904223 mod 2^32) gives, by repeated squaring."""
    factor, offset, result = 1664525, 1013904223, start
    while steps:
        if steps & 1:
            result = (factor * result + offset) & 0xFFFFFFFF
        offset = (factor * offset + offset) & 0xFFFFFFFF
        factor = factor * factor & 0xFFFFFFFF
        steps >>= 1
    return result
