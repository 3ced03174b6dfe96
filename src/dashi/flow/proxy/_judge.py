"""What choices between candidates are made by: how long they follow windows that they were not trained on, and whether
they gain energy in the long run, where nothing is left to follow."""

from __future__ import annotations

from typing import Final

import numpy as np

from dashi.flow.grid import Floats
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import correlations, encoded, power, squares, validation_score
from dashi.flow.windows import Windows
from dashi.runtime.device import Device

LONGER: Final = 4
"""Energy is watched in rollouts so many times as long as the windows that are scored."""
GAIN: Final = 1.5
"""No frame of such a rollout may have more than so many times the largest energy that any frame of the truth has: a
flow that is fed fluctuates, and may well go somewhat further in a longer time."""


class Judge:
    """Validation windows as z, for the models of one schema."""

    def __init__(self, schema: Schema, windows: Windows, device: Device) -> None:
        self._schema, self._device = schema, device
        self._reference = encoded(schema, windows, device=device)
        self.windows = len(windows)

    def score(self, model: Model) -> float:
        """`validation_score` of rollouts from the starts of the windows."""
        return validation_score(self._schema, self._rolled(model, 1), self._reference)

    def score_and_correlation(self, model: Model) -> tuple[float, float]:
        """`score`, and the mean correlation of all frames, for those that score alike because they fall at once."""
        z = self._rolled(model, 1)
        correlation = correlations(self._schema, z, self._reference)
        return validation_score(self._schema, z, self._reference), float(correlation.mean())

    def energy_error(self, model: Model) -> float:
        """Mean of |log(E / E of the truth)| over windows and frames; infinite where an energy is not finite."""
        with np.errstate(all="ignore"):
            energy = held_energy(self._schema, self._rolled(model, 1))
            error = float(np.abs(np.log(energy / held_energy(self._schema, self._reference))).mean())
        return error if np.isfinite(error) else float("inf")

    def gains(self, model: Model) -> bool:
        """Whether the model's energy exceeds GAIN x the largest of the reference in rollouts LONGER x as long as the
        windows."""
        with np.errstate(all="ignore"):
            energy = held_energy(self._schema, self._rolled(model, LONGER))
        return not bool((energy <= GAIN * held_energy(self._schema, self._reference).max()).all())

    def _rolled(self, model: Model, times: int) -> Floats:
        frames = times * (self._reference.shape[1] - 1)
        return model.advance(self._reference[:, 0], frames, device=self._device)


def held_energy(schema: Schema, z: Floats) -> Floats:
    """The energy of the modes that z holds, (...)."""
    return (power(schema, z) / squares(schema)).sum(axis=-1)
