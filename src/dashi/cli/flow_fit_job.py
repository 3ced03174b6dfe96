"""The work of `dashi flow fit`: windows, the model, its baselines, their scores on what was seen, one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dashi.cli import flow_data
from dashi.cli.flow_fit import FitRequest
from dashi.cli.flow_job import flow_of, named_numbers
from dashi.cli.flow_scores import print_scores
from dashi.cli.output import print_json, remark
from dashi.cli.progress import progress
from dashi.core.placement import place
from dashi.errors import FileError, InputError
from dashi.flow.evaluation import Evaluation, Seen, evaluate, largest_energy
from dashi.flow.evaluation.fits import Fit, fit_model, known_models, save_fit, wanted_baselines
from dashi.flow.evaluation.kept import document
from dashi.flow.evaluation.training import Training
from dashi.flow.proxy.encode import choose_anchors
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import Windows
from dashi.io.arrays import read_arrays
from dashi.runtime.device import Device


class FitJob:
    """One call of the command."""

    def __init__(self, request: FitRequest) -> None:
        self.request = request
        self._check()
        self.baselines, told = wanted_baselines(request.baselines)
        if told:
            remark(told)
        self.options = model_options(request.model_options)
        self.initial = named_numbers("--set", request.options)

    def do(self) -> None:
        """Everything, from the data to what is printed."""
        request = self.request
        with place(request.device, allow_fallback=request.allow_fallback, require_gpu=request.require_gpu) as placed:
            train, validation = self._windows(placed.device)
            training = self._training(train, validation)
            schema = Schema(train.flow.n, request.k_cut, length=train.flow.length)
            if request.anchors:
                schema = choose_anchors(schema, train.fields, request.anchors, device=placed.device)
            model = self._fitted(request.model, schema, train, validation, placed.device, self.options)
            fit, stopped = self._whole(model, schema, train, validation, training, placed.device)
        self._print(fit)
        if stopped:
            raise KeyboardInterrupt

    def _check(self) -> None:
        request = self.request
        for name in ("train_steps", "seeds", "windows", "frame_every"):
            value: int | None = getattr(request, name)
            if value is not None and value < 1:
                raise InputError(f"--{name.replace('_', '-')} is {getattr(request, name)}.", "use 1 or more.")
        for name in ("validation_seeds", "spin_up", "anchors"):
            if getattr(request, name) < 0:
                raise InputError(f"--{name.replace('_', '-')} is {getattr(request, name)}.", "use 0 or more.")
        if request.model not in known_models():
            raise InputError(f"there is no model {request.model!r}.", f"use one of {', '.join(known_models())}.")
        # Whatever is there is replaced only if it is an earlier fit.
        if request.out.exists() and not _is_fit(request.out):
            raise FileError(f"{request.out} is there already and is no model.", "choose another with --out.")

    def _windows(self, device: Device) -> tuple[Windows, Windows | None]:
        request = self.request
        if request.source is not None:
            made = flow_data.read(
                request.source, flow_of(request), steps=request.train_steps, first=request.spin_up,
                windows=request.windows,
            )  # fmt: skip
            train, validation = flow_data.split(made, request.train_seed, request.seeds, request.validation_seeds)
        else:
            wanted = flow_data.Wanted(
                flow_of(request), request.train_steps, request.frame_every, request.windows or 1, request.spin_up,
                request.initial, self.initial,
            )  # fmt: skip
            first = request.seed
            seeds = list(range(first, first + request.seeds + request.validation_seeds))
            made = flow_data.simulated("train", wanted, seeds, device, fast=request.fast)
            train, validation = flow_data.split(made, first, request.seeds, request.validation_seeds)
        if validation is None:
            remark("no validation windows: what would be chosen on them keeps its default")
        return train, validation

    def _training(self, train: Windows, validation: Windows | None) -> Training:
        request = self.request
        chosen = tuple(dict.fromkeys(validation.seeds)) if validation is not None else ()
        return Training(
            flow=train.flow,
            interval=train.interval,
            steps=request.train_steps,
            seeds=tuple(dict.fromkeys(train.seeds)),
            validation_seeds=chosen,
            seen=Seen.of(train, validation),
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
        remark(f"{name}: {made.story}")
        return made

    def _whole(
        self, model: Model, schema: Schema, train: Windows, validation: Windows | None, training: Training,
        device: Device,
    ) -> tuple[Fit, bool]:  # fmt: skip
        """The fit with its baselines and scores, written; as far as it came, if Ctrl-C was pressed."""
        fitted: dict[str, Model] = {}
        scores: list[Evaluation] = []
        stopped = False
        try:
            for name in self.baselines:
                if name != model.name:
                    fitted[name] = self._fitted(name, schema, train, validation, device, {})
            every = {model.name: model, **fitted}
            for split, windows in (("train", train), ("validation", validation)):
                if windows is not None:
                    scores.append(self._scored(every, windows, split, training, device))
        except KeyboardInterrupt:
            stopped = True
        fit = Fit(model, fitted, training, tuple(scores))
        save_fit(self.request.out, fit)
        return fit, stopped or any("stopped" in one.settings for one in scores)

    def _scored(
        self, models: Mapping[str, Model], windows: Windows, split: str, training: Training, device: Device
    ) -> Evaluation:
        settings: dict[str, int | float | str] = {"train_steps": training.steps}
        settings |= {"fast": "yes" if self.request.fast else "no"} if self.request.source is None else {}
        with progress(f"score on {split}", len(models) * len(windows), "windows") as advance:
            return evaluate(
                models, windows, device=device, split=split, train_energy=training.energy, progress=advance,
                settings=settings,
            )  # fmt: skip

    def _print(self, fit: Fit) -> None:
        if self.request.json:
            print_json(
                {
                    "file": str(self.request.out),
                    "model": fit.model.name,
                    "story": fit.model.story,
                    "numbers": fit.model.numbers,
                    "baselines": list(fit.baselines),
                    "seeds": list(fit.training.seeds) if fit.training else [],
                    "validation_seeds": list(fit.training.validation_seeds) if fit.training else [],
                    "evaluations": [document(one) for one in fit.evaluations],
                }
            )
            return
        print_scores(fit.evaluations)
        remark(f"wrote {self.request.out}")


def _is_fit(path: Path) -> bool:
    try:
        return path.is_file() and "model" in read_arrays(path)
    except FileError:
        return False


def model_options(given: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE pairs; what is not a number is a word."""
    made: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or not value:
            raise InputError(f"--option {text} is not NAME=VALUE.", "write for instance --option factor=1.")
        try:
            made |= named_numbers("--option", (text,))
        except InputError:
            made[name] = value
    return made
