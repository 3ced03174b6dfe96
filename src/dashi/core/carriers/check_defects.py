"""Defects of a single field, in which kernels on the carrier contract."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dashi.core.carriers.carrier import Field
from dashi.kernels._torus import moved, shifts


def support_size(field: Field) -> int:
    """The number of supported sites: falls or stays under every kernel that creates no support."""
    return int(np.count_nonzero(field))


def opposite_pairs(field: Field) -> int:
    """Neighbours along any axis, round the ends, of opposite sign: what annihilation removes."""
    return sum(int(np.sum(field * np.roll(field, 1, axis) < 0)) for axis in range(field.ndim))


def majority_energy(radius: int = 1, eta: int = 1, centre: int = 1) -> Callable[[Field], int]:
    """The energy in which the majority M(radius, eta) contracts, for rings and grids.

    With h the sums that M votes by, s' = M(s), theta = eta - 1/2 and W the sum of the weights' magnitudes it is twice
    `-<s', h> + theta (|s'| + |s|) + W |s|`, |.| counting supported sites: an integer, never negative, 0 for the empty
    field alone. It never rises: on the support each s'_i is the trit x that is best in `x h_i - theta |x|`, weights are
    symmetric, and every site that leaves the support pays W, more than its vote can be worth. docs/carrier.md
    has the proof. For fields without zeros it is the argument of E. Goles and J. Olivos, "Periodic behaviour of
    generalized threshold functions", Discrete Mathematics 30 (1980), 187-189.
    """
    least = max(eta, 1)

    def energy(field: Field) -> int:
        wide = field.astype(np.int32)
        boxes = list(shifts(field.shape, radius))
        sums = sum((moved(wide, shift) for shift in boxes), (centre - 1) * wide)
        voted = np.where((wide != 0) & (np.abs(sums) >= least), np.sign(sums), 0)
        weight = len(boxes) - 1 + abs(centre)
        before, after = support_size(field), int(np.count_nonzero(voted))
        return int(-2 * np.sum(voted * sums) + (2 * least - 1) * (after + before) + 2 * weight * before)

    return energy
