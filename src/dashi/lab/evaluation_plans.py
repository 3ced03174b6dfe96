"""What an evaluation is asked for, and the sets of windows that it scores on: checked as far as can be before anything
is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dashi.errors import InputError
from dashi.flow.equations import Flow
from dashi.flow.evaluation._fits import Fit
from dashi.flow.evaluation._training import Training
from dashi.flow.evaluation.evaluate import require_fit
from dashi.flow.evaluation.overlap import require_unseen
from dashi.flow.evaluation.perturb import label, perturbed, same_times
from dashi.flow.initial import INITIAL
from dashi.flow.windows import UNKNOWN, Naming, Windows, frames_in
from dashi.flow.windows.simulated import require_room
from dashi.io._shards import Shard
from dashi.lab._flow_windows import WindowPlan, read_with_remarks, simulate_windows
from dashi.lab._job import AnyPath, Request
from dashi.lab._seeds import follow_each_other, frozen_seeds, require_seeds, seed_count
from dashi.lab.events import Events
from dashi.runtime.device import Device

SEEDS: Final = 2
"""Seeds that are simulated unless others are asked for."""
SHARED_SEEDS: Final = "seeds"
SHARED_WINDOWS: Final = "windows"
"""What is shared out: in a simulation whole seeds, of a record windows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluateRequest(Request):
    """A fitted model and its baselines, rolled out from starts that they never saw; lengths in steps of dt. There is
    nothing to resume: it takes minutes, what was scored before it was stopped is in its folder, and `seeds` and
    `perturb` choose what is missing."""

    model: AnyPath
    """The file of a fit."""
    steps: int | None = None
    """Steps of a window: twice those of training, or all of a record."""
    seeds: Sequence[int] | int | None = None
    """Seeds to score on, or how many from `first_seed` on: two in a simulation, all of a record."""
    first_seed: int | None = None
    """The first seed where `seeds` are not named: the first that training did not see, or all of a record."""
    windows: int | None = None
    """Windows of each seed, one after another: 1, or all that a record has."""
    start: int | None = None
    """The step where the first window starts: after the spin-up, or at 0 in a record."""
    source: AnyPath | None = None
    """The folder of a run, a NetCDF file or a Zarr store, instead of a simulation."""
    variables: tuple[str, ...] = ()
    """How a file names vorticity, or the velocities along x and along y."""
    dims: Mapping[str, str] = field(default_factory=dict[str, str])
    """How a file names its axes time, y, x or member."""
    perturb: tuple[tuple[str, float], ...] = ()
    """Also on flows in which one parameter (nu, drag, cs, dt, n, or a number of the force such as force_wavenumber) has
    another value."""
    perfect: bool = False
    """Also the full solver, from the start that z holds."""
    residual: bool = False
    """Also with drawn fine structure, by its spectrum alone."""
    allow_overlap: bool = False
    """Score on data that were trained on, and say so."""
    host_fft: bool = False
    """NumPy's own transforms on the device cpu: quick, not portable."""
    shard: Shard | None = None
    """Only the seeds of this part of them (of a record, the windows), in a folder that `lab.merge` takes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seeds is not None and not isinstance(self.seeds, int):
            object.__setattr__(self, "seeds", frozen_seeds("seeds", self.seeds))

    @property
    def file(self) -> Path:
        """Where the fit lies."""
        return Path(self.model)

    @property
    def path(self) -> Path | None:
        """Where the record lies, if it is one."""
        return None if self.source is None else Path(self.source)

    @property
    def naming(self) -> Naming:
        return Naming(self.variables, self.dims)


@dataclass(frozen=True, eq=False)
class ScoredWindows:
    """A set of windows: what is changed in its flow, and what makes it on a device."""

    change: str
    make: Callable[[Device], SharedWindows]


@dataclass(frozen=True, eq=False)
class SharedWindows:
    """Windows that are some of `among`; or all of them."""

    windows: Windows
    among: int


@dataclass(frozen=True)
class Chosen:
    """What a request comes to, with its defaults: in simulations, all of it is known beforehand."""

    steps: int | None
    first_seed: int | None
    seeds: int | None
    """How many, from the first on."""
    windows: int | None
    start: int
    listed: tuple[int, ...] = ()
    """Seeds by name, where they do not follow each other."""

    @property
    def simulated_seeds(self) -> Sequence[int]:
        """The seeds of a simulation; they are not counted out."""
        if self.listed:
            return self.listed
        assert self.first_seed is not None  # simulations have both
        assert self.seeds is not None
        return range(self.first_seed, self.first_seed + self.seeds)


def check_evaluation(request: EvaluateRequest) -> None:
    """Refuses numbers that cannot be meant, and parameters that contradict each other."""
    for name, lowest in {"steps": 1, "windows": 1, "first_seed": 0, "start": 0}.items():
        value: int | None = getattr(request, name)
        if value is not None and value < lowest:
            raise InputError(f"`{name}=` is {value}.", f"use {lowest} or more.")
    seeds = request.seeds
    if isinstance(seeds, int):
        if seeds < 1:
            raise InputError(f"`seeds=` is {seeds}.", "use 1 or more.")
    elif seeds is not None:
        require_seeds("seeds", seeds)
        if request.first_seed is not None:
            raise InputError("`seeds=` names seeds, and `first_seed=` too.", "leave one of them away.")
    if request.shard is not None and request.residual:
        raise InputError(
            "`residual=True` draws fine structure for all windows together, and `shard=` takes some of them.",
            "leave one of them away.",
        )
    request.naming.require_own(request.path)
    if request.source is None:
        return
    for argument, asked in {"`perturb=`": request.perturb, "`host_fft=True`": request.host_fft}.items():
        if asked:
            raise InputError(
                f"{argument} is for simulations, and `source=` reads what is there.", "leave one of them away."
            )


def chosen(request: EvaluateRequest, training: Training) -> Chosen:
    """The request with its defaults."""
    first, count, listed = request.first_seed, request.seeds, tuple[int, ...]()
    if count is not None and not isinstance(count, int):
        follow = follow_each_other(count)
        first, count, listed = (count[0], len(count), ()) if follow else (None, None, tuple(count))
    if request.source is not None:
        return Chosen(request.steps, first, count, request.windows, request.start or 0, listed)
    if not listed:
        first = 1 + max((0, *training.data.seeds)) if first is None else first
        count = SEEDS if count is None else count
    return Chosen(
        2 * training.steps if request.steps is None else request.steps,
        first,
        count,
        1 if request.windows is None else request.windows,
        training.spin_up if request.start is None else request.start,
        listed,
    )


def plans_of(request: EvaluateRequest, fit: Fit, training: Training, events: Events) -> list[ScoredWindows]:
    """All sets of windows, the one that nothing is changed in first."""
    what = chosen(request, training)
    if request.source is not None:
        return [ScoredWindows("", lambda _: _shared_record(request, what, training, events))]
    recorded = training.source if training.source != "simulation" else training.initial
    if recorded not in INITIAL:
        raise InputError(
            f"{request.model} was trained on the fields of {recorded}, and seeds make other flows than that.",
            "give `source=` a run, a NetCDF file or a Zarr store to score on.",
        )
    assert what.steps is not None  # simulations have both
    assert what.windows is not None
    flow, frames = training.flow, frames_in(what.steps, training.interval)
    require_room(flow, seed_count(what.simulated_seeds), what.windows, frames)
    seeds = list(what.simulated_seeds)
    end = what.start + (what.windows * frames - 1) * training.interval
    require_unseen(
        training.data, seeds, [(what.start * flow.dt, end * flow.dt)] * len(seeds), allow=request.allow_overlap
    )
    plans: list[ScoredWindows] = []
    for change, changed in [("", flow), *_changed(request, flow)]:
        plan = WindowPlan(
            changed, same_times(flow, changed, what.steps), same_times(flow, changed, training.interval),
            what.windows, same_times(flow, changed, what.start) if what.start else 0, training.initial,
            training.options or {},
        )  # fmt: skip
        for name, model in fit.models.items():
            require_fit(name, model, changed, plan.interval)
        require_room(changed, len(seeds), what.windows, frames)
        plans.append(ScoredWindows(change, _maker(f"test {change}".strip(), plan, seeds, request, events)))
    return plans


def shared_seeds(shard: Shard | None, seeds: Sequence[int]) -> Sequence[int]:
    """The seeds of a shard, which follow each other in the list; all, where there is none."""
    if shard is None:
        return seeds
    part = shard.part(len(seeds), SHARED_SEEDS)
    return seeds[part.start : part.stop]


def _changed(request: EvaluateRequest, flow: Flow) -> list[tuple[str, Flow]]:
    """The perturbed flows by their labels."""
    flows: list[tuple[str, Flow]] = []
    for name, value in request.perturb:
        change = label(name, float(value))
        if change in [earlier for earlier, _ in flows]:
            raise InputError(f"`perturb=` has {change} twice.", "give it once.")
        flows.append((change, perturbed(flow, name, float(value))))
    return flows


def _maker(
    title: str, plan: WindowPlan, seeds: list[int], request: EvaluateRequest, events: Events
) -> Callable[[Device], SharedWindows]:
    own, among = shared_seeds(request.shard, seeds), len(seeds) * plan.windows

    def make(device: Device) -> SharedWindows:
        windows = simulate_windows(title, plan, own, device, host_fft=request.host_fft, events=events)
        return SharedWindows(windows, among)

    return make


def _shared_record(request: EvaluateRequest, what: Chosen, training: Training, events: Events) -> SharedWindows:
    record = read_record(request, what, training, events)
    part = range(len(record)) if request.shard is None else request.shard.part(len(record), SHARED_WINDOWS)
    return SharedWindows(record if request.shard is None else record.take(part), len(record))


def read_record(request: EvaluateRequest, what: Chosen, training: Training, events: Events) -> Windows:
    """The windows of `source`; where seeds are asked for, those of some of its seeds."""
    assert request.path is not None
    record = read_with_remarks(
        request.path, training.flow, steps=what.steps, first=what.start, windows=what.windows, naming=request.naming,
        events=events,
    )  # fmt: skip
    if what.first_seed is None and what.seeds is None and not what.listed:
        return record
    seeds = list(dict.fromkeys(record.seeds))
    if UNKNOWN in seeds:
        raise InputError(
            f"{request.source} has no seeds: they belong to simulations from a named start.",
            "leave `first_seed=` and `seeds=` away.",
        )
    first = min(seeds) if what.first_seed is None else what.first_seed
    asked = list(what.listed) or [seed for seed in sorted(seeds) if seed >= first][: what.seeds]
    missing = [seed for seed in what.listed or (first,) if seed not in seeds]
    if missing or (not what.listed and len(asked) < (what.seeds or 1)):
        many = f"seed {missing[0]}" if missing else f"{what.seeds} seeds from {first} on"
        raise InputError(
            f"{request.source} does not have {many}; it has {', '.join(map(str, seeds))}.",
            "choose others with `first_seed=` and `seeds=`, or leave both away.",
        )
    return record.take([j for j, seed in enumerate(record.seeds) if seed in asked])
