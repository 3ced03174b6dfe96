"""Keys of the tests of sorting: orders and repetitions that a radix sort could get wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from dashi.kernels._radix_passes import LANES, TUNINGS
from dashi.kernels.abi import Case, Fill, Number
from dashi.types import HostArray, Shape


def _equal(rng: np.random.Generator, shape: Shape) -> HostArray:
    return np.full(shape, 77)


def _rising(rng: np.random.Generator, shape: Shape) -> HostArray:
    return np.arange(shape[0]) * 3


def _falling(rng: np.random.Generator, shape: Shape) -> HostArray:
    return _rising(rng, shape)[::-1]


def _few(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Few distinct digits: most passes see one digit alone."""
    return rng.integers(0, 3, shape) * 0x10001


def _nearly_sorted(rng: np.random.Generator, shape: Shape) -> HostArray:
    keys = np.arange(shape[0])
    keys[:: max(1, shape[0] // 7)] = 5
    return keys


TILES: Final = tuple(LANES * tuning["items"] for tuning in TUNINGS.values())
LENGTHS: Final = (1, 0, 257, *(tile + around for tile in (min(TILES), max(TILES)) for around in (-1, 0, 1)))
ORDERS: Final[tuple[Fill, ...]] = (_equal, _rising, _falling, _few, _nearly_sorted)


def sort_cases(shapes: Callable[[int], dict[str, Shape]], fill: dict[str, Fill]) -> tuple[Case, ...]:
    """Cases of every length and order both ways; `shapes` gives those of all inputs, `fill` makes those besides the
    keys."""

    def case(n: int, descending: Number, keys: Fill | None = None) -> Case:
        return Case(shapes(n), {"descending": descending}, {**fill, "keys": keys} if keys else fill)

    random = tuple(case(n, i % 2) for i, n in enumerate(LENGTHS))
    orders = tuple(case(max(TILES) + 100, i % 2, keys) for i, keys in enumerate(ORDERS))
    # Blocks of several tiles on a processor, the last of one key.
    return (*random, *orders, case(33 * min(TILES) + 1, 0))
