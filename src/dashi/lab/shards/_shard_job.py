"""A shard as it is handed to a process of its own, and what that process does with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dashi.lab import evaluations, simulations
from dashi.lab.evaluation_plans import EvaluateRequest
from dashi.lab.events import Events
from dashi.lab.simulation_setup import SimulateRequest

AnyRequest = SimulateRequest | EvaluateRequest
GRACE: Final = 30.0
"""Seconds that a shard has to keep what it did, once it is asked to stop."""


@dataclass(frozen=True, eq=False)
class ShardJob:
    """A shard for a process of its own."""

    request: AnyRequest
    device: str
    out: Path
    overwrite: bool = False
    """Whether another run in its folder is replaced."""


def run_shard(job: ShardJob, events: Events) -> None:
    """Runs a shard, as its own command would."""
    if isinstance(job.request, SimulateRequest):
        simulations.simulate(job.request, device=job.device, out=job.out, overwrite=job.overwrite, events=events)
    else:
        evaluations.evaluate(job.request, device=job.device, out=job.out, overwrite=job.overwrite, events=events)
