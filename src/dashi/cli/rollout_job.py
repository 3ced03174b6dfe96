"""The work of `dashi rollout`: inputs, device, run, and the files that it leaves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import typer

from dashi.cli.options import typed
from dashi.cli.output import print_error, remark
from dashi.cli.progress import phase, progress
from dashi.cli.rollout import Request
from dashi.cli.rollout_report import print_report
from dashi.cli.rollout_setup import COMMAND, Setup, check_request, read_setup
from dashi.cli.stopping import stopped_lines, until_stopped
from dashi.core.certificates.certificate import Certificate, Source, write_certificate
from dashi.core.certificates.certify import certify
from dashi.core.certificates.inputs import save_inputs
from dashi.core.metrics.document import Stages, build_metrics
from dashi.core.metrics.placement import Placement, place
from dashi.core.observations.verdict import Verdict, verdict
from dashi.core.rollouts.checkpoint import read_checkpoint, read_settings, write_checkpoint
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.core.rollouts.strategies import choose_strategy
from dashi.errors import DeviceNotFoundError, FeatureError, FileError, NonFiniteError
from dashi.io import run_folder
from dashi.io.arrays import write_array, write_arrays
from dashi.io.metrics import Metrics, PerfFlag, write_metrics


class Job:
    """One call of the command."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.stages = Stages()
        self.flags: list[PerfFlag] = []
        self.failure: NonFiniteError | None = None
        self.unwritten: FileError | None = None
        """Why a file outside the run folder is missing: told when everything else is there."""

    def do(self) -> None:
        """Everything, from the inputs to what is printed."""
        request = self.request
        check_request(request)
        with self.stages.time("encode"), phase("reading"):
            setup = read_setup(request)
        with (
            place(request.device, allow_fallback=request.allow_fallback, require_gpu=request.require_gpu) as placed,
            run_folder.open_run(
                request.out,
                request.resume,
                COMMAND,
                typed(),
                settings=setup.settings(request) if request.out else None,
                overwrite=request.overwrite,
            ) as folder,
        ):
            resumed: Run | None = None
            if folder and request.resume:
                setup, resumed = read_resume(folder, setup, request)
            run = self._run(setup, placed, folder, resumed)
            judged = judge(setup, run)
            certificates = self._certify(setup, run, folder)
            metrics = build_metrics(
                COMMAND, run, placed, self.stages, verdict=judged, flags=self.flags,
                certificate=next(iter(certificates.values()), None),
            )  # fmt: skip
            left = self._leave(setup, run, metrics, folder)
        if self.failure:
            raise self.failure
        if request.require_gpu and not metrics.gpu_hotloop_active:
            raise DeviceNotFoundError("no step was executed on a GPU.", "look at `metrics`: it says what ran where.")
        shown = {left / one.name if left and one.parent == folder else one: told for one, told in certificates.items()}
        print_report(request, run, metrics, shown, left, self.unwritten)
        if self.unwritten:
            print_error(self.unwritten, as_json=False)  # with --json it is in the document: there is only one
            raise typer.Exit(3)
        if run.stopped:
            remark(*stopped_lines(request.out, left))
            raise KeyboardInterrupt

    def _run(self, setup: Setup, placed: Placement, folder: Path | None, resumed: Run | None) -> Run:
        request, strides = self.request, setup.strides
        way = self._way(setup, placed)
        start = resumed.steps if resumed else 0
        remark(f"rolling out {request.steps - start} steps of {setup.operator.kind} on {placed.device.info.name}")
        with self.stages.time("rollout"), progress("rollout", request.steps - start, "steps") as advance:
            try:
                run, _ = until_stopped(
                    lambda: rollout(
                        setup.operator,
                        setup.z0,
                        request.steps,
                        device=placed.device,
                        hash_every=strides.hash,
                        observe_every=strides.observe,
                        sheet_every=strides.sheet,
                        bands=strides.bands,
                        keep_every=strides.keep,
                        keep=partial(keep_checkpoint, folder, setup) if folder and strides.keep else None,
                        strategy=way,
                        stop_on_nonfinite=not request.keep_going,
                        progress=advance,
                        resume=resumed,
                    )
                )
            except NonFiniteError as error:
                # What came before is kept, and told, before the error is.
                self.failure, run = error, until_failure(error)
                error.fix = "look at the operator's spectral radius, or let it go on with --keep-going."
        if run.reruns:
            reason = f"a poll of the tagged kernel ran out in {run.reruns} blocks"
            self.flags.append(PerfFlag(name="tagged_rerun", requested="tagged", used="stepwise", reason=reason))
        if run.stopped and folder and not self.failure:
            keep_checkpoint(folder, setup, run)
        return run

    def _way(self, setup: Setup, placed: Placement) -> str:
        """The way asked for, if it is possible here; another may be taken where falling back is allowed."""
        asked = self.request.way
        try:
            choose_strategy(setup.operator, placed.device, len(setup.z0), asked)
        except FeatureError as error:
            if not self.request.allow_fallback:
                raise
            used, _ = choose_strategy(setup.operator, placed.device, len(setup.z0))
            self.flags.append(PerfFlag(name="way", requested=asked, used=used, reason=error.what))
            return used
        return asked

    def _certify(self, setup: Setup, run: Run, folder: Path | None) -> dict[Path, str]:
        """Writes the certificates asked for; their digests by file."""
        wanted: list[tuple[Path, dict[str, Source]]] = []
        if run.stopped and not run.hashes:
            remark("it ended before the first hash: there is nothing to certify")
            return {}
        if self.failure is None and not np.isfinite(run.state).all() and (self.request.certificate or folder):
            remark("what is certified is not finite: its bits repeat, and mean nothing")
        if self.request.certificate:
            wanted.append((self.request.certificate, setup.sources))
        if folder and run.hashes and setup.operator.portable:
            beside = save_inputs(folder / run_folder.INPUTS, setup.operator, setup.z0)
            wanted.append((folder / run_folder.CERTIFICATE, beside))
        digests: dict[Path, str] = {}
        for file, sources in wanted:
            made = certify(run, file, sources)
            try:
                digests[file] = write_certificate(file, made)
            except FileError as error:
                if file != self.request.certificate:
                    raise
                self.unwritten = error
            else:
                warn_if_outside(file, made)
        return digests

    def _leave(self, setup: Setup, run: Run, metrics: Metrics, folder: Path | None) -> Path | None:
        """Writes state, sheet and metrics; the folder is then whole, and what was asked for elsewhere follows. Gives
        where the run lies."""
        left = self._close(setup, run, metrics, folder) if folder else None
        if self.request.metrics:
            try:
                write_metrics(self.request.metrics, metrics)
            except FileError as error:
                self.unwritten = error
        return left

    def _close(self, setup: Setup, run: Run, metrics: Metrics, folder: Path) -> Path:
        written = {run_folder.METRICS, run_folder.STATE}
        single = setup.z0.shape[0] == 1
        write_arrays(folder / run_folder.STATE, {"z": run.state[0] if single else run.state, "step": run.steps})
        if setup.strides.sheet:
            write_array(folder / run_folder.SHEET, run.sheet)
            written.add(run_folder.SHEET)
        if (folder / run_folder.CERTIFICATE).exists() and run.hashes and setup.operator.portable:
            written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
        write_metrics(folder / run_folder.METRICS, metrics)
        return run_folder.close_run(folder, written, finished=not run.stopped)


