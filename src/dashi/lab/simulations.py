"""`simulate`: a flow solved on a device, with looks, frames, hashes and a certificate in its run folder."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certify import certify_folder
from dashi.core.metrics._document import build_metrics
from dashi.core.metrics._placement import Placement
from dashi.core.observations.observation import Hash
from dashi.core.rollouts._checkpoint import identity, read_checkpoint, write_checkpoint
from dashi.core.rollouts._observers import Hashes
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, Interrupted
from dashi.flow._diagnostics import Diagnostics, DiagnosticsRecord, courant
from dashi.flow._operator import Vorticity
from dashi.flow._trajectory import Recording, Strides, Trajectory, kept_strides
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.simulation import simulate as solve
from dashi.flow.windows._foreign import open_dataset
from dashi.io import _run_folder as run_folder
from dashi.io._run_names import FIELDS
from dashi.io.arrays import write_arrays
from dashi.io.metrics import Metrics, write_metrics
from dashi.lab._flow_windows import faster_choice
from dashi.lab._job import AnyPath, Job, as_path, interrupted_with, to_go_on, until_interrupted
from dashi.lab._run_certificates import RunCertificate
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


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """A simulation and what it left: states, looks and hashes, metrics, and its run folder."""

    request: SimulateRequest
    run: Run
    metrics: Metrics
    every: Strides
    """The strides that it ran with."""
    folder: Path | None
    """Where it lies; a run that was stopped beside a finished one lies in a folder within `out`."""
    out: Path | None
    """The folder that was asked for."""
    device: str | Device
    """Where it was asked to run."""

    @property
    def flow(self) -> Flow:
        return self.request.seeded_flow

    @property
    def steps(self) -> int:
        """Steps of dt that were done."""
        return self.run.steps

    @property
    def time(self) -> float:
        """Flow time since the start."""
        return self.run.time

    @property
    def states(self) -> Floats:
        """The last states, (members, n, n/2 + 1, 2)."""
        return self.run.state

    @property
    def hashes(self) -> tuple[Hash, ...]:
        return self.run.hashes

    @property
    def diagnostics(self) -> tuple[DiagnosticsRecord, ...]:
        """Energy, spectra and the largest speed (`look_every`)."""
        return self.run.records.get(Diagnostics.name, ())

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C came before all steps were done."""
        return self.run.stopped

    @property
    def courant(self) -> float | None:
        """The Courant number dt max(|u| + |v|) / dx at the last look."""
        return courant(self.flow, self.diagnostics[-1]) if self.diagnostics else None

    @property
    def certificate(self) -> RunCertificate:
        """The certificate in the run folder. Raises InputError where there is none."""
        if self.folder is None or self.metrics.certificate_digest is None:
            raise InputError(
                "this run has no certificate: one is written to a run folder, of hashes that hold on every device.",
                "simulate with `out=` and `hash_every=`, and without `host_fft=True`.",
            )
        return RunCertificate(self.folder / run_folder.CERTIFICATE, self.metrics.certificate_digest)

    @property
    def fields(self) -> Any:
        """Frames and series as an xarray Dataset that reads from the run folder as it is used."""
        if self.folder is None or not (self.folder / FIELDS).is_dir():
            raise InputError("this run has no frames.", "simulate with `out=` and `frame_every=`.")
        return open_dataset(self.folder / FIELDS)

    def resume(
        self, steps: int, *, device: str | Device | None = None, overwrite: bool = False, events: Events = SILENT
    ) -> SimulatedRun:
        """Goes on with this run up to `steps` steps in all, in the same folder, from its last state, with the bits of a
        run that was never interrupted."""
        if steps <= self.steps:
            raise _done_already(self.steps, steps)
        every = self.every
        strides = {"look_every": every.look, "hash_every": every.hash, "frame_every": every.frame if self.out else None}
        request = replace(self.request, steps=steps, **strides)
        job = Job(
            command=COMMAND, request=request, device=self.device if device is None else device, out=self.out,
            resume=self.out is not None, overwrite=overwrite, events=events,
        )  # fmt: skip
        if self.out is None:
            return _simulate(job, request, _on_strides(self.run))
        if not self.stopped:
            states = states_of(request)
            belongs = _identity(request, every, states)
            run_folder.reopen_run(self.out, COMMAND, lambda file: write_checkpoint(file, belongs, self.run))
        return _simulate(job, request)

    def __repr__(self) -> str:
        flow, last = self.flow, self.hashes[-1].digest if self.hashes else "none"
        where = f", folder={str(self.folder)!r}" if self.folder else ""
        return (
            f"SimulatedRun({flow.n} x {flow.n}, {len(self.states)} member(s), {self.steps} steps, time {self.time:g}, "
            f"hash {last}{', stopped' if self.stopped else ''}{where})"
        )


