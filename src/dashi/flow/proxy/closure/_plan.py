"""How a closure is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from dashi.errors import InputError

FASTEST: Final = 4.0
"""About the largest speed of a field, in units of its root mean square."""


@dataclass(frozen=True)
class Phase:
    """Iterations with rollouts of one length."""

    frames: int
    iterations: int
    rate: float

    def rate_at(self, turn: int) -> float:
        """Learning rate of an iteration: up in ten iterations, then down along a cosine."""
        fall = 0.5 * (1 + math.cos(math.pi * (turn - 1) / self.iterations))
        return self.rate * min(1.0, turn / 10) * (fall + 0.02)


@dataclass(frozen=True)
class TrainingSchedule:
    """How a closure is trained: with short rollouts first, then with longer ones."""

    iterations: int = 200
    frames: int = 10
    """Frames of the short rollouts."""
    long_iterations: int = 120
    """Iterations with long rollouts; 0 for none."""
    long_frames: int = 25
    batch: int = 16
    rate: float = 0.006
    lift_time: float = 0.4
    """How long the first guess lifts a field for, in units of 1 / rms vorticity."""
    checks: int = 2
    """How often in a phase the closure is tried on validation windows; the best one stays."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (
            ("iterations", 1),
            ("frames", 1),
            ("long_iterations", 0),
            ("long_frames", 1),
            ("batch", 1),
            ("checks", 1),
            ("seed", 0),
        ):
            value: object = getattr(self, name)
            if type(value) is not int or value < least:
                raise InputError(f"{name} is {value!r}.", f"use a whole number, {least} or more.")
        for name in ("rate", "lift_time"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise InputError(f"{name} is {value!r}.", "use a positive number.")

    def phases(self, most: int) -> list[Phase]:
        """The phases of training in windows with `most` frames after the first."""
        if most < 1:
            raise InputError("a training window has one frame alone.", "use windows of two frames or more.")
        short = Phase(min(self.frames, most), self.iterations, self.rate)
        longer = Phase(min(self.long_frames, most), self.long_iterations, 2 / 3 * self.rate)
        return [short, longer] if self.long_iterations else [short]


PLAN: Final = tuple(field.name for field in fields(TrainingSchedule))


def schedule_of(options: Mapping[str, Any]) -> TrainingSchedule:
    """The schedule that options of a fit ask for, which may name other things too."""
    return TrainingSchedule(**{name: value for name, value in options.items() if name in PLAN})
