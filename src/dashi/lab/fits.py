"""`fit`: a model of proxies from simulated or recorded flow, with its baselines and their scores, in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dashi.core.metrics._placement import Placement
from dashi.errors import InputError, Interrupted
from dashi.flow._initial_files import states_from_file
from dashi.flow.evaluation import Evaluation, Seen, evaluate, largest_energy
from dashi.flow.evaluation._fits import Fit, fit_model, wanted_baselines
from dashi.flow.evaluation._training import Training
from dashi.flow.proxy.encode import choose_anchors
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import UNKNOWN, Windows, frames_in, split_windows
from dashi.lab._arguments import require_request
from dashi.lab._fit_files import FitFile
from dashi.lab._flow_windows import WindowPlan, read_with_remarks, simulate_windows
from dashi.lab._job import AnyPath, Job, as_path, interrupted_with, until_interrupted
from dashi.lab._score_tables import ScoreTables, ScoreText, share_remark
from dashi.lab.events import SILENT, Events
from dashi.lab.fit_setup import FitRequest, check_fit, check_models, check_recorded
from dashi.runtime._notebook import html_facts
from dashi.runtime.device import Device


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model with its baselines, what it was trained on and its scores there, and the file that holds them."""

    request: FitRequest
    fit: Fit
    path: Path | None
    """The file; of a fit that was stopped it lies beside the one asked for. None where nothing was written."""
    stopped: bool = False

    @property
    def model(self) -> Model:
        return self.fit.model

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """Scores on training and validation windows."""
        return self.fit.evaluations

    def table(self) -> ScoreTables:
        """The scores on the data that were seen, as a table for each set of windows."""
        return ScoreTables(tuple(ScoreText.of(one) for one in self.evaluations))

    def __repr__(self) -> str:
        where = f", path={str(self.path)!r}" if self.path else ""
        return f"FittedModel({self.model.name}: {self.model.description}{', stopped' if self.stopped else ''}{where})"

    def _repr_html_(self) -> str:
        facts = [("model", self.model.name), ("fitted", self.model.description), ("file", self.path or "none")]
        facts += [("baselines", ", ".join(self.fit.baselines))] if self.fit.baselines else []
        facts += [("stopped", "before all was fitted and scored")] if self.stopped else []
        return html_facts("Fitted model", facts) + self.table()._repr_html_()  # pyright: ignore[reportPrivateUsage]


@interrupted_with(FittedModel)
def fit(
    request: FitRequest, *, device: str | Device = "auto", out: AnyPath | None = None, events: Events = SILENT
) -> FittedModel:
    """Fits a model to windows, then the baselines that it will be compared with, and scores all on the data seen.

    `out` is the file to write. It is replaced when the fit is finished; what there is so far lies beside it. What must
    be chosen is chosen on validation windows. A FileError that comes at the end, because `out` cannot be written, has
    the FittedModel as its `result`. Ctrl-C raises Interrupted; once the model is fitted, `partial` is the FittedModel.
    """
    require_request(request, FitRequest)
    if request.shard is not None:
        raise InputError("`shard=` makes data to fit to, and no model.", "use dashi.lab.fit_data, and then merge.")
    return _fit(request, device, as_path(out), events)


def fit_to(
    request: FitRequest, record: Windows, *, device: str | Device = "auto", out: AnyPath | None = None,
    events: Events = SILENT,
) -> FittedModel:  # fmt: skip
    """`fit`, to windows of the seeds of a request that were simulated before."""
    return _fit(request, device, as_path(out), events, record)


def _fit(
    request: FitRequest, device: str | Device, out: Path | None, events: Events, record: Windows | None = None
) -> FittedModel:
    job = Job(command="flow fit", request=request, device=device, out=out, events=events)
    check_fit(request, job.out)
    work = _FitWork(job, request, record)
    try:
        with job.place() as placed:
            result = work.fitted(placed)
    except KeyboardInterrupt:
        raise Interrupted(work.so_far(stopped=True)) from None
    failure = work.file.failure
    if failure is not None:
        failure.result = result
        raise failure
    if result.stopped:
        raise Interrupted(result)
    return result


@dataclass(frozen=True, eq=False)
class _Data:
    """What models are fitted to."""

    schema: Schema
    train: Windows
    validation: Windows | None


