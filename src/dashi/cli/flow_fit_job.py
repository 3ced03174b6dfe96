"""The work of `dashi flow fit`: windows, the model, its baselines, their scores on what was seen, one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dashi.cli import flow_data
from dashi.cli.flow_fit import FitRequest
from dashi.cli.flow_fit_keep import FitKeeper
from dashi.cli.flow_fit_setup import (
    check_models,
    check_recorded,
    check_request,
    first_seed,
    is_file,
    model_options,
)
from dashi.cli.flow_scores import print_scores, remark_on_share
from dashi.cli.flow_setup import flow_of, named_numbers, states_from
from dashi.cli.output import print_json, print_outcome, remark
from dashi.cli.progress import progress
from dashi.cli.stopping import until_stopped
from dashi.core.metrics.placement import place
from dashi.errors import InputError
from dashi.flow.evaluation import Evaluation, Seen, evaluate, largest_energy
from dashi.flow.evaluation.fits import Fit, fit_model, wanted_baselines
from dashi.flow.evaluation.kept import document
from dashi.flow.evaluation.training import Training
from dashi.flow.proxy.encode import choose_anchors
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import UNKNOWN, Windows, frames_in
from dashi.runtime.device import Device


class FitJob:
    """One call of the command."""

    def __init__(self, request: FitRequest) -> None:
        self.request = request
        check_request(request)
        self.baselines, told = wanted_baselines(request.baselines)
        if told:
            remark(told)
        self.options = model_options(request.model_options)
        self.initial = named_numbers("--set", request.options)
        self.keeper = FitKeeper(request.out)

    def do(self) -> None:
        """Everything, from the data to what is printed."""
        request = self.request
        try:
            with place(
                request.device, allow_fallback=request.allow_fallback, require_gpu=request.require_gpu
            ) as placed:
                schema, train, validation = self._data(placed.device)
                training = self._training(train, validation)
                model = self._fitted(request.model, schema, train, validation, placed.device, self.options)
                fit, stopped = self._whole(model, schema, train, validation, training, placed.device)
        except KeyboardInterrupt:
            file = self.keeper.file
            if file is None:
                remark("nothing was written: the model was not fitted yet")
            self._tell_stopped()
            if request.json:
                print_json({"file": str(file) if file else None, "model": request.model, "stopped": True})
            raise
        if stopped:
            self._tell_stopped()
        self._print(fit, stopped=stopped)
        if stopped:
            raise KeyboardInterrupt

    def _data(self, device: Device) -> tuple[Schema, Windows, Windows | None]:
        """Windows, and how z is laid out; whatever can be refused is, before a step is made."""
        request = self.request
        if request.source is None:
            flow, frames = flow_of(request), frames_in(request.train_steps, request.frame_every)
            schema = check_models(request, flow, frames, self.baselines, self.options, device)
            train, validation = self._simulated(device)
        else:
            train, validation = self._read()
            schema = check_models(request, train.flow, train.frames, self.baselines, self.options, device)
        if validation is None:
            remark("no validation windows: what would be chosen on them keeps its default")
        remark_on_share(schema, train)
        if request.anchors:
            schema = choose_anchors(schema, train.fields, request.anchors, device=device)
        return schema, train, validation

    def _read(self) -> tuple[Windows, Windows | None]:
        request = self.request
        assert request.source is not None  # _data saw to it
        made = flow_data.read(
            request.source, flow_of(request), steps=request.train_steps, first=request.spin_up,
            windows=request.windows, naming=flow_data.Naming.of(request.variable, request.dims, request.source),
        )  # fmt: skip
        check_recorded(request, made)
        return flow_data.split(made, first_seed(request, made), request.seeds, request.validation_seeds)

    def _simulated(self, device: Device) -> tuple[Windows, Windows | None]:
        request, flow = self.request, flow_of(self.request)
        first, many = request.seed, request.seeds + request.validation_seeds
        wanted = flow_data.Wanted(
            flow, request.train_steps, request.frame_every, request.windows or 1, request.spin_up, request.initial,
            self.initial,
        )  # fmt: skip
        if is_file(request):
            states = states_from(Path(request.initial), flow)
            if len(states) < many:
                raise InputError(
                    f"{request.initial} holds {len(states)} field(s), and {request.seeds} for training and "
                    f"{request.validation_seeds} for validation were asked for.",
                    "use fewer --seeds and --validation-seeds (0 will do), or a file of (members, n, n).",
                )
            wanted = replace(wanted, states=states[:many])
        made = flow_data.simulated("train", wanted, list(range(first, first + many)), device, fast=request.fast)
        train, validation = flow_data.split(made, first, request.seeds, request.validation_seeds)
        if not is_file(request):
            return train, validation
        return _unknown(train), None if validation is None else _unknown(validation)

    def _training(self, train: Windows, validation: Windows | None) -> Training:
        request = self.request
        chosen = tuple(dict.fromkeys(validation.seeds)) if validation is not None else ()
        return Training(
            flow=train.flow,
            interval=train.interval,
            steps=request.train_steps,
            seeds=tuple(dict.fromkeys(train.seeds)),
            validation_seeds=chosen,
            data=Seen.of(train, validation),
            energy=largest_energy(train, validation),
            source=str(request.source) if request.source else "simulation",
            spin_up=request.spin_up,
            initial=request.initial,
            options=self.initial,
        )

    def _fitted(
        self, name: str, schema: Schema, train: Windows, validation: Windows | None, device: Device,
        options: Mapping[str, Any],
    ) -> Model:  # fmt: skip
        remark(f"fitting {name} to {len(train)} window(s) of {train.frames} frames")
        with progress(f"fit {name}", None, "parts") as advance:
            made = fit_model(name, schema, train, validation, device=device, progress=advance, options=options)
        remark(f"{name}: {made.description}")
        return made

    def _whole(
        self, model: Model, schema: Schema, train: Windows, validation: Windows | None, training: Training,
        device: Device,
    ) -> tuple[Fit, bool]:  # fmt: skip
        """The fit with its baselines and scores, on disk as they come; as far as it came, if Ctrl-C was pressed."""
        fit = Fit(model, {}, training)
        stopped = False
        try:
            self.keeper.grow(fit)
            for name in self.baselines:
                if name != model.name:
                    made = self._fitted(name, schema, train, validation, device, {})
                    fit = replace(fit, baselines={**fit.baselines, name: made})
                    self.keeper.grow(fit)
            for split, windows in (("train", train), ("validation", validation)):
                if windows is not None and not stopped:
                    scores, stopped = self._scored(fit.models, windows, split, training, device)
                    fit = replace(fit, evaluations=(*fit.evaluations, scores))
                    self.keeper.grow(fit)
        except KeyboardInterrupt:
            stopped = True
        if stopped:
            self.keeper.grow(fit)
        else:
            self.keeper.finish(fit)
        return fit, stopped

    def _scored(
        self, models: Mapping[str, Model], windows: Windows, split: str, training: Training, device: Device
    ) -> tuple[Evaluation, bool]:
        """The scores, and whether Ctrl-C came."""
        settings: dict[str, int | float | str] = {"train_steps": training.steps}
        settings |= {"fast": "yes" if self.request.fast else "no"} if self.request.source is None else {}
        with progress(f"score on {split}", len(models) * len(windows), "windows") as advance:
            return until_stopped(
                lambda: evaluate(
                    models, windows, device=device, split=split, train_energy=training.energy, progress=advance,
                    settings=settings,
                )
            )  # fmt: skip

    def _tell_stopped(self) -> None:
        out, file = self.request.out, self.keeper.file
        if file is not None:
            stays = f"; {out} stays as it was" if out.exists() else ""
            remark(f"the model is whole and in {file}{stays}; for all baselines and scores, fit it again")

    def _print(self, fit: Fit, *, stopped: bool) -> None:
        """The scores, then what could not be written: with --json in the same document, since there is only one."""
        file, failure = self.keeper.file, self.keeper.told
        if not self.request.json:
            print_scores(fit.evaluations)
            if failure is not None:
                raise failure
            if not stopped:
                remark(f"wrote {file}")
            return
        told: dict[str, Any] = {
            "file": str(file) if file else None,
            "model": fit.model.name,
            "story": fit.model.description,
            "numbers": fit.model.state_size,
            "stopped": stopped,
            "baselines": list(fit.baselines),
            "seeds": list(fit.training.seeds) if fit.training else [],
            "validation_seeds": list(fit.training.validation_seeds) if fit.training else [],
            "evaluations": [document(one) for one in fit.evaluations],
        }
        print_outcome(told, failure)


def _unknown(windows: Windows) -> Windows:
    """Windows that no seed made: their start was a file."""
    return replace(windows, seeds=(UNKNOWN,) * len(windows))
