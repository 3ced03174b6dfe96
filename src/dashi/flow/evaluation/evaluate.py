"""`evaluate`: models rolled out from the first frames of windows, then scored against what followed.

A model is given z0 and a number of frames, nothing else; the reference is read afterwards, to score.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dashi.core.rollouts._interrupt import deferred_interrupt
from dashi.errors import InputError, Interrupted, NonFiniteError, ShapeError
from dashi.flow._resample import resample
from dashi.flow.equations import Flow
from dashi.flow.evaluation._parts import EvaluationPart, combined
from dashi.flow.evaluation._window import Scored, WindowScores
from dashi.flow.evaluation.overlap import require_disjoint
from dashi.flow.evaluation.result import THRESHOLDS, Evaluation, Line
from dashi.flow.evaluation.scores import Reference, carried_shells, horizons
from dashi.flow.grid import Floats
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.lowpass import decode
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import VERSION
from dashi.flow.windows import Windows
from dashi.runtime.device import Device
from dashi.runtime.using import using_device

SEEN: Final = ("train", "validation")
"""Splits that the models have seen, as everything says that is made of their scores."""
LIMIT: Final = 10.0
"""Energies above so many times the largest of the training data are not admissible."""
_POINTS: Final = 1 << 22
"""Points of decoded fields that are held at a time."""


def evaluate(
    models: Mapping[str, Model], windows: Windows, *, device: Device | str, split: str,
    train_energy: float | None = None, progress: Callable[[int], None] | None = None, beyond: int = 0,
    settings: Mapping[str, int | float | str] | None = None, allow_overlap: bool = False,
) -> Evaluation:  # fmt: skip
    """All models, by the names to show, on the same windows.

    `split` says what the windows are to the models: `train`, `validation`, or `test`. Windows of a test that overlap
    what one of the models was fitted to are refused, unless `allow_overlap`: then `settings["overlap"]` says so.

    `train_energy` is the largest energy of the training data (the windows' own at their start, unless given), which
    decides what is admissible; `progress` is told of windows, len(models) times len(windows) in all. `beyond` is how
    many frames a rollout goes on after the reference ends. A model of another grid sees the windows resampled to its
    own, and its fields are resampled back. Ctrl-C raises Interrupted, whose `partial` is the Evaluation of the models
    that are finished: `stopped`, or `interrupted` if it came while the last of them ran.
    """
    try:
        part = evaluate_part(
            models, windows, device=device, split=split, train_energy=train_energy, progress=progress, beyond=beyond,
            settings=settings, allow_overlap=allow_overlap,
        )  # fmt: skip
    except Interrupted as stop:
        raise Interrupted(None if stop.partial is None else combined([stop.partial])) from None
    return combined([part])


def evaluate_part(
    models: Mapping[str, Model], windows: Windows, *, device: Device | str, split: str,
    train_energy: float | None = None, progress: Callable[[int], None] | None = None, beyond: int = 0,
    settings: Mapping[str, int | float | str] | None = None, allow_overlap: bool = False, among: int | None = None,
) -> EvaluationPart:  # fmt: skip
    """`evaluate`, of windows that are some of `among` (of all of them, unless told). Without `train_energy` what is
    admissible would depend on which they are. Ctrl-C raises Interrupted, whose `partial` is an EvaluationPart."""
    if not models:
        raise InputError("there is no model to evaluate.", "pass at least one.")
    if windows.frames < 2:
        raise InputError("the windows have one frame, their start: nothing is left to foresee.", "use longer ones.")
    for name, model in models.items():
        require_fit(name, model, windows.flow, windows.interval)
    overlaps = split not in SEEN and _overlaps(models, windows, allow=allow_overlap)
    with using_device(device) as opened:
        pinned = {name: model.pinned(opened, among or len(windows)) for name, model in models.items()}
        part = _evaluated(
            pinned, windows, opened, split, train_energy, progress, beyond, {"overlap": "yes"} if overlaps else {}
        )
    evaluation = replace(part.evaluation, settings={**part.evaluation.settings, **(settings or {})})
    part = replace(part, evaluation=evaluation)
    if evaluation.stopped or evaluation.interrupted:
        raise Interrupted(part)
    return part


def _overlaps(models: Mapping[str, Model], windows: Windows, *, allow: bool) -> bool:
    """Whether the windows overlap what one of the models was fitted to; refused unless allowed."""
    known = {id(model.training): model.training.data for model in models.values() if model.training is not None}
    found = [require_disjoint(seen, windows, allow=allow) for seen in known.values()]
    return any(found)


def _evaluated(
    models: Mapping[str, Model], windows: Windows, device: Device, split: str, train_energy: float | None,
    progress: Callable[[int], None] | None, beyond: int, settings: Mapping[str, int | float | str],
) -> EvaluationPart:  # fmt: skip
    """The evaluation of the models that were finished."""
    reference = Reference(windows.flow, windows.fields)
    largest = float(reference.energy[:, 0].max()) if train_energy is None else train_energy
    run = _SharedEvaluation(windows, reference, device, LIMIT * largest, beyond, progress or (lambda _: None))
    scored, interrupted = _finished(models, run)
    lines = tuple(each.line for each in scored)
    cuts = {model.schema.k_cut for model in models.values()}
    settings_used: dict[str, int | float | str] = {
        "k_cut": max(cuts), "schema": VERSION, "interval": windows.interval, "train_energy": largest,
        "device": device.info.name,
    }  # fmt: skip
    spectra = reference.measured[0][:, -1]
    evaluation = Evaluation(
        split=split,
        times=windows.times,
        seeds=windows.seeds,
        starts=windows.starts,
        lines=lines,
        energy=reference.energy,
        enstrophy=reference.enstrophy,
        spectrum=spectra.mean(0),
        parameters=windows.flow.parameters,
        settings={**settings_used, **settings},
        stopped=len(lines) < len(models),
        interrupted=interrupted and len(lines) == len(models),
    )
    return EvaluationPart(
        evaluation, spectra, tuple(each.spectra for each in scored), tuple(each.notes for each in scored)
    )


@dataclass(frozen=True, eq=False)
class _ScoredLine:
    """A line, with what means over windows are made of."""

    line: Line
    spectra: Floats
    notes: tuple[str, ...]


def _finished(models: Mapping[str, Model], run: _SharedEvaluation) -> tuple[tuple[_ScoredLine, ...], bool]:
    """The lines of the models that were scored before Ctrl-C came, and whether it did."""
    lines: list[_ScoredLine] = []
    stopped = False
    with deferred_interrupt() as interrupt:
        for name, model in models.items():
            try:
                lines.append(run.line(name, model))
            except KeyboardInterrupt:
                stopped = True
            if stopped or interrupt.asked:
                break
    if not lines:
        raise Interrupted
    return tuple(lines), stopped or interrupt.asked


def require_fit(name: str, model: Model, flow: Flow, interval: int) -> None:
    """Refuses a model of another box, or with frames at other times; `interval` is in steps of the flow."""
    schema = model.schema
    if abs(flow.length - schema.length) > 1e-6 * flow.length:
        raise InputError(
            f"{name} is for a box of {schema.length:g}, the windows are of one of {flow.length:g}.",
            "evaluate it on flows in its own box.",
        )
    ratio = interval * flow.dt / model.interval
    if round(ratio) < 1 or abs(ratio - round(ratio)) > 1e-6 * ratio:
        raise InputError(
            f"{name} makes a frame every {model.interval:g}, the windows have one every {interval * flow.dt:g} of flow "
            "time.",
            f"use windows with a frame every {model.interval:g}, or a multiple of it.",
        )
    if flow.n <= 2 * schema.k_cut:
        raise ShapeError(
            f"{name} holds modes up to {schema.k_cut:g}, which a grid of {flow.n} x {flow.n} points does not.",
            "evaluate it on a finer grid.",
        )


@dataclass(frozen=True, eq=False)
class _SharedEvaluation:
    """What all models of an evaluation share."""

    windows: Windows
    reference: Reference
    device: Device
    limit: float
    beyond: int
    progress: Callable[[int], None]

    def line(self, name: str, model: Model) -> _ScoredLine:
        windows, frames = self.windows, self.windows.frames
        every = round(windows.interval * windows.flow.dt / model.interval)
        z0 = self._start(model)
        began = time.perf_counter()
        rolled, notes = _rolled(model, z0, (frames - 1 + self.beyond) * every, self.device)
        seconds = time.perf_counter() - began
        parts = [self._scored(model, rolled[w, ::every], w) for w in range(len(windows))]
        scores = {key: np.stack([part.series[key] for part in parts]) for key in parts[0].series}
        spectra = np.stack([part.spectrum for part in parts])
        line = Line(
            model=name,
            numbers=model.state_size,
            horizons=horizons(scores["correlation"], windows.times, THRESHOLDS),
            failures=tuple(part.failure for part in parts),
            spectrum=np.mean(spectra, axis=0),
            seconds=seconds,
            device=model.where(self.device, len(windows)),
            story=model.description,
            continued=np.stack([part.continued for part in parts]),
            **scores,
        )
        return _ScoredLine(line, spectra, notes)

    def _start(self, model: Model) -> Floats:
        """z0 of all windows: the first frame, and of it what the schema holds."""
        first = resample(self.windows.fields[:, 0], model.schema.n)
        return encode(model.schema, np.ascontiguousarray(first), device=self.device)

    def _scored(self, model: Model, states: Floats, w: int) -> Scored:
        """The scores of one window, from its z (frames and those beyond, D), or its fields."""
        carried = carried_shells(model.schema.k_cut, self.reference.spectra.count)
        scores = WindowScores(self.reference, w, len(states), carried)
        for at, fields in _decoded(model, states, self.device):
            scores.add(at, resample(fields, self.windows.flow.n))
        self.progress(1)
        return scores.close(self.limit)


def _rolled(model: Model, z0: Floats, frames: int, device: Device) -> tuple[Floats, tuple[str, ...]]:
    """The rollout, as z or as fields, and for each window what stopped it. The model gets a copy of z0: it has nothing
    else to read from. One that knows more of its fields than the modes of z has a method `rollout_fields`. Where a
    rollout of several windows is stopped, each is rolled out alone: what becomes of one says nothing of the others."""
    own: Callable[..., Floats] | None = getattr(model, "rollout_fields", None)
    size = (model.schema.n, model.schema.n) if own else (model.schema.size,)
    shape = (len(z0), frames + 1, *size)
    try:
        states = (own or model.rollout)(z0.copy(), frames, device=device, stop_on_nonfinite=False)
    except NonFiniteError as error:
        if len(z0) == 1:
            return np.full(shape, np.nan, z0.dtype), (error.what,)
        alone = [_rolled(model, z0[w : w + 1], frames, device) for w in range(len(z0))]
        return np.concatenate([one for one, _ in alone]), sum((notes for _, notes in alone), ())
    if states.shape != shape:
        raise ShapeError(
            f"the rollout of {model.name} has shape {states.shape} instead of {shape}.",
            "a model gives all frames of z of its schema, z0 first.",
        )
    return states, ("",) * len(z0)


def _decoded(model: Model, states: Floats, device: Device) -> Generator[tuple[Floats, Floats]]:
    """Frames of z that are finite, and their fields, some at a time; fields as they are."""
    finite = np.flatnonzero(np.isfinite(states).reshape(len(states), -1).all(-1))
    most = max(1, _POINTS // model.schema.n**2)
    for first in range(0, len(finite), most):
        some = finite[first : first + most]
        values = np.ascontiguousarray(states[some])
        yield some, values if states.ndim == 3 else decode(model.schema, values, device=device)
