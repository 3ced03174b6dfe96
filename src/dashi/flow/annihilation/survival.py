"""What is left of the signs at every scale, and the old count of levels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dashi.types import HostArray


@dataclass(frozen=True)
class Survival:
    """The active points of a scale, and how many of them still have the sign of all coarser ones."""

    k: float
    active: int
    surviving: int

    @property
    def fraction(self) -> float:
        return self.surviving / self.active if self.active else 0.0


def surviving_points(states: HostArray, first: int) -> list[tuple[int, int]]:
    """Active points of every scale from `first` on, and those of them whose sign is that of every coarser scale back to
    the one before `first`. `states` (scales, n, n) are -2 to 2: see the kernel `scale_counts`."""
    signs = np.sign(states)
    unbroken = signs[max(0, first - 1)]
    counts: list[tuple[int, int]] = []
    for scale in range(first, len(states)):
        unbroken = np.where(signs[scale] == unbroken, unbroken, 0)
        active = np.abs(states[scale]) == 2
        counts.append((int(active.sum()), int((active & (unbroken != 0)).sum())))
    return counts


def grid_levels(field: HostArray, tau: float) -> int:
    """K_grid: levels of the grid until no cell is active. Level 0 is the sign of the field where it exceeds tau root
    mean squares; each next level is the sign of the sum over 2 x 2 cells. It is about log2 N of any field, as it
    counts from the grid and not from a scale of the flow."""
    values = np.asarray(field, np.float64)
    scale = math.sqrt(math.fsum((values * values).reshape(-1).tolist()) / values.size)
    trits = np.where(np.abs(values) > tau * scale, np.sign(values), 0).astype(np.int64)
    level = 0
    while trits.any() and len(trits) % 2 == 0:
        half = len(trits) // 2
        trits = np.sign(trits.reshape(half, 2, half, 2).sum(axis=(1, 3)))
        level += 1
    return level
