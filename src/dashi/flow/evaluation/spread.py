"""Spread over seeds: bootstrap intervals of means, and of the gap between two models that a third one closes.

Windows of one seed are parts of one trajectory, so whole seeds are drawn, with replacement (B. Efron and R. Tibshirani,
An Introduction to the Bootstrap, 1993, ch. 8); the interval is that of the percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.flow.evaluation.result import Evaluation
from dashi.flow.grid import Floats
from dashi.flow.windows import UNKNOWN

DRAWS: Final = 4000
LEVEL: Final = 0.95
_SEED: Final = 6


@dataclass(frozen=True)
class Spread:
    """A mean over windows, and the interval that it lies in; not a number where there is one seed alone."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3g}" if math.isnan(self.low) else f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


def groups_of(seeds: Sequence[int], *, by: str = "seeds") -> Floats:
    """The group of each window: its seed, or itself where that is unknown or `by` says windows."""
    if by not in ("seeds", "windows"):
        raise InputError(f"a bootstrap over {by!r} is not known.", "use seeds or windows.")
    named = [(seed, 0) if by == "seeds" and seed != UNKNOWN else (UNKNOWN, 1 + j) for j, seed in enumerate(seeds)]
    order = {name: j for j, name in enumerate(dict.fromkeys(named))}
    return np.array([order[name] for name in named])


def means(values: Floats, groups: Floats, draws: int = DRAWS) -> Floats:
    """Bootstrap means (draws, ...) of values (windows, ...): whole groups drawn with replacement, the same ones for the
    same groups, so that differences of such means are paired."""
    count = int(groups.max()) + 1
    sums = np.stack([values[groups == g].sum(0) for g in range(count)])
    sizes = np.bincount(groups, minlength=count).astype(np.float64)
    # How often each group is drawn, which is all that a mean depends on.
    often = np.random.default_rng(_SEED).multinomial(count, np.full(count, 1 / count), draws).astype(np.float64)
    whole = (often @ sizes).reshape(-1, *(1 for _ in range(sums.ndim - 1)))
    return np.tensordot(often, sums, 1) / whole


def spread(values: Floats, seeds: Sequence[int], *, by: str = "seeds", draws: int = DRAWS) -> Spread:
    """The mean of values (windows,), with its interval of 95 %."""
    low, high = band(np.asarray(values, np.float64), seeds, by=by, draws=draws)
    return Spread(float(np.mean(values)), float(low), float(high))


def band(values: Floats, seeds: Sequence[int], *, by: str = "seeds", draws: int = DRAWS) -> tuple[Floats, Floats]:
    """The ends of the interval of the mean over windows of values (windows, ...), for instance along a series."""
    groups = groups_of(seeds, by=by)
    if groups.max() == 0 or not np.isfinite(values).all():
        nothing = np.full(values.shape[1:], math.nan)
        return nothing, nothing
    low, high = np.percentile(means(values, groups, draws), [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=0)
    return low, high


def gap_closed(
    evaluation: Evaluation, model: str, *, base: str = "galerkin", ceiling: str = "perfect", threshold: float = 0.5,
    by: str = "windows", draws: int = DRAWS,
) -> Spread:  # fmt: skip
    """How much of the gap between the horizons of two models a third one closes: mean(model - base) over
    mean(ceiling - base), paired by window."""
    here, low, high = (
        np.asarray(evaluation.line(name).horizons[threshold], np.float64) for name in (model, base, ceiling)
    )
    if float(np.mean(high - low)) <= 0:
        raise InputError(f"{ceiling} is not above {base}: there is no gap.", "compare other models, or more windows.")
    groups = groups_of(evaluation.seeds, by=by)
    drawn = means(np.stack([here - low, high - low], axis=1), groups, draws)
    ratio = drawn[:, 0] / np.where(drawn[:, 1] == 0, math.nan, drawn[:, 1])
    mean = float(np.mean(here - low) / np.mean(high - low))
    if groups.max() == 0:
        return Spread(mean, math.nan, math.nan)
    ends = np.nanpercentile(ratio, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Spread(mean, float(ends[0]), float(ends[1]))


def time_gained(
    evaluation: Evaluation, model: str, other: str, *, threshold: float = 0.5, by: str = "seeds", draws: int = DRAWS
) -> Spread:
    """How much longer a model follows than another one, in flow time: the mean difference of their horizons, paired by
    window, with its interval. It says as much where the two are close, and a part of a gap then says nothing."""
    here, there = (np.asarray(evaluation.line(name).horizons[threshold], np.float64) for name in (model, other))
    return spread(here - there, evaluation.seeds, by=by, draws=draws)
