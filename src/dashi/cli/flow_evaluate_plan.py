"""What `dashi flow evaluate` scores on: sets of windows, checked as far as can be before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dashi.cli import flow_data
from dashi.cli.flow_evaluate import EvaluateRequest
from dashi.cli.flow_setup import named_numbers
from dashi.errors import InputError
from dashi.flow.equations import Flow
from dashi.flow.evaluation.evaluate import require_fit
from dashi.flow.evaluation.fits import Fit
from dashi.flow.evaluation.overlap import require_unseen
from dashi.flow.evaluation.perturb import label, perturbed, same_times
from dashi.flow.evaluation.training import Training
from dashi.flow.initial import INITIAL
from dashi.flow.windows import UNKNOWN, Windows, frames_in
from dashi.flow.windows.simulated import require_room
from dashi.runtime.device import Device

SEEDS = 2
"""Unless told otherwise."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A set of windows: what is changed in its flow, and what makes it on a device."""

    told: str
    make: Callable[[Device], Windows]


@dataclass(frozen=True)
class Chosen:
    """What the options come to, with their defaults: in simulations, all of it is known beforehand."""

    steps: int | None
    first_seed: int | None
    seeds: int | None
    windows: int | None
    start: int


def check(request: EvaluateRequest) -> None:
    """Refuses numbers that cannot be meant, and options that contradict each other."""
    least = {"eval_steps": 1, "seeds": 1, "windows": 1, "eval_seed": 0, "start": 0}
    for name, lowest in least.items():
        value: int | None = getattr(request, name)
        if value is not None and value < lowest:
            raise InputError(f"--{name.replace('_', '-')} is {value}.", f"use {lowest} or more.")
    if request.source is None:
        flow_data.Naming.of(request.variable, request.dims, None)
        return
    given = {"--perturb": request.perturb, "--fast": request.fast}
    for name in [name for name, value in given.items() if value]:
        raise InputError(f"{name} is for simulations, and --from reads what is there.", "leave one of them away.")


def chosen(request: EvaluateRequest, training: Training) -> Chosen:
    """The options with their defaults."""
    if request.source is not None:
        return Chosen(request.eval_steps, request.eval_seed, request.seeds, request.windows, request.start or 0)
    return Chosen(
        2 * training.steps if request.eval_steps is None else request.eval_steps,
        1 + max((0, *training.data.seeds)) if request.eval_seed is None else request.eval_seed,
        SEEDS if request.seeds is None else request.seeds,
        1 if request.windows is None else request.windows,
        training.spin_up if request.start is None else request.start,
    )


def plans_of(request: EvaluateRequest, fit: Fit, training: Training) -> list[Plan]:
    """All sets of windows, the one that nothing is changed in first."""
    what = chosen(request, training)
    if request.source is not None:
        return [Plan("", lambda _: read(request, what, training))]
    recorded = training.source if training.source != "simulation" else training.initial
    if recorded not in INITIAL:
        raise InputError(
            f"{request.model} was trained on the fields of {recorded}, and seeds make other flows than that.",
            "give --from with a run, a NetCDF file or a Zarr store to score on.",
        )
    assert what.steps is not None  # simulations have all of them
    assert what.first_seed is not None
    assert what.seeds is not None
    assert what.windows is not None
    seeds, flow = list(range(what.first_seed, what.first_seed + what.seeds)), training.flow
    frames = frames_in(what.steps, training.interval)
    end = what.start + (what.windows * frames - 1) * training.interval
    require_unseen(
        training.data, seeds, [(what.start * flow.dt, end * flow.dt)] * len(seeds), allow=request.allow_overlap
    )
    plans: list[Plan] = []
    for told, changed in [("", flow), *_changed(request, flow)]:
        wanted = flow_data.Wanted(
            changed, same_times(flow, changed, what.steps), same_times(flow, changed, training.interval),
            what.windows, same_times(flow, changed, what.start) if what.start else 0, training.initial,
            training.options or {},
        )  # fmt: skip
        for name, model in fit.models.items():
            require_fit(name, model, changed, wanted.interval)
        require_room(changed, len(seeds), what.windows, frames)
        plans.append(Plan(told, _maker(f"test {told}".strip(), wanted, seeds, request.fast)))
    return plans


def _changed(request: EvaluateRequest, flow: Flow) -> list[tuple[str, Flow]]:
    """The perturbed flows by their labels."""
    made: list[tuple[str, Flow]] = []
    for text in request.perturb:
        pair: Mapping[str, Any] = named_numbers("--perturb", (text,))
        for name, value in pair.items():
            told = label(name, float(value))
            if told in [one for one, _ in made]:
                raise InputError(f"--perturb {told} is given twice.", "give it once.")
            made.append((told, perturbed(flow, name, float(value))))
    return made


def _maker(title: str, wanted: flow_data.Wanted, seeds: list[int], fast: bool) -> Callable[[Device], Windows]:
    return lambda device: flow_data.simulated(title, wanted, seeds, device, fast=fast)


def read(request: EvaluateRequest, what: Chosen, training: Training) -> Windows:
    """The windows of --from; with --eval-seed or --seeds, those of some of its seeds."""
    assert request.source is not None
    made = flow_data.read(
        request.source, training.flow, steps=what.steps, first=what.start, windows=what.windows,
        naming=flow_data.Naming.of(request.variable, request.dims, request.source),
    )  # fmt: skip
    if what.first_seed is None and what.seeds is None:
        return made
    seeds = list(dict.fromkeys(made.seeds))
    if UNKNOWN in seeds:
        raise InputError(
            f"{request.source} has no seeds: they belong to runs of `dashi flow simulate` from a named start.",
            "leave --eval-seed and --seeds away.",
        )
    first = min(seeds) if what.first_seed is None else what.first_seed
    asked = [seed for seed in sorted(seeds) if seed >= first][: what.seeds]
    if first not in seeds or len(asked) < (what.seeds or 1):
        many = f"{what.seeds} seeds from {first} on" if first in seeds else f"seed {first}"
        raise InputError(
            f"{request.source} does not have {many}; it has {', '.join(map(str, seeds))}.",
            "choose others with --eval-seed and --seeds, or leave both away.",
        )
    return made.take([j for j, seed in enumerate(made.seeds) if seed in asked])
