"""The work of `dashi flow evaluate`: unseen windows, rollouts, scores, kept as they are finished."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dashi.cli import flow_data
from dashi.cli.flow_evaluate import EvaluateRequest
from dashi.cli.flow_job import named_numbers
from dashi.cli.flow_scores import named, print_scores
from dashi.cli.output import print_json, remark
from dashi.cli.progress import progress
from dashi.core.placement import place
from dashi.errors import FileError, InputError
from dashi.flow.equations import Flow
from dashi.flow.evaluation import Evaluation, evaluate, perturbed, require_disjoint, save_evaluation
from dashi.flow.evaluation.continuation import continuation
from dashi.flow.evaluation.fits import Fit, load_fit
from dashi.flow.evaluation.kept import document
from dashi.flow.evaluation.overlap import require_unseen
from dashi.flow.evaluation.perturb import label, same_times
from dashi.flow.evaluation.residual import residual_line
from dashi.flow.evaluation.training import Training
from dashi.flow.proxy.carried import frame_time
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.perfect import Perfect
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import Windows, frames_in
from dashi.io import run_folder
from dashi.io.arrays import write_arrays
from dashi.io.files import unwritable, write_text
from dashi.runtime.device import Device

SUMMARY: Final = "evaluation.json"
CONTINUATION: Final = "continuation.npz"
"""The energies of the canonical figure, of the first window."""


class EvaluateJob:
    """One call of the command."""

    def __init__(self, request: EvaluateRequest) -> None:
        self.request = request
        self.fit: Fit = load_fit(request.model)
        if self.fit.training is None:
            raise FileError(
                f"{request.model} does not say what its model was trained on.", "fit it with `dashi flow fit`."
            )
        self.training: Training = self.fit.training
        for name in ("seeds", "windows"):
            if getattr(request, name) < 1:
                raise InputError(f"--{name} is {getattr(request, name)}.", "use 1 or more.")
        self.changes = [*named_numbers_each("--perturb", request.perturb)]
        if self.changes and request.source is not None:
            raise InputError("--perturb makes flows by simulation, and --from reads one.", "leave one of them away.")
        if request.out is not None:
            require_ours(request.out)
        self.done: list[Evaluation] = [*self.fit.evaluations]
        self.kept = 0

    def do(self) -> None:
        """Everything, from the windows to what is printed."""
        request = self.request
        plans = self._plans()
        stopped = False
        with place(request.device, allow_fallback=request.allow_fallback, require_gpu=request.require_gpu) as placed:
            try:
                for told, make in plans:
                    self.done.append(self._scored(told, make(placed.device), placed.device))
                    self._keep()
                    if "stopped" in self.done[-1].settings:
                        raise KeyboardInterrupt
            except KeyboardInterrupt:
                stopped = True
        self._keep(finished=not stopped)
        self._print(stopped)
        if stopped:
            raise KeyboardInterrupt

    def _plans(self) -> list[tuple[str, Callable[[Device], Windows]]]:
        """The sets of windows to score on, by what is changed in them; refused before anything is computed."""
        request, training = self.request, self.training
        if request.source is not None:
            return [("", lambda _: self._read())]
        steps = request.eval_steps if request.eval_steps is not None else 2 * training.steps
        spin_up = training.spin_up if request.start is None else request.start
        first = request.eval_seed if request.eval_seed is not None else 1 + max((0, *training.seen.seeds))
        seeds = list(range(first, first + request.seeds))
        flow = training.flow
        frames = frames_in(steps, training.interval)
        end = spin_up + (request.windows * frames - 1) * training.interval
        spans = [(spin_up * flow.dt, end * flow.dt)] * len(seeds)
        require_unseen(training.seen, seeds, spans, allow=request.allow_overlap)
        plans: list[tuple[str, Callable[[Device], Windows]]] = []
        for told, changed in [("", flow), *((label(n, v), perturbed(flow, n, v)) for n, v in self.changes)]:
            wanted = flow_data.Wanted(
                changed, same_times(flow, changed, steps), same_times(flow, changed, training.interval),
                request.windows, same_times(flow, changed, spin_up) if spin_up else 0, training.initial,
                training.options or {},
            )  # fmt: skip
            plans.append((told, _maker(f"test {told}".strip(), wanted, seeds, request.fast)))
        return plans

    def _read(self) -> Windows:
        request, training = self.request, self.training
        steps = request.eval_steps
        first = request.start or 0
        assert request.source is not None
        made = flow_data.read(request.source, training.flow, steps=steps, first=first, windows=None)
        if request.eval_seed is None:
            return made
        chosen = [j for j, s in enumerate(made.seeds) if request.eval_seed <= s < request.eval_seed + request.seeds]
        if not chosen:
            listed = ", ".join(str(seed) for seed in dict.fromkeys(made.seeds))
            raise InputError(
                f"{request.source} has no seed {request.eval_seed}; it has {listed}.",
                "choose another with --eval-seed, or leave it away.",
            )
        return made.take(chosen)

    def _models(self, told: str, windows: Windows) -> dict[str, Model]:
        """All that are compared. Where the flow is perturbed, a model that can be told of its viscosity is, too."""
        fit, training, flow = self.fit, self.training, windows.flow
        models = fit.models
        if self.request.perfect:
            models |= perfect_of(fit.model.schema, windows)
        adapt: Any = getattr(fit.model, "of_flow", None)
        if told.startswith("nu=") and adapt is not None:
            models[f"{fit.model.name}, told nu"] = adapt(replace(training.flow, nu=flow.nu))
        return models

    def _scored(self, told: str, windows: Windows, device: Device) -> Evaluation:
        request, training = self.request, self.training
        overlaps = require_disjoint(training.seen, windows, allow=request.allow_overlap)
        if overlaps:
            remark("these data overlap those trained on: what follows says nothing of unseen data")
        if not told:
            told = differs(training.flow, windows.flow)
        settings: dict[str, int | float | str] = {"train_steps": training.steps}
        settings |= {"perturbed": told} if told else {}
        settings |= {"overlap": "yes"} if overlaps else {}
        settings |= {"fast": "yes" if request.fast else "no"} if request.source is None else {}
        models = self._models(told, windows)
        remark(f"rolling out {len(models)} models from {len(windows)} window(s), {windows.frames - 1} frames")
        with progress(f"score {told}".strip(), len(models) * len(windows), "windows") as advance:
            made = evaluate(
                models, windows, device=device, split="test", train_energy=training.energy, progress=advance,
                beyond=training.steps // training.interval, settings=settings,
            )  # fmt: skip
        if request.out is not None and not told:
            arrays = continuation(made, self.fit.model, windows, device=device)
            write_arrays(request.out / CONTINUATION, arrays)
        if not request.residual or "stopped" in made.settings:
            return made
        line = residual_line(self.fit.model.name, self.fit.model, windows, device=device)
        return replace(made, lines=(*made.lines, line))

    def _keep(self, *, finished: bool = False) -> None:
        """Writes what is done; at the end, removes what an earlier evaluation left here and this one did not write."""
        out = self.request.out
        if out is None:
            return
        names = [f"evaluation-{named(one).replace(' ', '-')}" for one in self.done]
        for name, one in [*zip(names, self.done, strict=True)][self.kept :]:
            save_evaluation(out / f"{name}.npz", one)
        self.kept = len(self.done)
        told = self._document(stopped=not finished, along=False)
        write_text(out / SUMMARY, json.dumps(told, indent=1, allow_nan=False) + "\n")
        if finished:
            for old in out.glob("evaluation-*"):
                if old.name.rpartition(".")[0] not in names:
                    old.unlink()

    def _document(self, *, stopped: bool, along: bool) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "model": str(self.request.model),
            "stopped": stopped,
            "evaluations": [document(one, along=along) for one in self.done],
        }

    def _print(self, stopped: bool) -> None:
        if self.request.json:
            print_json(self._document(stopped=stopped, along=True))
            return
        print_scores(self.done)
        if self.request.out is not None:
            remark(f"wrote {self.request.out}")


def perfect_of(schema: Schema, windows: Windows) -> dict[str, Model]:
    """The ceiling: it knows the flow of the windows, perturbed or not, on their own grid. None, and told, where that
    grid does not keep the modes of z."""
    flow = windows.flow
    try:
        held = replace(schema, n=flow.n, length=flow.length)
    except InputError as error:
        remark(f"perfect is left away: {error.what}")
        return {}
    return {"perfect": Perfect(held, frame_time(windows), flow)}


def _maker(title: str, wanted: flow_data.Wanted, seeds: list[int], fast: bool) -> Callable[[Device], Windows]:
    return lambda device: flow_data.simulated(title, wanted, seeds, device, fast=fast)


def named_numbers_each(option: str, given: tuple[str, ...]) -> list[tuple[str, float]]:
    """NAME=VALUE pairs in their order; a name may come several times."""
    made: list[tuple[str, float]] = []
    for text in given:
        pair: Mapping[str, Any] = named_numbers(option, (text,))
        made += [(name, float(value)) for name, value in pair.items()]
    return made


def differs(trained: Flow, given: Flow) -> str:
    """What is other in a flow than in that of training, in words; how it is solved does not count."""
    ours, theirs = trained.parameters, given.parameters
    names = [name for name in theirs if name not in ("dtype", "scheme", "force_seed", "length")]
    return " ".join(f"{name}={theirs[name]}" for name in names if theirs[name] != ours.get(name))


def require_ours(out: Path) -> None:
    """Refuses a folder with anything in it that no run of ours left."""
    try:
        if not out.exists():
            return
        names = {path.name for path in out.iterdir() if not path.name.startswith(".")} if out.is_dir() else {"a file"}
    except OSError as error:
        raise unwritable(out, error) from error
    if names and not names & {SUMMARY, run_folder.METRICS, run_folder.SUMMARY, run_folder.CHECKPOINT}:
        raise FileError(f"{out} is there already and is not the folder of a run.", "choose another with --out.")
