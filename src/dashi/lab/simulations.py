"""`simulate`: a flow solved on a device, with looks, frames, hashes and a certificate in its run folder."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certify import certify_folder
from dashi.core.metrics._document import build_metrics
from dashi.core.metrics._placement import Placement
from dashi.core.rollouts._checkpoint import identity, read_checkpoint, write_checkpoint
from dashi.core.rollouts._observers import Hashes
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, Interrupted
from dashi.flow._diagnostics import Diagnostics
from dashi.flow._operator import Vorticity
from dashi.flow._trajectory import FlowStrides, Trajectory, TrajectoryWriter, kept_strides
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.simulation import simulate as solve
from dashi.io import _run_folder as run_folder
from dashi.io._run_names import FIELDS
from dashi.io.arrays import write_arrays
from dashi.io.metrics import Metrics, write_metrics
from dashi.lab._arguments import require_request
from dashi.lab._flow_windows import faster_choice
from dashi.lab._job import AnyPath, Job, as_path, interrupted_with, to_go_on, until_interrupted
from dashi.lab._run_job import FinishedJob, without_last_looks
from dashi.lab._seeds import seed_count
from dashi.lab.events import SILENT, Events
from dashi.lab.simulation_setup import (
    SimulateRequest,
    check_simulation,
    member_seeds,
    named_start,
    resumed_strides,
    settings_of,
    states_of,
    strides_of,
)
from dashi.runtime.device import Device

COMMAND: Final = "flow simulate"
_FILES: Final = (FIELDS, run_folder.METRICS, run_folder.STATE, run_folder.CERTIFICATE, run_folder.INPUTS)


@interrupted_with(Run)
def simulate(
    request: SimulateRequest, *, device: str | Device = "auto", out: AnyPath | None = None, resume: bool = False,
    overwrite: bool = False, events: Events = SILENT,
) -> Run:  # fmt: skip
    """Solves a flow from its initial states.

    With `out` frames stream to fields.zarr, each with a checkpoint, and the folder keeps metrics, the last state and,
    of a portable run, a certificate. `resume` goes on from the checkpoint in `out`, with the same hashes. A time step
    that is too long is an InputError that says which one is not. Ctrl-C raises Interrupted, whose `partial` is the
    Run so far, which the folder keeps.
    """
    require_request(request, SimulateRequest)
    job = Job(
        command=COMMAND, request=request, device=device, out=as_path(out), resume=resume, overwrite=overwrite,
        events=events,
    )  # fmt: skip
    return _simulate(job, request)


def _simulate(job: Job, request: SimulateRequest, so_far: Run | None = None) -> Run:
    check_simulation(request, job.out)
    job.require_place()
    every = strides_of(request, job.out)
    with job.timed("encode", "initial conditions", seed_count(request.seeds), "members") as advance:
        states = states_of(request, advance)
    with job.place() as placed, job.open_folder(settings_of(request, every, states), files=_FILES) as folder:
        if folder and job.resume:
            every = resumed_strides(request, every, kept_strides(folder / run_folder.CHECKPOINT))
        work = _SimulationWork(job, request, placed, every, states)
        with job.events.progress("preparing", None, ""):
            resumed = work.resumed(folder) if folder and job.resume else so_far
        with to_go_on(folder):
            run, digest = work.run(folder, resumed)
            # Within the trace, so that one that cannot be written takes nothing else with it.
            metrics = build_metrics(job.command, run, placed, job.stages, certificate=digest, parts=["fft"])
            left = _leave(folder, run, metrics, digest)
    certificates = {left / run_folder.CERTIFICATE: digest} if left and digest else {}
    finished = FinishedJob(
        request=request, metrics=metrics, folder=left, out=job.out, certificates=certificates, setup=every,
        go_on=partial(_resume, device=job.device),
        to_certify="simulate with `out=` and `hash_every=`, and without `host_fft=True`.",
    )  # fmt: skip
    result = replace(run, job=finished)
    if run.stopped:
        raise Interrupted(result)
    return result


def _resume(
    run: Run, steps: int, *, device: str | Device, overwrite: bool = False, events: Events = SILENT
) -> Run:  # fmt: skip
    """Goes on with a run up to so many steps in all, in its folder or in memory."""
    assert run.job is not None
    every: FlowStrides = run.job.setup
    strides = {"look_every": every.look, "hash_every": every.hash, "frame_every": every.frame if run.out else None}
    request: SimulateRequest = replace(run.request, steps=steps, **strides)
    job = Job(
        command=COMMAND, request=request, device=device, out=run.out, resume=run.out is not None,
        overwrite=overwrite, events=events,
    )  # fmt: skip
    if run.out is None:
        return _simulate(job, request, without_last_looks(run))
    if not run.stopped:
        belongs = _identity(request, every, states_of(request))
        run_folder.reopen_run(run.out, COMMAND, lambda file: write_checkpoint(file, belongs, run))
    return _simulate(job, request)


def _identity(request: SimulateRequest, every: FlowStrides, states: Floats) -> str:
    return identity(
        Vorticity(request.seeded_flow), states, strides=[every.look, every.frame, every.hash], fast=request.host_fft,
        fields=list(request.fields), transfer=request.transfer,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _SimulationWork:
    """One simulation under way."""

    job: Job
    request: SimulateRequest
    placed: Placement
    every: FlowStrides
    states: Floats

    @property
    def flow(self) -> Flow:
        return self.request.seeded_flow

    @cached_property
    def identity(self) -> str:
        """What a checkpoint must belong to. It takes a while: whoever writes one asks for it, beside the solver."""
        return _identity(self.request, self.every, self.states)

    def resumed(self, folder: Path) -> Run:
        """The part of the run that the checkpoint holds."""
        request, flow, every = self.request, self.flow, self.every
        usual = [Diagnostics(flow, every.look, transfer=request.transfer), Hashes(every.hash)]
        earlier = read_checkpoint(
            folder / run_folder.CHECKPOINT, self.identity, Vorticity(flow), [*usual, *request.observers],
            self.states.shape, what="another flow, start, fields or strides",
        )  # fmt: skip
        if earlier.steps > self.request.steps:
            raise InputError(
                f"{earlier.steps} steps are done already, {self.request.steps} asked for.",
                "ask for more with `steps=`.",
            )
        self.job.events.remark(f"going on after {earlier.steps} steps")
        return earlier

    def run(self, folder: Path | None, resumed: Run | None) -> tuple[Run, str | None]:
        """The run as far as it came, with its certificate's digest; frames and certificate are in the folder."""
        request, flow, events = self.request, self.flow, self.job.events
        device, start = self.placed.device, resumed.steps if resumed else 0
        trajectory = self._trajectory(folder) if folder and self.every.frame else None
        if trajectory is not None and resumed is not None:
            trajectory.require_frames(resumed.steps)

        events.remark(f"{request.steps - start} steps of {flow.n} x {flow.n}, {flow.dtype}, on {device.info.name}")
        hint = faster_choice(device.info, host_fft=request.host_fft)
        if hint:
            events.remark(hint)
        checkpoint = folder / run_folder.CHECKPOINT if folder else None
        recording = (
            TrajectoryWriter(trajectory, checkpoint, lambda: self.identity) if trajectory and checkpoint else None
        )
        every = self.every
        with recording or nullcontext():
            with self.job.timed("sim", "flow", request.steps - start, "steps") as advance:
                run, _ = until_interrupted(
                    lambda: solve(
                        flow, self.states, request.steps, device=device, look_every=every.look,
                        frame_every=every.frame, hash_every=every.hash, fields=request.fields,
                        transfer=request.transfer, host_fft=request.host_fft,
                        frame=recording.frame if recording else None, keep=recording.keep if recording else None,
                        keep_every=every.frame, keep_pause=recording.pause if recording else None,
                        observers=request.observers, progress=advance, resume=resumed,
                    )
                )  # fmt: skip
            if recording is not None and device.info.type != "null":
                recording.finish(run)
            elif checkpoint is not None and run.stopped and device.info.type != "null":
                write_checkpoint(checkpoint, self.identity, run)
            with self.job.events.progress("writing", None, ""):
                # While the last frames are on their way to the disk.
                digest = certify_folder(run, folder, Vorticity(flow), self.states) if folder else None
                if recording is not None:
                    recording.wait()
        return run, digest

    def _trajectory(self, folder: Path) -> Trajectory:
        import dashi

        request = self.request
        name, numbers = named_start(request)
        provenance: dict[str, Any] = {
            "source": f"dashi {dashi.__version__}",
            "device": self.placed.device.info.name,
            "initial": name,
            "initial_options": ", ".join(numbers),
            "portable": "no" if request.host_fft else "yes",
        }
        return Trajectory(
            folder / FIELDS, self.flow, member_seeds(request, len(self.states)), request.fields, self.every,
            transfer=request.transfer, provenance=provenance, resume=self.job.resume,
        )  # fmt: skip


def _leave(folder: Path | None, run: Run, metrics: Metrics, digest: str | None) -> Path | None:
    """Writes what is left to write; where the run lies."""
    if folder is None:
        return None
    written = {run_folder.METRICS, run_folder.STATE}
    write_arrays(folder / run_folder.STATE, {"z": run.state, "step": np.array(run.steps, np.int64)})
    if digest:
        written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
    write_metrics(folder / run_folder.METRICS, metrics)
    return run_folder.close_run(folder, written, finished=not run.stopped)