def until_failure(error: NonFiniteError) -> Run:
    """The run up to the step after which a value was no longer finite, with that observation."""
    run: Run = error.rollout
    return replace(run, records={**run.records, "observations": (*run.observations, error.observation)})


def keep_checkpoint(folder: Path, setup: Setup, run: Run) -> None:
    """Writes where the run stands."""
    write_checkpoint(folder / run_folder.CHECKPOINT, setup.identity, run)


def read_resume(folder: Path, setup: Setup, request: Request) -> tuple[Setup, Run]:
    """The part of the run that the folder's checkpoint holds, and the setup that it goes on with."""
    file = folder / run_folder.CHECKPOINT
    settings = read_settings(file)
    known = setup.resumed(replace(request, hash_every=None, observe_every=None, sheet_every=None, bands=None), settings)
    done = read_checkpoint(file, setup.identity, setup.operator, known.observers, setup.z0.shape)
    remark(f"going on after {done.steps} steps")
    return setup.resumed(request, settings), done


def judge(setup: Setup, run: Run) -> Verdict | None:
    """What became of the states, where anything was observed."""
    if not run.observations:
        return None
    members = (setup.z0, run.state) if len(setup.z0) > 1 else None
    return verdict(run.observations, run.sheet if len(run.sheet) else None, members=members)


def warn_if_outside(file: Path, certificate: Certificate) -> None:
    """A certificate whose inputs are not beside it is harder to verify, so that is said."""
    outside = [one.name for one in certificate.inputs if one.path.startswith("../")]
    if outside:
        remark(f"{file}: {', '.join(outside)} not in its folder; to verify it elsewhere, use --inputs DIR")
