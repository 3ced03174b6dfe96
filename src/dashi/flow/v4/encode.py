"""z of v4, and the ternary mask it is made with.

    z = [ Re(low), Im(low) | support fraction, E_mid, E_high, 128 | Re(anchors), Im(anchors) ],   654 numbers

Low modes have |k| <= 8 (197 of them, both of each conjugate pair, row by row), the mid band 8 < |k| <= 12 (244). All
coefficients are divided by n^2. Anchors are modes of the residual R = omega - box(omega).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from dashi.flow.grid import Floats
from dashi.flow.v4.solver import Solver, box

K_CUT: Final = 8.0
MID_CUT: Final = 12.0
TAU: Final = 0.35
ANCHORS: Final = 128
ITERATIONS: Final = 8

Mask = npt.NDArray[np.int8]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Which modes of an n x n grid are in which part of z."""

    n: int

    @cached_property
    def _radius(self) -> Floats:
        return np.sqrt(Solver(self.n).waves[2])

    @cached_property
    def low(self) -> Places:
        """Where the low modes lie in the whole spectrum, flat."""
        return np.flatnonzero(self._radius <= K_CUT)

    @cached_property
    def mid(self) -> Places:
        """Where the mid band lies."""
        return np.flatnonzero((self._radius > K_CUT) & (self._radius <= MID_CUT))

    @cached_property
    def high(self) -> Places:
        """Where all the rest lies."""
        return np.flatnonzero(self._radius > MID_CUT)

    @property
    def modes(self) -> slice:
        """Where the low modes are in z."""
        return slice(0, 2 * self.low.size)

    @property
    def header(self) -> slice:
        """Where support fraction, E_mid, E_high and the number of anchors are in z."""
        return slice(2 * self.low.size, 2 * self.low.size + 4)

    @property
    def anchors(self) -> slice:
        """Where the anchors are in z."""
        return slice(self.header.stop, self.size)

    @property
    def size(self) -> int:
        """Numbers in a z."""
        return 2 * self.low.size + 4 + 2 * ANCHORS


@dataclass(frozen=True, eq=False)
class Encoder:
    """Fields to z, with anchors that stay what they were in the first frame."""

    layout: Layout
    anchors: Places
    """Where they lie in the whole spectrum, flat, the largest first."""

    @classmethod
    def of(cls, omega: Floats) -> Encoder:
        """The encoder whose anchors are the 128 largest modes of the residual of this field in the mid band."""
        layout = Layout(len(omega))
        size = np.abs(np.fft.fft2(omega - box(omega)).ravel()[layout.mid])
        return cls(layout, layout.mid[np.argsort(-size, kind="stable")[:ANCHORS]])

    def encode(self, omega: Floats) -> Floats:
        """z of one field."""
        layout, scale = self.layout, float(self.layout.n) ** 2
        residual = np.fft.fft2(omega - box(omega)).ravel()
        power = np.abs(residual) ** 2
        rest = float(power[layout.mid].sum() - power[self.anchors].sum())
        mid = rest / scale**2 / (layout.mid.size - ANCHORS)
        high = float(power[layout.high].mean()) / scale**2
        support = np.count_nonzero(mask(omega)) / scale
        low = np.fft.fft2(omega).ravel()[layout.low] / scale
        return np.concatenate([_parts(low), [support, mid, high, ANCHORS], _parts(residual[self.anchors] / scale)])


def _parts(modes: Floats) -> Floats:
    return np.concatenate([np.real(modes), np.imag(modes)])


def mask(omega: Floats) -> Mask:
    """The ternary mask of a field: thresholded, then filtered. With v4's filter it is 1 nearly everywhere."""
    return majority(threshold(omega))


def threshold(omega: Floats) -> Mask:
    """The residual over its largest magnitude, as -1, 0 and +1."""
    residual = omega - box(omega)
    scaled = np.clip(residual / (np.abs(residual).max() + 1e-12), -1.0, 1.0)
    return (scaled > TAU).astype(np.int8) - (scaled < -TAU).astype(np.int8)


def majority(field: Mask) -> Mask:
    """The sign of the sum over nine periodic neighbours, up to eight times, until nothing changes. A site without
    support takes the sign of its neighbours: that is how support grows."""
    smoothed = field
    for _ in range(ITERATIONS):
        total = sum(np.roll(smoothed, (dy, dx), (0, 1)).astype(np.int64) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
        after = np.sign(total).astype(np.int8)
        if np.array_equal(after, smoothed):
            break
        smoothed = after
    return smoothed
