"""Which rows each step of training sees: every row once an epoch, in an order that a seed gives, for ever the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dashi.types import HostArray


def shuffled(count: int, seed: int, epoch: int) -> HostArray:
    """The numbers 0 to count - 1 in an order of that epoch.

    They are sorted by 64-bit keys, splitmix64 of seed, epoch and number, so the order is one of this function alone
    and not of a library's version. (G. L. Steele, D. Lea and C. H. Flood, OOPSLA 2014, doi 10.1145/2660193.2660195.)
    """
    with np.errstate(over="ignore"):
        start = _mix(np.array([seed % (1 << 64)], np.uint64) + np.uint64(0x9E3779B97F4A7C15))
        start = _mix(start ^ _mix(np.array([epoch], np.uint64)))
        keys = _mix(start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return np.argsort(keys, kind="stable").astype(np.uint32)


def _mix(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def batches(count: int, size: int, seed: int) -> Iterator[HostArray]:
    """Batches of `size` rows without end. The orders of the epochs follow on one another, so a batch may hold the last
    rows of one epoch and the first of the next, and none is short."""
    epoch, rest = 0, np.empty(0, np.uint32)
    while True:
        while len(rest) < size:
            rest = np.concatenate([rest, shuffled(count, seed, epoch)])
            epoch += 1
        yield rest[:size]
        rest = rest[size:]
