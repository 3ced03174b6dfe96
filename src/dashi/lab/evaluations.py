"""`evaluate`: a fitted model on data that it never saw, beside its baselines; scores kept as they are finished."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dashi.errors import DashiError, FileError, InputError, Interrupted
from dashi.flow.equations import Flow
from dashi.flow.evaluation import Evaluation, require_disjoint
from dashi.flow.evaluation._continuation import continuation
from dashi.flow.evaluation._fits import Fit, load_fit
from dashi.flow.evaluation._parts import EvaluationPart, combined
from dashi.flow.evaluation._record import EvaluationRecord, read_record
from dashi.flow.evaluation._training import Training
from dashi.flow.evaluation.evaluate import evaluate_part
from dashi.flow.evaluation.files import load_evaluation
from dashi.flow.evaluation.perturb import told_flow, told_names
from dashi.flow.evaluation.residual import residual_line
from dashi.flow.proxy._perfect import Perfect
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import frame_time
from dashi.flow.windows import Windows
from dashi.io._run_names import PARTS, SHARD
from dashi.io._run_reading import run_file
from dashi.io._shard_standing import Standing, standing_of
from dashi.io._shards import write_record
from dashi.lab._arguments import require_request
from dashi.lab._evaluation_files import COMMAND, FILES, ScoreFolder, file_name, record_of, settings_of, summary_of
from dashi.lab._job import AnyPath, Job, as_path, interrupted_with, require_results, until_interrupted
from dashi.lab._score_tables import ScoreTables, ScoreText, share_remark
from dashi.lab.evaluation_plans import (
    Chosen,
    EvaluateRequest,
    ScoredWindows,
    SharedWindows,
    check_evaluation,
    chosen,
    plans_of,
)
from dashi.lab.events import SILENT, Events
from dashi.lab.shards._evaluation_part import part_name, read_part, shard_record, write_part
from dashi.lab.shards._standing import remark_finished, require_folder
from dashi.runtime.device import Device
from dashi.types import HostArray


@dataclass(frozen=True, eq=False)
class ModelScores:
    """What an evaluation found: scores on the data that the model saw, kept with it, and on those that it did not."""

    request: EvaluateRequest
    evaluations: tuple[Evaluation, ...]
    record: EvaluationRecord
    """How the scores came about."""
    folder: Path | None
    """Where they lie; those of an evaluation that was stopped beside a finished one lie in a folder within `out`."""
    out: Path | None
    """The folder that was asked for."""
    stopped: bool = False
    """Whether Ctrl-C or an error came before all was scored."""

    def table(self) -> ScoreTables:
        """A table for each set of windows, with a row for each model."""
        return ScoreTables(tuple(ScoreText.of(one) for one in self.evaluations))

    def document(self) -> dict[str, Any]:
        """All scores as plain numbers, also along time, with the record of how they came about."""
        return summary_of(self.request, self.record, self.evaluations, stopped=self.stopped, along=True)

    def __repr__(self) -> str:
        names = ", ".join(table.title.removeprefix("windows: ") for table in self.table())
        where = f", folder={str(self.folder)!r}" if self.folder else ""
        return f"ModelScores({names}{', stopped' if self.stopped else ''}{where})"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()  # pyright: ignore[reportPrivateUsage]


@interrupted_with(ModelScores)
def evaluate(
    request: EvaluateRequest, *, device: str | Device = "auto", out: AnyPath | None = None, overwrite: bool = False,
    events: Events = SILENT,
) -> ModelScores:  # fmt: skip
    """Rolls a model and its baselines out on their own from starts that no fit saw, and scores them against what the
    flow did.

    Data that were seen are refused, unless the request allows that. With `out` scores are kept as they are finished.
    An error that comes after some of them, also that of a file which cannot be written, has the scores as its `result`.
    Ctrl-C raises Interrupted, whose `partial` are the scores so far.

    A request with a `shard` scores on the windows of that part alone, in a folder that `merge` takes; of one that is
    finished the scores are read from its folder.
    """
    require_request(request, EvaluateRequest)
    check_evaluation(request)
    if request.shard is not None:
        require_folder(request.shard, as_path(out))
    fit, training = _fit_of(request)
    if not fit.finished:
        events.remark(
            f"{request.model} is of a fit that was stopped: baselines, or scores on its own data, may be missing"
        )
    job = Job(
        command=COMMAND, request=request, device=device, out=as_path(out), overwrite=overwrite, events=events
    )  # fmt: skip
    plans, what = plans_of(request, fit, training, events), chosen(request, training)
    settings, left = settings_of(request, what), FILES
    if request.shard is not None and job.out is not None:
        settings, left = {**settings, "shard": str(request.shard)}, (*FILES, SHARD, PARTS)
        if standing_of(job.out, settings, overwrite=overwrite) is Standing.FINISHED:
            remark_finished(request.shard, job.out, events)
            return _finished_scores(request, fit, len(plans), job.out)
    with job.place() as placed:
        require_results(placed)
        with job.open_folder(settings, files=left) as place:
            record = record_of(request, what, fit, training, placed, job.out)
            work = _EvaluationWork(job, request, what, fit, training, record, ScoreFolder(place), [*fit.evaluations])
            interrupted, failure = work.score(plans, placed.device)
            whole = not interrupted and failure is None
            work.write(stopped=not whole)
            work.files.close(finished=whole)
    scores = ModelScores(request, tuple(work.done), record, work.files.folder, job.out, stopped=not whole)
    failure = failure or work.files.failure
    if failure is not None:
        failure.result = scores
        raise failure
    if interrupted:
        raise Interrupted(scores)
    return scores


def training_of(request: EvaluateRequest) -> Training:
    """What the model of a request was trained on."""
    return _fit_of(request)[1]


def _fit_of(request: EvaluateRequest) -> tuple[Fit, Training]:
    fit = load_fit(request.file)
    if fit.training is None:
        raise FileError(
            f"{request.model} does not say what its model was trained on.",
            "fit it again with `out=`, or with fit and save_model: models remember it now.",
        )
    return fit, fit.training


def _finished_scores(request: EvaluateRequest, fit: Fit, sets: int, folder: Path) -> ModelScores:
    """The scores of a shard that is finished, as its folder has them."""
    record = read_record(folder) or EvaluationRecord()
    of_fit = [load_evaluation(run_file(folder, f"{file_name(one)}.npz")) for one in fit.evaluations]
    own = [combined([read_part(run_file(folder, part_name(number)))]) for number in range(sets)]
    return ModelScores(request, (*of_fit, *own), record, folder, folder)


@dataclass(frozen=True, eq=False)
class _EvaluationWork:
    """One evaluation under way."""

    job: Job
    request: EvaluateRequest
    what: Chosen
    fit: Fit
    training: Training
    record: EvaluationRecord
    files: ScoreFolder
    done: list[Evaluation] = field(default_factory=list[Evaluation])
    """All scores so far, those on the model's own data first."""

    def score(self, plans: list[ScoredWindows], device: Device) -> tuple[bool, DashiError | None]:
        """Scores on all sets of windows, kept one by one; whether Ctrl-C came, and an error that ended it after some
        were finished."""
        for evaluation in self.done:
            self.files.add(evaluation)
        try:
            among = 0
            for number, plan in enumerate(plans):
                shared = plan.make(device)
                part, drawn, stopped = self._scored(plan.change, shared, device)
                evaluation = combined([part])
                if self.request.residual and not stopped:
                    evaluation = self._with_residual(evaluation, shared.windows, device)
                self.done.append(evaluation)
                self.files.add(evaluation, drawn)
                among = shared.among
                if self.request.shard is not None and not stopped:
                    self.files.add_file(part_name(number), partial(write_part, part=part))
                self.write(stopped=True)
                if stopped:
                    return True, None
            if self.request.shard is not None:
                record = shard_record(self.request, self.what, self.fit, device, sets=len(plans), among=among)
                self.files.add_file(SHARD, partial(write_record, record=record))
        except KeyboardInterrupt:
            return True, None
        except DashiError as error:
            if len(self.done) == len(self.fit.evaluations):
                raise
            return False, error
        return False, None

    def write(self, *, stopped: bool) -> None:
        """Writes what there is, with the document of all scores."""
        self.files.write(summary_of(self.request, self.record, self.done, stopped=stopped, along=False))

    def _scored(
        self, change: str, shared: SharedWindows, device: Device
    ) -> tuple[EvaluationPart, dict[str, HostArray] | None, bool]:
        """The scores, the data of the canonical figure where nothing was changed on purpose (of the first window of
        all), whether Ctrl-C came."""
        request, training, events, windows = self.request, self.training, self.job.events, shared.windows
        overlaps = require_disjoint(training.data, windows, allow=request.allow_overlap)
        if overlaps:
            events.remark("these data overlap those trained on: what follows says nothing of unseen data")
        changes = change or changed_parameters(training.flow, windows.flow)
        settings: dict[str, int | float | str] = {"train_steps": training.steps}
        settings |= {"perturbed": changes} if changes else {}
        settings |= {"overlap": "yes"} if overlaps else {}
        settings |= {"fast": "yes" if request.host_fft else "no"} if request.source is None else {}
        models = self._models(changes, windows)
        remark = None if changes else share_remark(self.fit.model.schema, windows)
        if remark:
            events.remark(remark)
        events.remark(f"rolling out {len(models)} models from {len(windows)} window(s), {windows.frames - 1} frames")
        with events.progress(f"score {changes}".strip(), len(models) * len(windows), "windows") as advance:
            part, stopped = until_interrupted(
                lambda: evaluate_part(
                    models, windows, device=device, split="test", train_energy=training.energy, progress=advance,
                    beyond=training.steps // training.interval, settings=settings,
                    allow_overlap=request.allow_overlap, among=shared.among,
                )
            )  # fmt: skip
        drawn = None
        if not change and (request.shard is None or request.shard.index == 1):
            with events.progress("figure of the continuation", None, ""):
                drawn = continuation(part.evaluation, self.fit.model, windows, device=device)
        return part, drawn, stopped

    def _models(self, changes: str, windows: Windows) -> dict[str, Model]:
        """All that are compared. Where the flow is perturbed, a model that can be told of its viscosity, drag or force
        is, too."""
        fit, flow = self.fit, windows.flow
        models = fit.models
        if self.request.perfect:
            models |= self._perfect(windows)
        adapt: Any = getattr(fit.model, "of_flow", None)
        names = told_names(changes)
        if names and adapt is not None:
            told = told_flow(self.training.flow, flow, names)
            models[f"{fit.model.name}, told {' '.join(names)}"] = adapt(told)
        return models

    def _perfect(self, windows: Windows) -> dict[str, Model]:
        """The ceiling; none, and a remark, where the grid of the windows does not hold the modes of z."""
        try:
            return {"perfect": perfect_model(self.fit.model.schema, windows)}
        except InputError as error:
            self.job.events.remark(f"perfect is left away: {error.what}")
            return {}

    def _with_residual(self, evaluation: Evaluation, windows: Windows, device: Device) -> Evaluation:
        """The scores with a line for drawn fine structure; without it, and a remark, where it cannot be drawn."""
        model = self.fit.model
        try:
            line = residual_line(model.name, model, windows, device=device)
        except InputError as error:
            self.job.events.remark(f"the residual is left away: {error.what}")
            return evaluation
        return replace(evaluation, lines=(*evaluation.lines, line))


def perfect_model(schema: Schema, windows: Windows) -> Perfect:
    """The full solver as a model of z: it knows the flow of the windows, perturbed or not, on their own grid."""
    flow = windows.flow
    return Perfect(replace(schema, n=flow.n, length=flow.length), frame_time(windows), flow)


def changed_parameters(trained: Flow, flow: Flow) -> str:
    """What is other in a flow than in that of training, in words; how it is solved does not count."""
    ours, theirs = trained.parameters, flow.parameters
    names = [name for name in theirs if name not in ("dtype", "scheme", "force_seed", "length")]
    return " ".join(f"{name}={theirs[name]}" for name in names if theirs[name] != ours.get(name))
