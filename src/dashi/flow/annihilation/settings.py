"""What a measurement of depth is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.flow.annihilation._gauge_signs import GAUGES
from dashi.flow.annihilation.estimators import ESTIMATORS
from dashi.flow.annihilation.nulls import NULLS
from dashi.flow.annihilation.scales import FAMILIES

MOST: Final = 1 << 20
"""Surrogates of a field: their numbers are half of a word of the generator's key."""
LEVEL: Final = 0.05
"""The chance of a false alarm over all scales together."""


@dataclass(frozen=True, kw_only=True)
class AnnihilationSettings:
    """How coherence is measured, and against what chance."""

    null: str = "phase"
    """What surrogates preserve: see `NULLS`."""
    surrogates: int = 199
    """Surrogates of every field; below 19 nothing can be significant at 5 %."""
    seed: int = 0
    estimator: str = "persistence"
    """The statistic that decides: see `ESTIMATORS`. All are reported."""
    bands: str = "shannon"
    """How fields are divided into scales: see `FAMILIES`."""
    gauge: str = "vorticity"
    """What decides the sign of an active point: see `GAUGES`. Which points are active does not depend on it."""
    angle: float = 0.0
    """The direction of the gauge `axis`, an angle from x."""
    tau: float = 1.5
    """A point is active where |band| exceeds so many root mean squares of the band."""
    resamples: int = 200
    """Draws of the bootstrap that gives the interval."""
    rounds: int = 20
    """Rounds of the null `iaaft`."""
    slope: float = 1.0
    """The null `power`: |w|^2 of a mode goes as k^-slope."""
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("null", self.null, tuple(NULLS)), ("estimator", self.estimator, tuple(ESTIMATORS)),
            ("bands", self.bands, FAMILIES), ("gauge", self.gauge, GAUGES),
            ("dtype", self.dtype, ("float32", "float64")),
        ):  # fmt: skip
            if value not in known:
                raise InputError(f"there is no {name} {value!r}.", f"use {', '.join(known)}.")
        _require_whole("surrogates", self.surrogates, 1, MOST - 1)
        _require_whole("seed", self.seed, 0, (1 << 32) - 1)
        _require_whole("resamples", self.resamples, 1, 100_000)
        _require_whole("rounds", self.rounds, 1, 1000)
        if not -1e3 <= self.angle <= 1e3:
            raise InputError(f"`angle=` is {self.angle}.", "use an angle in radians.")
        if not 0 <= self.tau < 1e6:
            raise InputError(f"`tau=` is {self.tau}.", "use a number from 0 on, say 1.5.")
        if not -10 <= self.slope <= 10:
            raise InputError(f"`slope=` is {self.slope}.", "use a number from -10 to 10.")

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(self.dtype)


def _require_whole(name: str, value: Any, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise InputError(f"`{name}=` is {value!r}.", f"use a whole number from {least} to {most}.")
