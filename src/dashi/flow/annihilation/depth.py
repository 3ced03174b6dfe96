"""How deep coherence goes: the first scale, from the integral scale down, that chance explains as well.

Data and surrogates are treated alike, so that for an exact null the rank of the data among them is that of any: every
statistic is standardised by mean and standard deviation over the data and all surrogates, and p of a scale is the part
of them whose largest value over all tested scales is as large (the max-statistic; P. Westfall and S. Young,
Resampling-based multiple testing, Wiley 1993). So all scales together raise a false alarm in 5 % of cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.flow.annihilation.scales import centres, lower_edges, mode_counts
from dashi.flow.annihilation.settings import LEVEL

Floats = npt.NDArray[Any]
FEWEST: Final = 150
"""Independent numbers, in all fields together, below which a scale has no vote: a tenth of its points are active."""


@dataclass(frozen=True)
class Band:
    """What came of one scale."""

    k: float
    """The middle of the octave, in units of 2 pi / L."""
    statistic: float
    null_mean: float
    null_sd: float
    p: float | None
    """Corrected for the number of scales; None where the scale was not tested."""

    @property
    def above(self) -> bool:
        return self.p is not None and self.p <= LEVEL


@dataclass(frozen=True)
class Depth:
    """Octaves from the integral scale to where the first scale begins that is not above the null."""

    octaves: float
    """0 where not even the first tested scale is above it."""
    low: float
    high: float
    """The middle 95 % of the bootstrap."""
    integral_k: float
    first: int
    """The first tested scale: its middle lies beyond the integral scale."""
    end: int
    """The first that is not above the null; the number of scales where all are (then `octaves` is a lower bound)."""
    censored: bool
    second_crossing: tuple[int, ...]
    """Scales that are above the null though a coarser one is not."""


@dataclass(frozen=True, eq=False)
class Standard:
    """Statistics (draws, scales) of surrogates in the units of their spread, with the data among them."""

    mean: Floats
    deviation: Floats
    largest: Floats
    """The largest standardised value over the tested scales, of every surrogate."""
    tested: npt.NDArray[np.intp]

    def scores(self, observed: Floats) -> Floats:
        return np.where(self.deviation > 0, (observed - self.mean) / np.where(self.deviation > 0, self.deviation, 1), 0)

    def chances(self, observed: Floats) -> Floats:
        """p of every scale; 1 where nothing varies."""
        scores = self.scores(observed)
        least = (self.largest[:, None] >= scores).sum(axis=0) + 1.0
        return np.where(self.deviation > 0, least / (len(self.largest) + 1.0), 1.0)


def standardise(observed: Floats, null: Floats, tested: npt.NDArray[np.intp]) -> Standard:
    """Takes the spread of statistics over the data (scales,) and the surrogates (draws, scales)."""
    mean, deviation = moments(np.concatenate([observed[None], null]))
    standard = Standard(mean, deviation, np.zeros(0), tested)
    largest = np.array([standard.scores(row)[tested].max(initial=-np.inf) for row in null])
    return Standard(mean, deviation, largest, tested)


def moments(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation over the first axis, correctly rounded sums; 0 where the spread is rounding."""
    count = len(values)
    mean = np.array([math.fsum(column) / count for column in values.T.tolist()])
    squares = [math.fsum((v - m) ** 2 for v in column) for column, m in zip(values.T.tolist(), mean, strict=True)]
    deviation = np.sqrt(np.array(squares) / max(1, count - 1))
    return mean, np.where(deviation > 1e-6 * np.abs(mean), deviation, 0.0)


def tested_scales(n: int, integral_k: float, power: Floats, fields: int) -> npt.NDArray[np.intp]:
    """Scales beyond the integral scale that hold anything, have a coarser neighbour that does, and of which all fields
    together have enough independent numbers for a vote."""
    middle = np.array(centres(n))
    there = power > 1e-10 * power.max(initial=0.0)
    wanted = (middle > integral_k) & there & (np.array(mode_counts(n)) * fields >= FEWEST)
    wanted[1:] &= there[:-1]
    wanted[0] = False
    chosen = np.flatnonzero(wanted)
    if not len(chosen):
        return chosen
    # What lies past a gap has no way back to the integral scale.
    gaps = np.flatnonzero(np.diff(chosen) > 1)
    return chosen[: gaps[0] + 1] if len(gaps) else chosen


def end_of(above: npt.NDArray[np.bool_], tested: npt.NDArray[np.intp]) -> int:
    """The first tested scale that is not above the null, or that after the last."""
    for scale in tested.tolist():
        if not above[scale]:
            return int(scale)
    return int(tested[-1]) + 1


def octaves_to(n: int, end: int, first: int, integral_k: float) -> float:
    """Octaves from the integral scale to where the scale `end` begins; 0 where that is the first tested one."""
    if end == first:
        return 0.0
    edges = (*lower_edges(n), 2.0 * lower_edges(n)[-1])
    return max(0.0, math.log2(edges[end] / integral_k))


def interval(values: list[float]) -> tuple[float, float]:
    """The middle 95 % of values."""
    ordered = sorted(values)
    cut = int(0.025 * len(ordered))
    return ordered[cut], ordered[-1 - cut]
