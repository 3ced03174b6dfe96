"""`simulate`: a flow solved on a device, with looks, frames, hashes and a certificate in its run folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
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
from dashi.flow._diagnostics import Diagnostics
from dashi.flow._operator import Vorticity
from dashi.flow._trajectory import Trajectory, TrajectoryWriter, kept_strides
from dashi.flow._trajectory_layout import FlowStrides
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.simulation import simulate as solve
from dashi.io import _run_folder as run_folder
from dashi.io._array_digest import array_digest
from dashi.io._run_names import FIELDS, HASHED, SHARD
from dashi.io._run_reading import run_file
from dashi.io._shard_standing import Standing, standing_of
from dashi.io._shards import ShardRecord, write_record
from dashi.io.arrays import read_arrays, write_arrays
from dashi.io.metrics import Metrics, read_metrics, write_metrics
from dashi.lab._arguments import require_request
from dashi.lab._flow_windows import faster_choice
from dashi.lab._job import AnyPath, Job, as_path, interrupted_with, require_results, to_go_on, until_interrupted
from dashi.lab._kept_states import (
    remove_other_states,
    require_no_states,
    require_states,
    require_states_room,
    state_files,
)
from dashi.lab._live import flow_observers, frames_seen, look_seen
from dashi.lab._run_job import FinishedJob, without_last_looks
from dashi.lab._seeds import seed_count
from dashi.lab.events import SILENT, Events
from dashi.lab.shards._hashed_states import HashedStates
from dashi.lab.shards._simulation_part import COMMAND, SimulationPart
from dashi.lab.shards._standing import remark_finished, require_folder
from dashi.lab.simulation_setup import (
    SimulateRequest,
    check_simulation,
    member_seeds,
    named_start,
    resumed_strides,
    states_of,
    strides_of,
)
from dashi.report.live import LiveView
from dashi.runtime.device import Device

FILES: Final = (FIELDS, run_folder.METRICS, run_folder.STATE, run_folder.CERTIFICATE, run_folder.INPUTS)
_OF_RUNS: Final = (*FILES, run_folder.STATES)
_OF_SHARDS: Final = (*FILES, SHARD, HASHED)


@interrupted_with(Run)
def simulate(
    request: SimulateRequest, *, device: str | Device = "auto", out: AnyPath | None = None, resume: bool = False,
    overwrite: bool = False, events: Events = SILENT, live: LiveView | None = None,
) -> Run:  # fmt: skip
    """Solves a flow from its initial states.

    With `out` frames stream to fields.zarr, each with a checkpoint, and the folder keeps metrics, the last state and,
    of a portable run, a certificate. `resume` goes on from the checkpoint in `out`, with the same hashes. A time step
    that is too long is an InputError that says which one is not. Ctrl-C raises Interrupted, whose `partial` is the
    Run so far, which the folder keeps. A `live` view shows frames as they are written, or vorticity on a stride of its
    own where there are none, and spectra; no hash, certificate or field knows of it.

    A request with a `shard` advances the members of that part alone, in a folder that `merge` takes. Asked again, it
    goes on where it was stopped or killed; of one that is finished the Run is read from its folder.
    """
    require_request(request, SimulateRequest)
    job = Job(
        command=COMMAND, request=request, device=device, out=as_path(out), resume=resume, overwrite=overwrite,
        events=events, live=live,
    )  # fmt: skip
    return _simulate(job, request)


def _simulate(job: Job, asked: SimulateRequest, so_far: Run | None = None) -> Run:
    if asked.shard is not None:
        require_folder(asked.shard, job.out)
        require_no_states(asked)
    check_simulation(asked, job.out)
    job.require_place()
    every = strides_of(asked, job.out)
    if asked.shard is None:
        with job.place() as placed:
            part = _part(job, asked, every, placed.device)
            return _simulate_part(job, asked, part, every, placed, so_far)
    part = _part(job, asked, every, None)
    if job.out is not None:
        standing = standing_of(job.out, part.settings, overwrite=job.overwrite)
        if standing is Standing.FINISHED:
            remark_finished(asked.shard, job.out, job.events)
            return _finished_shard(job, asked, part, every, job.out)
        job = replace(job, resume=job.resume or standing is Standing.INTERRUPTED)
    with job.place() as placed:
        return _simulate_part(job, asked, part, every, placed, so_far)


def _part(job: Job, asked: SimulateRequest, every: FlowStrides, device: Device | None) -> SimulationPart:
    """The members that are asked for, at their start."""
    with job.timed("encode", "initial conditions", seed_count(asked.seeds), "members") as advance:
        return SimulationPart.of(asked, every, advance, device)


def _simulate_part(
    job: Job, asked: SimulateRequest, part: SimulationPart, every: FlowStrides, placed: Placement, so_far: Run | None
) -> Run:
    require_states_room(job.out, part.request, part.states)
    files = _OF_RUNS if part.record is None else _OF_SHARDS
    with job.open_folder(part.settings, files=files) as folder:
        if part.record is not None:
            require_results(placed)
        if folder and job.resume:
            every = resumed_strides(part.request, every, kept_strides(folder / run_folder.CHECKPOINT))
        work = _SimulationWork(job, part.request, placed, every, part.states, sharded=part.record is not None)
        with job.events.progress("preparing", None, ""):
            resumed = work.resumed(folder) if folder and job.resume else so_far
        with to_go_on(folder):
            run, digest = work.run(folder, resumed)
            # Within the trace, so that one that cannot be written takes nothing else with it.
            metrics = build_metrics(job.command, run, placed, job.stages, certificate=digest, parts={"fft": placed})
            left = _leave(folder, run, metrics, digest, part.record)
    result = _finished(job, asked, run, metrics, every, left, digest)
    if run.stopped:
        raise Interrupted(result)
    return result


def _finished(
    job: Job, request: SimulateRequest, run: Run, metrics: Metrics, every: FlowStrides, left: Path | None,
    digest: str | None,
) -> Run:  # fmt: skip
    """The run with the job that left it."""
    certificates = {left / run_folder.CERTIFICATE: digest} if left and digest else {}
    finished = FinishedJob(
        request=request, metrics=metrics, folder=left, out=job.out, certificates=certificates, setup=every,
        go_on=partial(_resume, device=job.device),
        to_certify="simulate with `out=` and `hash_every=`, and without `host_fft=True`.",
    )  # fmt: skip
    return replace(run, job=finished)


def _finished_shard(job: Job, request: SimulateRequest, part: SimulationPart, every: FlowStrides, folder: Path) -> Run:
    """The run of a shard that is finished, as its folder has it: its last states and its hashes."""
    metrics = read_metrics(run_file(folder, run_folder.METRICS))
    state = read_arrays(run_file(folder, run_folder.STATE), ["z"])["z"]
    hashes = tuple(Hash(one.step, one.hash) for one in metrics.hashes)
    flow = part.request.seeded_flow
    run = Run(
        operator=Vorticity(flow).facts, steps=metrics.steps, state=state, records={"hashes": hashes},
        observers=(Hashes(every.hash),), strategy=metrics.way or "stepwise",
    )  # fmt: skip
    return _finished(job, request, run, metrics, every, folder, metrics.certificate_digest)


def _resume(
    run: Run, steps: int, *, device: str | Device, overwrite: bool = False, events: Events = SILENT
) -> Run:  # fmt: skip
    """Goes on with a run up to so many steps in all, in its folder or in memory."""
    if run.request.shard is not None:
        raise InputError(
            "a shard goes on by its own request alone.", "simulate anew with more `steps=`, in other folders."
        )
    assert run.job is not None
    every: FlowStrides = run.job.setup
    strides = {"look_every": every.look, "hash_every": every.hash, "frame_every": every.frame if run.out else None}
    if every.states:
        strides |= {"states_every": every.states, "states_bits": every.bits}
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


def _identity(request: SimulateRequest, every: FlowStrides, states: Floats | str) -> str:
    strides = [every.look, every.frame, every.hash, *([every.states] if every.states else [])]
    return identity(
        Vorticity(request.seeded_flow), states, strides=strides, fast=request.host_fft,
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
    sharded: bool = False
    """Whether the states are kept where they are hashed."""

    @property
    def flow(self) -> Flow:
        return self.request.seeded_flow

    @cached_property
    def identity(self) -> str:
        """What a checkpoint must belong to. It takes a while: whoever writes one asks for it, beside the solver."""
        return _identity(self.request, self.every, self.start_digest)

    @cached_property
    def start_digest(self) -> str:
        """The digest of the initial states, which the identity and the certificate name."""
        return array_digest(self.states)

    def resumed(self, folder: Path) -> Run:
        """The part of the run that the checkpoint holds."""
        request, flow, every = self.request, self.flow, self.every
        usual = [Diagnostics(flow, every.look, transfer=request.transfer), Hashes(every.hash)]
        usual += state_files(folder, every.states, every.bits)
        earlier = read_checkpoint(
            folder / run_folder.CHECKPOINT, self.identity, Vorticity(flow), [*usual, *request.observers],
            self.states.shape, what="another flow, start, fields or strides",
        )  # fmt: skip
        if earlier.steps > self.request.steps:
            raise InputError(
                f"{earlier.steps} steps are done already, {self.request.steps} asked for.",
                "ask for more with `steps=`.",
            )
        require_states(folder, earlier, self.states.shape, self.states.dtype)
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
        files = state_files(folder, every.states, every.bits)
        hashed = self._hashed_states(folder, resumed)
        watching = flow_observers(self.job.live, flow, request.steps, every, fields=recording is not None)
        with recording or nullcontext():
            with self.job.timed("sim", "flow", request.steps - start, "steps") as advance:
                run, _ = until_interrupted(
                    lambda: solve(
                        flow, self.states, request.steps, device=device, look_every=every.look,
                        frame_every=every.frame, hash_every=every.hash, fields=request.fields,
                        transfer=request.transfer, host_fft=request.host_fft,
                        frame=frames_seen(self.job.live, recording.frame if recording else None),
                        look=look_seen(self.job.live), keep=_keep_after(hashed, recording.keep) if recording else None,
                        keep_every=every.frame, keep_pause=recording.pause if recording else None,
                        observers=[*files, *request.observers, *hashed, *watching], progress=advance, resume=resumed,
                    )
                )  # fmt: skip
            for one in hashed:
                one.finish(run.steps)
            since = time.perf_counter()
            if recording is not None and device.info.type != "null":
                recording.finish(run)
            elif checkpoint is not None and run.stopped and device.info.type != "null":
                write_checkpoint(checkpoint, self.identity, run)
            with self.job.events.progress("writing", None, ""):
                # While the last frames are on their way to the disk.
                digest = None
                if folder is not None:
                    digest = certify_folder(run, folder, Vorticity(flow), self.states, lambda: self.start_digest)
                if recording is not None:
                    recording.wait()
                    # The steps are not over before their frames are on the disk.
                    run = replace(run, seconds=run.seconds + time.perf_counter() - since)
        return run, digest

    def _hashed_states(self, folder: Path | None, resumed: Run | None) -> list[HashedStates]:
        every = self.every.hash
        if folder is None or not self.sharded or not every:
            return []
        return [HashedStates(folder / HASHED, self.flow, len(self.states), every, resumed)]

    def _trajectory(self, folder: Path) -> Trajectory:
        request = self.request
        name, numbers = named_start(request)
        provenance = provenance_of(self.placed.device.info.name, name, ", ".join(numbers), host_fft=request.host_fft)
        return Trajectory(
            folder / FIELDS, self.flow, member_seeds(request, len(self.states)), request.fields, self.every,
            transfer=request.transfer, provenance=provenance, resume=self.job.resume,
        )  # fmt: skip


def _keep_after(hashed: Sequence[HashedStates], keep: Callable[[Run], None]) -> Callable[[Run], None]:
    """`keep`, which writes a checkpoint, once the states that it counts are on the disk."""

    def keep_run(run: Run) -> None:
        for one in hashed:
            one.make_durable()
        keep(run)

    return keep_run


def provenance_of(device: str, initial: str, options: str, *, host_fft: bool) -> dict[str, Any]:
    """What a store of fields says of where they came from."""
    import dashi

    return {
        "source": f"dashi {dashi.__version__}", "device": device, "initial": initial, "initial_options": options,
        "portable": "no" if host_fft else "yes",
    }  # fmt: skip


def _leave(
    folder: Path | None, run: Run, metrics: Metrics, digest: str | None, record: ShardRecord | None
) -> Path | None:
    """Writes what is left to write; where the run lies."""
    if folder is None:
        return None
    written = {run_folder.METRICS, run_folder.STATE}
    write_state(folder, run.state, run.steps)
    if digest:
        written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
    remove_other_states(folder, run)
    write_metrics(folder / run_folder.METRICS, metrics)
    if record is not None and not run.stopped:
        write_record(folder / SHARD, record)
    return run_folder.close_run(folder, written, finished=not run.stopped)


def write_state(folder: Path, state: Floats, steps: int) -> None:
    """Writes the last states, and their step."""
    write_arrays(folder / run_folder.STATE, {"z": state, "step": np.array(steps, np.int64)})
