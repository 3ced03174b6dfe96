"""Rollouts as jobs: inputs, device, run, and the files that it leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from dashi.core.certificates._certificate import Certificate, write_certificate
from dashi.core.certificates._certify import certify, certify_folder
from dashi.core.metrics._document import build_metrics
from dashi.core.metrics._placement import Placement
from dashi.core.observations.verdict import Verdict, verdict
from dashi.core.rollouts import rollout as engine
from dashi.core.rollouts._checkpoint import read_checkpoint, read_settings, write_checkpoint
from dashi.core.rollouts._strategies import choose_strategy
from dashi.core.rollouts.run import Run
from dashi.errors import FeatureError, FileError, Interrupted, NonFiniteError
from dashi.io import _run_folder as run_folder
from dashi.io.arrays import write_array, write_arrays
from dashi.io.metrics import Metrics, PerfFlag, write_metrics
from dashi.lab._arguments import require_request
from dashi.lab._job import AnyPath, Job, as_path, interrupted_with, require_gpu_used, until_interrupted
from dashi.lab._kept_states import remove_other_states, require_states, state_files
from dashi.lab._live import sheet_observers
from dashi.lab._run_job import FinishedJob, without_last_looks
from dashi.lab.events import SILENT, Events
from dashi.lab.rollout_setup import RolloutRequest, RolloutSetup, check_request, read_setup
from dashi.report.live import LiveView
from dashi.runtime.device import Device

COMMAND: Final = "rollout"
_FILES: Final = (*run_folder.RESULTS, run_folder.STATES)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """A run, as far as it came, what ended it, and what ran otherwise than asked for."""

    run: Run
    flags: tuple[PerfFlag, ...] = ()
    failure: NonFiniteError | None = None


@interrupted_with(Run)
def rollout(
    request: RolloutRequest,
    *,
    device: str | Device = "auto",
    out: AnyPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    events: Events = SILENT,
    live: LiveView | None = None,
) -> Run:
    """Runs the request on a device. With `out`, state, sheet, metrics, inputs and a certificate are left in that
    folder, and checkpoints where they are asked for; `resume` goes on from the folder's checkpoint.

    A state that is no longer finite raises `NonFiniteError`, and Ctrl-C `Interrupted` with the Run so far as its
    `partial`, both after what was finished is in the folder. A certificate or metrics file beside the folder that
    cannot be written raises its `FileError`, with the Run of all else as `result`. A `live` view shows band energies as
    they come; no hash, certificate or state knows of it.
    """
    require_request(request, RolloutRequest)
    job = Job(
        command=COMMAND, request=request, device=device, out=as_path(out), resume=resume, overwrite=overwrite,
        events=events, live=live,
    )  # fmt: skip
    return _rollout(job, request)


def _rollout(job: Job, request: RolloutRequest, so_far: Run | None = None) -> Run:
    check_request(request, job)
    events = job.events
    with job.timed("encode", "reading"):
        setup = read_setup(request, job)
    settings = setup.settings(request) if job.out else None
    with job.place() as placed, job.open_folder(settings, files=_FILES) as folder:
        resumed = so_far
        if folder and job.resume:
            setup, resumed = _read_resume(folder, setup, request, events)
        outcome = _run(job, request, setup, placed, folder, resumed)
        certificates, unwritten = _certify(job, request, setup, folder, outcome)
        metrics = build_metrics(
            COMMAND, outcome.run, placed, job.stages, verdict=judge(setup, outcome.run), flags=outcome.flags,
            certificate=next(iter(certificates.values()), None),
        )  # fmt: skip
        certified = folder is not None and folder / run_folder.CERTIFICATE in certificates
        place = _close(setup, outcome.run, metrics, folder, certified=certified) if folder else None
        unwritten = _write_metrics(as_path(request.metrics), metrics) or unwritten
    if outcome.failure:
        raise outcome.failure
    require_gpu_used(request, metrics)
    if place is not None:  # the run may have taken its place
        certificates = {place / f.name if f.parent == folder else f: digest for f, digest in certificates.items()}
    finished = FinishedJob(
        request=request, metrics=metrics, folder=place, out=job.out, certificates=certificates, setup=setup,
        go_on=partial(_resume, device=job.device),
    )  # fmt: skip
    result = replace(outcome.run, job=finished)
    if unwritten:
        unwritten.result = result
        raise unwritten
    if outcome.run.stopped:
        raise Interrupted(result)
    return result


def _resume(run: Run, steps: int, *, device: str | Device, overwrite: bool = False, events: Events = SILENT) -> Run:
    """Goes on with a run up to so many steps in all, in its folder or in memory."""
    assert run.job is not None
    setup: RolloutSetup = run.job.setup
    every = setup.strides
    request: RolloutRequest = replace(
        run.request, steps=steps, hash_every=every.hash, observe_every=every.observe, sheet_every=every.sheet or None,
        bands=every.bands, states_every=every.states or None, states_bits=every.bits if every.states else None,
    )  # fmt: skip
    job = Job(
        command=COMMAND, request=request, device=device, out=run.out, resume=run.out is not None,
        overwrite=overwrite, events=events,
    )  # fmt: skip
    if run.out is None:
        return _rollout(job, request, without_last_looks(run))
    if not run.stopped:
        run_folder.reopen_run(run.out, COMMAND, lambda file: write_checkpoint(file, setup.identity, run))
    return _rollout(job, request)


def _run(
    job: Job, request: RolloutRequest, setup: RolloutSetup, placed: Placement, folder: Path | None, resumed: Run | None
) -> _Outcome:
    every, start = setup.strides, resumed.steps if resumed else 0
    files = state_files(folder, every.states, every.bits)
    strategy, flags = _strategy(request, setup, placed)
    failure: NonFiniteError | None = None
    job.events.remark(
        f"rolling out {request.steps - start} steps of {setup.operator.kind} on {placed.device.info.name}"
    )
    with job.timed("rollout", "rollout", request.steps - start, "steps") as advance:
        work = partial(
            engine.rollout, setup.operator, setup.z0, request.steps, device=placed.device,
            observers=[*files, *request.observers, *sheet_observers(job.live, setup.operator, request.steps)],
            hash_every=every.hash,
            observe_every=every.observe, sheet_every=every.sheet, bands=every.bands, keep_every=every.keep,
            keep=partial(keep_checkpoint, folder, setup) if folder and every.keep else None, strategy=strategy,
            stop_on_nonfinite=request.stop_on_nonfinite, progress=advance, resume=resumed,
        )  # fmt: skip
        try:
            run, _ = until_interrupted(work)
        except NonFiniteError as error:
            # What came before is kept, and told, before the error is.
            failure, run = error, until_failure(error)
            error.fix = "look at the operator's spectral radius, or let it go on with `stop_on_nonfinite=False`."
    if run.reruns:
        reason = f"a poll of the tagged kernel ran out in {run.reruns} blocks"
        flags = (*flags, PerfFlag(name="tagged_rerun", requested="tagged", used="stepwise", reason=reason))
    if run.stopped and folder and failure is None:
        keep_checkpoint(folder, setup, run)
    return _Outcome(run, flags, failure)


def _strategy(request: RolloutRequest, setup: RolloutSetup, placed: Placement) -> tuple[str, tuple[PerfFlag, ...]]:
    """The strategy asked for, if it is possible here; another may be taken where falling back is allowed."""
    asked = request.strategy
    try:
        choose_strategy(setup.operator, placed.device, len(setup.z0), asked)
    except FeatureError as error:
        if not request.allow_fallback:
            raise
        used, _ = choose_strategy(setup.operator, placed.device, len(setup.z0))
        return used, (PerfFlag(name="way", requested=asked, used=used, reason=error.what),)
    return asked, ()


def _certify(
    job: Job, request: RolloutRequest, setup: RolloutSetup, folder: Path | None, outcome: _Outcome
) -> tuple[dict[Path, str], FileError | None]:
    """Writes the certificates asked for; their digests by file, and why the one beside the folder is missing."""
    run, asked, events = outcome.run, as_path(request.certificate), job.events
    if not any(taken.step % run.hash_every == 0 or not run.stopped for taken in run.hashes):
        if run.stopped:
            events.remark("it ended before the first hash: there is nothing to certify")
        return {}, None
    if outcome.failure is None and not np.isfinite(run.state).all() and (asked or folder):
        events.remark("what is certified is not finite: its bits repeat, and mean nothing")
    digests: dict[Path, str] = {}
    unwritten: FileError | None = None
    if asked is not None:
        certificate = certify(run, asked, setup.sources, _states_place(job, folder, run))
        try:
            digests[asked] = write_certificate(asked, certificate)
            _remark_if_outside(asked, certificate, events)
        except FileError as error:
            unwritten = error
    digest = certify_folder(run, folder, setup.operator, setup.z0) if folder is not None else None
    if folder is not None and digest is not None:
        digests[folder / run_folder.CERTIFICATE] = digest
    return digests, unwritten


def _states_place(job: Job, folder: Path | None, run: Run) -> Path | None:
    """Where kept states lie when the job is over: a finished run takes the place that was asked for."""
    place = folder if run.stopped else job.out
    return place / run_folder.STATES if place is not None else None


def _close(setup: RolloutSetup, run: Run, metrics: Metrics, folder: Path, *, certified: bool) -> Path:
    """Writes state, sheet and metrics, after which the folder is whole; where the run lies."""
    written = {run_folder.METRICS, run_folder.STATE}
    single = setup.z0.shape[0] == 1
    write_arrays(folder / run_folder.STATE, {"z": run.state[0] if single else run.state, "step": run.steps})
    if setup.strides.sheet:
        write_array(folder / run_folder.SHEET, run.sheet)
        written.add(run_folder.SHEET)
    if certified:
        written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
    remove_other_states(folder, run)
    write_metrics(folder / run_folder.METRICS, metrics)
    return run_folder.close_run(folder, written, finished=not run.stopped)


def _write_metrics(file: Path | None, metrics: Metrics) -> FileError | None:
    """Writes the metrics where they were asked for besides; why they are missing there."""
    try:
        if file is not None:
            write_metrics(file, metrics)
    except FileError as error:
        return error
    return None


def until_failure(error: NonFiniteError) -> Run:
    """The run up to the step after which a value was no longer finite, with that observation."""
    run: Run = error.rollout
    return replace(run, records={**run.records, "observations": (*run.observations, error.observation)})


def keep_checkpoint(folder: Path, setup: RolloutSetup, run: Run) -> None:
    """Writes where the run stands."""
    write_checkpoint(folder / run_folder.CHECKPOINT, setup.identity, run)


def _read_resume(
    folder: Path, setup: RolloutSetup, request: RolloutRequest, events: Events
) -> tuple[RolloutSetup, Run]:
    """The part of the run that the folder's checkpoint holds, and the setup that it goes on with."""
    file = folder / run_folder.CHECKPOINT
    settings = read_settings(file)
    observers = [*setup.following(settings).observers, *request.observers]
    run = read_checkpoint(file, setup.identity, setup.operator, observers, setup.z0.shape)
    require_states(folder, run, setup.z0.shape, setup.operator.dtype)
    events.remark(f"going on after {run.steps} steps")
    return setup.resumed(request, settings), run


def judge(setup: RolloutSetup, run: Run) -> Verdict | None:
    """What became of the states, where anything was observed."""
    if not run.observations:
        return None
    members = (setup.z0, run.state) if len(setup.z0) > 1 else None
    return verdict(run.observations, run.sheet if len(run.sheet) else None, members=members)


def _remark_if_outside(file: Path, certificate: Certificate, events: Events) -> None:
    """A certificate whose inputs are not beside it is harder to verify, so that is said."""
    outside = [one.name for one in certificate.inputs if one.path.startswith("../")]
    states = certificate.states.files if certificate.states else ()
    outside += [run_folder.STATES] if any(record.file.startswith("../") for record in states) else []
    if outside:
        events.remark(
            f"{file}: {', '.join(outside)} not in its folder; elsewhere verification finds them with `inputs=DIR`"
        )
