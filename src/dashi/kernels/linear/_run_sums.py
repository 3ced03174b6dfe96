"""Sums of runs on their way between two kernels: not flushed, so that they add up to what one kernel makes."""

from __future__ import annotations

import numpy as np

from dashi.kernels.portable import canon
from dashi.types import HostArray, Shape


def one_nan(sums: HostArray) -> HostArray:
    """The sums, every NaN the canonical one."""
    return np.where(np.isnan(sums), canon(sums), sums)


def random_sums(rng: np.random.Generator, shape: Shape) -> HostArray:
    """What run sums can be: ordinary numbers, and small ones below the threshold of flushing, multiples of 2^-125."""
    ordinary = rng.standard_normal(shape).astype(np.float32)
    small = rng.integers(-100, 101, shape) * np.float32(2.0**-125)
    return np.where(rng.random(shape) < 0.5, ordinary, small).astype(np.float32)
