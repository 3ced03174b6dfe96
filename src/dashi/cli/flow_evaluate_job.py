"""The work of `dashi flow evaluate`: unseen windows, rollouts, scores, kept as they are finished."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from dashi.cli.flow_evaluate import EvaluateRequest
from dashi.cli.flow_evaluate_keep import COMMAND, FILES, Keeper, record_of, settings_of, summary_of
from dashi.cli.flow_evaluate_plan import check, chosen, plans_of
from dashi.cli.flow_scores import print_scores, remark_on_share
from dashi.cli.output import print_outcome, remark
from dashi.cli.progress import phase, progress
from dashi.cli.stopping import until_stopped
from dashi.core.metrics.placement import place
from dashi.errors import DashiError, FileError, InputError, NoResultError
from dashi.flow.equations import Flow
from dashi.flow.evaluation import Evaluation, evaluate, require_disjoint
from dashi.flow.evaluation.continuation import continuation
from dashi.flow.evaluation.fits import Fit, load_fit
from dashi.flow.evaluation.record import Record
from dashi.flow.evaluation.residual import residual_line
from dashi.flow.evaluation.training import Training
from dashi.flow.proxy.carried import frame_time
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.perfect import Perfect
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import Windows
from dashi.io import run_folder
from dashi.runtime.device import Device
from dashi.types import Array


class EvaluateJob:
    """One call of the command."""

    def __init__(self, request: EvaluateRequest) -> None:
        self.request = request
        check(request)
        self.fit: Fit = load_fit(request.model)
        if self.fit.training is None:
            raise FileError(
                f"{request.model} does not say what its model was trained on.",
                "fit it again, with `dashi flow fit` or with fit and save_model: models remember it now.",
            )
        if not self.fit.finished:
            remark(
                f"{request.model} is of a fit that was stopped: baselines, or scores on its own data, may be missing"
            )
        self.training: Training = self.fit.training
        self.plans = plans_of(request, self.fit, self.training)
        self.done: list[Evaluation] = [*self.fit.evaluations]
        self.failure: DashiError | None = None
        self.record = Record()

    def do(self) -> None:
        """Everything, from the windows to what is printed."""
        request, training = self.request, self.training
        with ExitStack() as stack:
            placed = stack.enter_context(
                place(request.device, allow_fallback=request.allow_fallback, require_gpu=request.require_gpu)
            )
            if placed.device.info.type == "null":
                raise NoResultError("the null device computes nothing.", "use --device auto, cpu or vulkan:0.")
            what = chosen(request, training)
            folder = stack.enter_context(
                run_folder.open_run(
                    request.out,
                    False,
                    COMMAND,
                    files=FILES,
                    settings=settings_of(request, what),
                    overwrite=request.overwrite,
                )
            )
            self.record = record_of(request, what, self.fit, training, placed)
            keeper = Keeper(request.out, folder)
            stopped = self._score(placed.device, keeper)
            whole = not stopped and self.failure is None
            keeper.write(self._summary(stopped=not whole, along=False))
            keeper.close(finished=whole)
        self._print(keeper, stopped=not whole)
        if stopped:
            raise KeyboardInterrupt

    def _score(self, device: Device, keeper: Keeper) -> bool:
        """All sets of windows, kept one by one; whether Ctrl-C came. An error ends it, and is told when what was
        finished before has been printed."""
        for one in self.done:
            keeper.add(one)
        try:
            for plan in self.plans:
                made, drawn, stopped = self._scored(plan.told, plan.make(device), device)
                self.done.append(made)
                keeper.add(made, drawn)
                keeper.write(self._summary(stopped=True, along=False))
                if stopped:
                    return True
        except KeyboardInterrupt:
            return True
        except DashiError as error:
            if len(self.done) == len(self.fit.evaluations):
                raise
            self.failure = error
        return False

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

    def _scored(self, told: str, windows: Windows, device: Device) -> tuple[Evaluation, dict[str, Array] | None, bool]:
        """The scores, the data of the canonical figure where nothing was changed on purpose, whether Ctrl-C came."""
        request, training = self.request, self.training
        overlaps = require_disjoint(training.data, windows, allow=request.allow_overlap)
        if overlaps:
            remark("these data overlap those trained on: what follows says nothing of unseen data")
        asked, told = told, told or differs(training.flow, windows.flow)
        settings: dict[str, int | float | str] = {"train_steps": training.steps}
        settings |= {"perturbed": told} if told else {}
        settings |= {"overlap": "yes"} if overlaps else {}
        settings |= {"fast": "yes" if request.fast else "no"} if request.source is None else {}
        models = self._models(told, windows)
        if not told:
            remark_on_share(self.fit.model.schema, windows)
        remark(f"rolling out {len(models)} models from {len(windows)} window(s), {windows.frames - 1} frames")
        with progress(f"score {told}".strip(), len(models) * len(windows), "windows") as advance:
            made, stopped = until_stopped(
                lambda: evaluate(
                    models, windows, device=device, split="test", train_energy=training.energy, progress=advance,
                    beyond=training.steps // training.interval, settings=settings,
                    allow_overlap=request.allow_overlap,
                )
            )  # fmt: skip
        drawn = None
        if not asked:
            with phase("figure of the continuation"):
                drawn = continuation(made, self.fit.model, windows, device=device)
        if request.residual and not stopped:
            made = with_residual(made, self.fit.model, windows, device)
        return made, drawn, stopped

    def _summary(self, *, stopped: bool, along: bool) -> dict[str, Any]:
        return summary_of(self.request, self.record, self.done, stopped=stopped, along=along)

    def _print(self, keeper: Keeper, *, stopped: bool) -> None:
        """The scores, then what went wrong: with --json in the same document, since there is only one."""
        failure = self.failure or keeper.told
        if self.request.json:
            print_outcome(self._summary(stopped=stopped, along=True), failure)
            return
        print_scores(self.done)
        if failure is not None:
            raise failure
        if keeper.folder is not None:
            remark(
                f"wrote {keeper.folder}" + ("" if keeper.folder == keeper.out else f"; {keeper.out} stays as it was")
            )


def with_residual(made: Evaluation, model: Model, windows: Windows, device: Device) -> Evaluation:
    """The scores with a line for drawn fine structure; without it, and told, where it cannot be drawn."""
    try:
        line = residual_line(model.name, model, windows, device=device)
    except InputError as error:
        remark(f"the residual is left away: {error.what}")
        return made
    return replace(made, lines=(*made.lines, line))


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


def differs(trained: Flow, given: Flow) -> str:
    """What is other in a flow than in that of training, in words; how it is solved does not count."""
    ours, theirs = trained.parameters, given.parameters
    names = [name for name in theirs if name not in ("dtype", "scheme", "force_seed", "length")]
    return " ".join(f"{name}={theirs[name]}" for name in names if theirs[name] != ours.get(name))
