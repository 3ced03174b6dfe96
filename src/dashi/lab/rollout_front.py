"""The front door to rollouts: `dashi.rollout` and `dashi.verify`, which build the frozen request and do the job.

run = dashi.rollout(dashi.Linear(A), z0, 100_000, hash_every=1000, out="runs/turn")
dashi.verify("runs/turn", device="vulkan:0", against="cpu").same
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashi.core.operators.operator import Operator
from dashi.core.rollouts.observer import Observer
from dashi.core.rollouts.run import Run
from dashi.lab import rollouts, verification
from dashi.lab._arguments import several
from dashi.lab._job import AnyPath
from dashi.lab.events import SILENT, Events
from dashi.lab.rollout_setup import RolloutRequest
from dashi.lab.verification import Verification, VerifyRequest
from dashi.report.live import LiveView
from dashi.runtime.device import Device
from dashi.types import HostArray


def rollout(
    operator: Operator,
    z0: HostArray,
    steps: int,
    *,
    hash_every: int | None = None,
    observe_every: int | None = None,
    sheet_every: int | None = None,
    bands: int | None = None,
    checkpoint_every: int | None = None,
    states_every: int | None = None,
    states_bits: int | None = None,
    observers: Sequence[Observer[Any]] = (),
    strategy: str = "auto",
    stop_on_nonfinite: bool = True,
    device: str | Device = "auto",
    out: AnyPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    events: Events = SILENT,
    live: LiveView | None = None,
) -> Run:
    """Advances z0, one state or an ensemble with a leading axis, by so many steps of an operator.

    Strides are in steps; None chooses (hashes every 1000, 200 observations). With `out` the run has a folder with its
    last state, metrics and, of a portable operator, a certificate; `checkpoint_every` keeps a checkpoint there, from
    which `resume` goes on with the same hashes; `run.resume(steps)` goes on with a run that is done. `states_every`
    keeps states there, which the certificate names by digests of `states_bits` bits (128, or 256): segments between
    them can be verified apart. `observers` look besides, and change no bit; a `live` view shows the run while it goes
    on. Ctrl-C raises Interrupted, whose `partial` is the run so far.
    """
    request = RolloutRequest(
        operator=operator, z0=z0, steps=steps, hash_every=hash_every, observe_every=observe_every,
        sheet_every=sheet_every, bands=bands, checkpoint_every=checkpoint_every, states_every=states_every,
        states_bits=states_bits, strategy=strategy,
        stop_on_nonfinite=stop_on_nonfinite, observers=several("observers", observers),
    )  # fmt: skip
    return rollouts.rollout(
        request, device=device, out=out, resume=resume, overwrite=overwrite, events=events, live=live
    )


def verify(
    certificate: AnyPath,
    *,
    device: str | Device = "auto",
    against: str | Device | None = None,
    inputs: AnyPath | None = None,
    jobs: int | None = None,
    devices: Sequence[str] = (),
    sample: int | None = None,
    sample_seed: int | None = None,
    events: Events = SILENT,
) -> Verification:
    """Repeats a certified run, of a file or a run folder, on a device, or on two, and compares every hash:
    `Verification.same`. `inputs` is a folder in which the input files are looked for, by name.

    Of a run that kept states (`states_every`), `jobs` processes repeat segments at the same time, on `devices` in turn;
    and `sample` repeats so many of the segments, drawn by `sample_seed`, which misses a fault in one segment alone with
    `Verification.missed_with_probability`."""
    request = VerifyRequest(
        certificate=certificate, against=against, inputs=inputs, jobs=jobs, devices=several("devices", devices),
        sample=sample, sample_seed=sample_seed,
    )  # fmt: skip
    return verification.verify(request, device=device, events=events)