@interrupted_with(SimulatedRun)
def simulate(
    request: SimulateRequest, *, device: str | Device = "auto", out: AnyPath | None = None, resume: bool = False,
    overwrite: bool = False, events: Events = SILENT,
) -> SimulatedRun:  # fmt: skip
    """Solves a flow from its initial states.

    With `out` frames stream to fields.zarr, each with a checkpoint, and the folder keeps metrics, the last state and,
    of a portable run, a certificate. `resume` goes on from the checkpoint in `out`, with the same hashes. A time step
    that is too long is an InputError that says which one is not. Ctrl-C raises Interrupted, whose `partial` is the
    SimulatedRun so far, which the folder keeps.
    """
    job = Job(
        command=COMMAND, request=request, device=device, out=as_path(out), resume=resume, overwrite=overwrite,
        events=events,
    )  # fmt: skip
    return _simulate(job, request)


def _simulate(job: Job, request: SimulateRequest, so_far: Run | None = None) -> SimulatedRun:
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
            belongs = _identity(request, every, states)
            resumed = work.resumed(folder, belongs) if folder and job.resume else so_far
        with to_go_on(folder):
            run = work.run(folder, belongs, resumed)
            # Within the trace, so that one that cannot be written takes nothing else with it.
            with job.events.progress("writing", None, ""):
                digest = certify_folder(run, folder, Vorticity(work.flow), states) if folder else None
                metrics = build_metrics(job.command, run, placed, job.stages, certificate=digest, parts=["fft"])
                left = _leave(folder, run, metrics, digest)
    result = SimulatedRun(request, run, metrics, every, left, job.out, job.device)
    if run.stopped:
        raise Interrupted(result)
    return result


def _done_already(done: int, asked: int) -> InputError:
    return InputError(f"{done} steps are done already, {asked} asked for.", "ask for more with `steps=`.")


def _on_strides(run: Run) -> Run:
    """The run without the records that only its last step has: one that goes on has none there."""
    strides = {name: run.stride(name) for name in run.records}
    return replace(
        run,
        records={
            name: tuple(record for record in records if strides[name] and record.step % strides[name] == 0)
            for name, records in run.records.items()
        },
    )


def _identity(request: SimulateRequest, every: Strides, states: Floats) -> str:
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
    every: Strides
    states: Floats

    @property
    def flow(self) -> Flow:
        return self.request.seeded_flow

    def resumed(self, folder: Path, belongs: str) -> Run:
        """The part of the run that the checkpoint holds."""
        observers = [Diagnostics(self.flow, self.every.look, transfer=self.request.transfer), Hashes(self.every.hash)]
        earlier = read_checkpoint(
            folder / run_folder.CHECKPOINT, belongs, Vorticity(self.flow), observers, self.states.shape,
            what="another flow, start, fields or strides",
        )  # fmt: skip
        if earlier.steps > self.request.steps:
            raise InputError(
                f"{earlier.steps} steps are done already, {self.request.steps} asked for.",
                "ask for more with `steps=`.",
            )
        self.job.events.remark(f"going on after {earlier.steps} steps")
        return earlier

    def run(self, folder: Path | None, belongs: str, resumed: Run | None) -> Run:
        request, flow, events = self.request, self.flow, self.job.events
        device, start = self.placed.device, resumed.steps if resumed else 0
        trajectory = self._trajectory(folder) if folder and self.every.frame else None
        if trajectory is not None and resumed is not None:
            trajectory.require_frames(resumed.steps)

        events.remark(f"{request.steps - start} steps of {flow.n} x {flow.n}, {flow.dtype}, on {device.info.name}")
        hint = faster_choice(device.info, host_fft=request.host_fft)
        if hint:
            events.remark(hint)
        recording = Recording(trajectory, folder / run_folder.CHECKPOINT, belongs) if trajectory and folder else None
        every = self.every
        with (
            self.job.timed("sim", "flow", request.steps - start, "steps") as advance,
            recording or nullcontext(),
        ):
            run, _ = until_interrupted(
                lambda: solve(
                    flow, self.states, request.steps, device=device, look_every=every.look, frame_every=every.frame,
                    hash_every=every.hash, fields=request.fields, transfer=request.transfer,
                    host_fft=request.host_fft, frame=recording.frame if recording else None,
                    keep=recording.keep if recording else None, keep_every=every.frame,
                    keep_pause=recording.pause if recording else None, progress=advance, resume=resumed,
                )
            )  # fmt: skip
            if recording is not None and device.info.type != "null":
                recording.finish(run)
            elif folder is not None and run.stopped and device.info.type != "null":
                write_checkpoint(folder / run_folder.CHECKPOINT, belongs, run)
        return run

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
