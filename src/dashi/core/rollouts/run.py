"""`Run`: what a rollout leaves, of whatever operator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dashi.core.observations.observation import Hash, Observation
from dashi.core.operators.operator import Way
from dashi.core.rollouts.fingerprint import Used
from dashi.core.rollouts.run_html import run_html
from dashi.types import Array as HostArray


@dataclass(frozen=True)
class Run:
    """What a rollout leaves: the states after `steps` steps, what was observed on the way, and how it ran."""

    steps: int
    state: HostArray
    """The last states, (m, *shape)."""
    hashes: tuple[Hash, ...] = ()
    observations: tuple[Observation, ...] = ()
    sheet: HostArray = field(default_factory=lambda: np.zeros((0, 0)))
    """Band energies, a row for each of `sheet_steps`; the mean over an ensemble."""
    sheet_steps: tuple[int, ...] = ()
    way: Way = "stepwise"
    reason: str = ""
    seconds: float = 0.0
    """From the first submission to the end of the last."""
    dispatches: int = 0
    """Compute dispatches that were executed in the loop."""
    reruns: int = 0
    """Blocks that were repeated step by step, because a poll of the tagged kernel ran out."""
    stopped: bool = False
    """Before all steps were done: by Ctrl-C, or since a value was no longer finite."""
    used: tuple[Used, ...] = ()
    """The kernels that were recorded, for their fingerprints."""

    def _repr_html_(self) -> str:
        return run_html(self)