class _FitWork:
    """One fit under way."""

    def __init__(self, job: Job, request: FitRequest, record: Windows | None = None) -> None:
        self.job, self.request, self.events, self.record = job, request, job.events, record
        self.baselines, left_away = wanted_baselines(request.baselines)
        if left_away:
            self.events.remark(left_away)
        self.file = FitFile(job.out)
        self._fit: Fit | None = None

    def so_far(self, *, stopped: bool) -> FittedModel | None:
        """What there is; None before the model is fitted."""
        return None if self._fit is None else FittedModel(self.request, self._fit, self.file.path, stopped)

    def fitted(self, placed: Placement) -> FittedModel:
        device, request = placed.device, self.request
        data = self._data(device)
        training = self._training(data)
        model = self._model(request.model, data, device, request.model_options)
        self._fit = Fit(model, {}, training)
        stopped = self._complete(self._fit, data, training, device)
        return FittedModel(request, self._fit, self.file.path, stopped)

    def _data(self, device: Device) -> _Data:
        """Windows, and how z is laid out; whatever can be refused is, before a step is made."""
        request = self.request
        if request.source is None:
            flow, frames = request.simulated_flow, frames_in(request.train_steps, request.interval)
            schema = check_models(request, flow, frames, self.baselines, device)
            train, validation = self._simulated(device)
        else:
            train, validation = self._read()
            schema = check_models(request, train.flow, train.frames, self.baselines, device)
        if validation is None:
            self.events.remark("no validation windows: what would be chosen on them keeps its default")
        remark = share_remark(schema, train)
        if remark:
            self.events.remark(remark)
        if request.anchors:
            schema = choose_anchors(schema, train.fields, request.anchors, device=device)
        return _Data(schema, train, validation)

    def _read(self) -> tuple[Windows, Windows | None]:
        request = self.request
        assert request.path is not None  # _data saw to it
        record = read_with_remarks(
            request.path, request.flow, steps=request.train_steps, first=request.first_step, windows=request.windows,
            naming=request.naming, events=self.events,
        )  # fmt: skip
        check_recorded(request, record)
        return split_windows(record, request.train, request.validate)

    def _simulated(self, device: Device) -> tuple[Windows, Windows | None]:
        request = self.request
        train, validate = request.simulated_seeds
        record = self.record
        if record is None:
            record = simulated_data(request, [*train, *validate], device, self.events)
        windows, validation = split_windows(record, train, validate)
        if not request.from_file:
            return windows, validation
        return _without_seeds(windows), None if validation is None else _without_seeds(validation)

    def _training(self, data: _Data) -> Training:
        request, train, validation = self.request, data.train, data.validation
        return Training(
            flow=train.flow,
            interval=train.interval,
            steps=request.train_steps,
            seeds=tuple(dict.fromkeys(train.seeds)),
            validation_seeds=tuple(dict.fromkeys(validation.seeds)) if validation is not None else (),
            data=Seen.of(train, validation),
            energy=largest_energy(train, validation),
            source=str(request.source) if request.source else "simulation",
            spin_up=request.first_step,
            initial=request.start,
            options=request.initial_options,
        )

    def _model(self, name: str, data: _Data, device: Device, options: Mapping[str, Any]) -> Model:
        train = data.train
        self.events.remark(f"fitting {name} to {len(train)} window(s) of {train.frames} frames")
        with self.events.progress(f"fit {name}", None, "parts") as advance:
            model = fit_model(
                name, data.schema, train, data.validation, device=device, progress=advance, options=options
            )
        self.events.remark(f"{name}: {model.description}")
        return model

    def _complete(self, fit: Fit, data: _Data, training: Training, device: Device) -> bool:
        """Adds baselines and scores, on disk as they come; whether Ctrl-C came before all were there."""
        stopped = False
        try:
            self._keep(fit)
            for name in self.baselines:
                if name != fit.model.name:
                    fit = replace(fit, baselines={**fit.baselines, name: self._model(name, data, device, {})})
                    self._keep(fit)
            for split, windows in (("train", data.train), ("validation", data.validation)):
                if windows is not None and not stopped:
                    scores, stopped = self._scored(fit.models, windows, split, training, device)
                    fit = replace(fit, evaluations=(*fit.evaluations, scores))
                    self._keep(fit)
        except KeyboardInterrupt:
            stopped = True
        if stopped:
            self._keep(fit)
        else:
            self.file.finish(fit)
        return stopped

    def _keep(self, fit: Fit) -> None:
        self._fit = fit
        self.file.grow(fit)

    def _scored(
        self, models: Mapping[str, Model], windows: Windows, split: str, training: Training, device: Device
    ) -> tuple[Evaluation, bool]:
        """The scores, and whether Ctrl-C came."""
        settings: dict[str, int | float | str] = {"train_steps": training.steps}
        settings |= {"fast": "yes" if self.request.host_fft else "no"} if self.request.source is None else {}
        with self.events.progress(f"score on {split}", len(models) * len(windows), "windows") as advance:
            return until_interrupted(
                lambda: evaluate(
                    models, windows, device=device, split=split, train_energy=training.energy, progress=advance,
                    settings=settings,
                )
            )  # fmt: skip


def simulated_data(
    request: FitRequest, seeds: Sequence[int], device: Device, events: Events, part: range | None = None
) -> Windows:
    """The windows of all these seeds, or of a part of them."""
    flow = request.simulated_flow
    plan = WindowPlan(
        flow, request.train_steps, request.interval, request.windows or 1, request.first_step, request.start,
        request.initial_options,
    )  # fmt: skip
    own = range(len(seeds)) if part is None else part
    if request.from_file:
        states = states_from_file(Path(request.start), flow)
        if len(states) < len(seeds):
            train, validate = request.simulated_seeds
            raise InputError(
                f"{request.initial} holds {len(states)} field(s), and {len(train)} for training and "
                f"{len(validate)} for validation were asked for.",
                "use fewer seeds (`validate=0` will do), or a file of (members, n, n).",
            )
        plan = replace(plan, states=states[own.start : own.stop])
    return simulate_windows(
        "train", plan, list(seeds)[own.start : own.stop], device, host_fft=request.host_fft, events=events
    )


def _without_seeds(windows: Windows) -> Windows:
    """Windows that no seed made: their start was a file."""
    return replace(windows, seeds=(UNKNOWN,) * len(windows))
