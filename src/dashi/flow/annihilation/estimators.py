"""Statistics of coherence between neighbouring scales, behind one interface: `ESTIMATORS[name].of(measured)`.

What a device measures of fields is `Measured`: counts of states (`scale_counts`) and three means, of every scale and
tile. Every statistic is a number for each scale that is larger where the field is more coherent; what it is for a field
without any relation between scales is its `null_value`. Nothing is known of scale 0, which has no coarser neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels.portable import log

Floats = npt.NDArray[Any]
_LN2: Final = math.log(2.0)


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured: arrays whose axes are (..., scales, tiles), sums over the tiles being those of the field."""

    counts: npt.NDArray[np.int64]
    """Points by state, (..., scales, tiles, 15): see the kernel `scale_counts`."""
    squares: Floats
    """Sums of band^2."""
    fourths: Floats
    """Sums of band^4."""
    strong: Floats
    """Sums of band^2 over active points."""
    modes: tuple[int, ...]
    """Independent numbers of every scale."""

    def pooled(self) -> Measured:
        """The whole field in place of its tiles."""
        squares, fourths, strong = (_sum(a, -1)[..., None] for a in (self.squares, self.fourths, self.strong))
        return Measured(self.counts.sum(axis=-2, keepdims=True), squares, fourths, strong, self.modes)

    def chosen(self, tiles: npt.NDArray[np.intp]) -> Measured:
        """Some of the tiles, any of them more than once."""
        squares, fourths, strong = (a[..., tiles] for a in (self.squares, self.fourths, self.strong))
        return Measured(self.counts[..., tiles, :], squares, fourths, strong, self.modes)

    def members(self, numbers: Any) -> Measured:
        """Some of the fields along the first axis."""
        return Measured(
            self.counts[numbers], self.squares[numbers], self.fourths[numbers], self.strong[numbers], self.modes
        )


@dataclass(frozen=True)
class Estimator:
    """A statistic with its units and its value where scales are unrelated and Gaussian."""

    of: Callable[[Measured], Floats]
    """The statistic of pooled measurements: (..., scales)."""
    units: str
    null_value: str
    meaning: str


def _sum(values: Floats, axis: int) -> Floats:
    """A sum in index order, the same on every machine."""
    moved = np.moveaxis(values, axis, 0)
    total = np.zeros(moved.shape[1:], np.float64)
    for part in moved:
        total = total + part
    return total


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.where(below > 0, above / np.where(below > 0, below, 1), 0.0)


def _persistence(measured: Measured) -> Floats:
    c = measured.counts[..., 0, :]
    agree = c[..., 0] + c[..., 1] + c[..., 13] + c[..., 14]
    disagree = c[..., 3] + c[..., 4] + c[..., 10] + c[..., 11]
    active = c[..., 0:5].sum(axis=-1) + c[..., 10:15].sum(axis=-1)
    return _ratio((agree - disagree).astype(np.float64), active.astype(np.float64))


def _information(measured: Measured) -> Floats:
    table = measured.counts[..., 0, :].reshape(*measured.counts.shape[:-2], 3, 5)
    joint = np.stack([table[..., 0], table[..., 1:4].sum(axis=-1), table[..., 4]], axis=-1).astype(np.float64)
    points = joint.sum(axis=(-1, -2))
    total = -_entropy_sum(joint.reshape(*joint.shape[:-2], 9))
    for axis in (-1, -2):
        total = total + _entropy_sum(joint.sum(axis=axis))
    total = total - _entropy_sum(points[..., None])
    # Miller and Madow's first-order bias, with as many samples as the finer band has independent numbers.
    filled = (joint.sum(axis=-1) > 0).sum(axis=-1) - 1, (joint.sum(axis=-2) > 0).sum(axis=-1) - 1
    bias = filled[0] * filled[1] / (2.0 * np.asarray(measured.modes, np.float64))
    return (_ratio(total, points) - bias) / _LN2


def _entropy_sum(counts: Floats) -> Floats:
    """Minus the sum of c log c."""
    terms = np.where(counts > 0, counts * log(np.where(counts > 0, counts, 1.0)), 0.0)
    return -_sum(terms, -1)


def _concentration(measured: Measured) -> Floats:
    return _ratio(measured.strong[..., 0], measured.squares[..., 0])


def _flatness(measured: Measured) -> Floats:
    squares = measured.squares[..., 0]
    points = measured.counts[..., 0, :].sum(axis=-1)
    return _ratio(_ratio(measured.fourths[..., 0], squares), _ratio(squares, points))


ESTIMATORS: Final[Mapping[str, Estimator]] = MappingProxyType(
    {
        "persistence": Estimator(
            _persistence, "part of the active points", "0",
            "active points whose sign is that of the next coarser band, less those of the other sign",
        ),
        "information": Estimator(
            _information, "bits per point", "0",
            "what the next coarser band's state (-1, 0, +1) tells of the state, less its expected bias",
        ),
        "concentration": Estimator(
            _concentration, "part of the energy", "0.522 at tau 1.5",
            "enstrophy of the band on its active points",
        ),
        "flatness": Estimator(_flatness, "none", "3", "mean fourth power of the band over its mean square squared"),
    }
)  # fmt: skip
"""Statistics by name."""
