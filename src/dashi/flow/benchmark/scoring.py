"""The score of the benchmark: for how long the mean correlation over trajectories stays above a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dashi.errors import ShapeError
from dashi.flow.benchmark.setting import THRESHOLDS
from dashi.flow.evaluation.scores import correlation
from dashi.flow.evaluation.spread import Spread, spread
from dashi.flow.grid import Floats


@dataclass(frozen=True, eq=False)
class Score:
    """How long one contestant follows the truth."""

    name: str
    numbers: int
    """Numbers of its state."""
    correlation: Floats
    """Correlation of vorticity on the coarse grid with the truth, (trajectories, frames)."""
    of_mean: Mapping[float, float]
    """The time when the mean correlation over trajectories falls below a threshold."""
    mean_of_times: Mapping[float, Spread]
    """The mean over trajectories of the time when each one's falls below, with its interval."""
    outlasts: frozenset[float]
    """Thresholds that were not reached: their times are lower bounds."""
    seconds: float

    def document(self) -> dict[str, object]:
        """Plain numbers, for JSON."""
        return {
            "name": self.name, "numbers": self.numbers, "seconds": self.seconds,
            "of_mean": {f"{t:g}": value for t, value in self.of_mean.items()},
            "mean_of_times": {
                f"{t:g}": {"mean": s.mean, "low": s.low if s.low == s.low else None,
                           "high": s.high if s.high == s.high else None}
                for t, s in self.mean_of_times.items()
            },
            "outlasts": sorted(self.outlasts), "correlation": self.correlation.mean(0).tolist(),
        }  # fmt: skip


def correlation_times(values: Floats, times: Floats, threshold: float) -> Floats:
    """The time when a correlation (..., frames) first falls below the threshold, between frames by a straight line; the
    last time where it never does. What is not a number counts as below."""
    below = ~(values >= threshold)
    first = below.argmax(-1)
    before = np.maximum(first - 1, 0)
    high, low = (np.take_along_axis(values, at[..., None], -1)[..., 0] for at in (before, first))
    with np.errstate(all="ignore"):
        part = np.where(np.isfinite(low) & (high > low), (high - threshold) / (high - low), 0.0)
    crossing = times[before] + np.clip(part, 0.0, 1.0) * (times[first] - times[before])
    return np.where(below.any(-1), crossing, times[-1])


def score(
    name: str, numbers: int, fields: Floats, truth: Floats, times: Floats, seeds: Sequence[int], seconds: float
) -> Score:
    """The score of coarse fields (trajectories, frames, n, n) beside the truth's."""
    if fields.shape != truth.shape:
        raise ShapeError(f"{name} made fields {fields.shape}, the truth has {truth.shape}.", "make as many frames.")
    with np.errstate(all="ignore"):
        values = np.stack([correlation(ours, theirs) for ours, theirs in zip(fields, truth, strict=True)])
    values = np.where(np.isfinite(values), values, 0.0)
    mean = values.mean(0)
    return Score(
        name, numbers, values,
        {t: float(correlation_times(mean, times, t)) for t in THRESHOLDS},
        {t: spread(correlation_times(values, times, t), seeds) for t in THRESHOLDS},
        frozenset(t for t in THRESHOLDS if (mean >= t).all()),
        seconds,
    )  # fmt: skip
