"""How fast items go from one device to another, by every way that the two have, beside the devices' own copies.

from dashi.bench import links
for row in links.measure("vulkan:0", "vulkan:0"):
    print(row.way, row.nbytes, row.rate.gb_per_s, row.rate.latency)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import dashi
from dashi.errors import InputError
from dashi.runtime import _bandwidth as bandwidth
from dashi.runtime.device import Device
from dashi.stream._link_memory import LinkWay, possible_ways
from dashi.stream._link_rates import LinkRate
from dashi.stream.links import Link

SIZES: Final = (64 << 10, 1 << 20, 16 << 20)
WINDOW: Final = 3


@dataclass(frozen=True)
class LinkRow:
    """One way, one size: `copies` are the bytes per second that the source and the target copy within themselves, those
    read and those written counted once, as the link counts them."""

    way: LinkWay
    mode: str
    dma: tuple[int, int]
    nbytes: int
    rate: LinkRate
    copies: tuple[float, float]

    @property
    def of_copy(self) -> float:
        """The link's rate beside that of the slower device's own copies."""
        return self.rate.bandwidth / min(self.copies)

    def document(self) -> dict[str, Any]:
        """The row as plain data."""
        return {
            "way": self.way,
            "mode": self.mode,
            "dma": list(self.dma),
            "bytes": self.nbytes,
            "gb_per_s": round(self.rate.gb_per_s, 4),
            "latency_us": round(self.rate.latency * 1e6, 2),
            "copy_gb_per_s": [round(one * 1e-9, 3) for one in self.copies],
            "of_copy": round(self.of_copy, 4),
        }


def measure(
    source: str | Device = "auto",
    target: str | Device = "auto",
    sizes: Sequence[int] = SIZES,
    *,
    window: int = WINDOW,
    seconds: float = 0.3,
) -> Iterator[LinkRow]:
    """Measures each way at each size (bytes), the best way first. Devices by name are opened, without validation
    layers; the same name twice is two logical devices of one."""
    if not sizes or any(size < 1 for size in sizes):
        raise InputError(f"sizes={list(sizes)} names no bytes to send.", "pass `sizes=` of 1 byte or more.")
    with ExitStack() as stack:
        first, second = (
            one if isinstance(one, Device) else stack.enter_context(dashi.open(one, validation=False))
            for one in (source, target)
        )
        copies = (bandwidth.measure_copy(first) / 2, bandwidth.measure_copy(second) / 2)
        for way in possible_ways(first, second):
            for size in sizes:
                with Link(first, second, size, window=window, way=way) as link:
                    yield LinkRow(link.way, link.mode, link.dma, size, link.measure(seconds=seconds), copies)
