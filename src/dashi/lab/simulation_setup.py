"""What a simulation is asked for: the flow, where it starts, what is seen of it and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dashi.core.certificates._certificate import array_digest
from dashi.core.operators.operator import float_array
from dashi.core.rollouts._state_files import BITS
from dashi.core.rollouts.observer import Observer, require_observers
from dashi.errors import InputError, ShapeError, suggestion
from dashi.flow import initial
from dashi.flow._derived_fields import DERIVED
from dashi.flow._initial_files import is_field_file, states_from_file
from dashi.flow._trajectory_layout import FlowStrides
from dashi.flow.equations import Flow, Stochastic
from dashi.flow.grid import Floats
from dashi.io._shards import Shard
from dashi.io.arrays import LIMIT
from dashi.lab._job import Request
from dashi.lab._kept_states import check_states, claimed_stride, require_same_states
from dashi.lab._seeds import follow_each_other, frozen_seeds, require_seeds, seed_count
from dashi.runtime.device import Device

_STRIDES: Final = ("look_every", "frame_every", "hash_every")


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulateRequest(Request):
    """A flow from its initial states for so many steps of dt."""

    flow: Flow
    """Kicks of a stochastic forcing are those of `seeds`, unless `states` are passed."""
    steps: int = 1000
    seeds: Sequence[int] = (0,)
    """One for each member: it decides the initial condition, and the kicks."""
    initial: str | Path = "random"
    """The name of an initial condition, or a file that holds vorticity."""
    initial_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Numbers of a named initial condition, such as peak."""
    states: Floats | None = None
    """The initial states (members, n, n/2 + 1, 2) themselves, instead of an initial condition."""
    look_every: int | None = None
    """Steps between looks at energy, spectra and the Courant number; 0 is never, None makes 100 looks."""
    frame_every: int | None = None
    """Steps between frames in the run folder, each with a checkpoint; 0 is never, None makes 10 frames."""
    hash_every: int | None = None
    """Steps between hashes of the state; 0 is never, None makes 10 hashes."""
    states_every: int | None = None
    """Steps between states that are kept in the run folder, for its certificate: from each of them what follows can be
    verified apart."""
    states_bits: int | None = None
    """Bits of the digests of kept states: 128, or 256; 128."""
    fields: tuple[str, ...] = ("vorticity",)
    """What frames hold."""
    transfer: bool = False
    """Whether the transfer of energy between scales is measured too."""
    host_fft: bool = False
    """NumPy's own transforms on the device cpu: quick, not portable."""
    observers: tuple[Observer[Any], ...] = ()
    """What looks besides; the records of each are in `Run.records`, by its name."""
    shard: Shard | None = None
    """Only the members of this part of the ensemble, in a folder that `lab.merge` takes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "seeds", frozen_seeds("seeds", self.seeds))
        require_observers(self.observers)

    @property
    def from_file(self) -> bool:
        """Whether it starts from the fields of a file."""
        return self.states is None and is_field_file(self.initial)

    @property
    def seeded_flow(self) -> Flow:
        """The flow, kicked as its first seed says."""
        forcing = self.flow.forcing
        if self.states is not None or not isinstance(forcing, Stochastic):
            return self.flow
        return replace(self.flow, forcing=replace(forcing, seed=self.seeds[0]))


def check_simulation(request: SimulateRequest, out: Path | None) -> None:
    """Refuses what cannot be meant, before a device is opened or anything is read."""
    if request.steps < 1:
        raise InputError(f"`steps=` is {request.steps}.", "use 1 or more.")
    for name in _STRIDES:
        value: int | None = getattr(request, name)
        if value is not None and value < 0:
            raise InputError(f"`{name}=` is {value}.", "use 1 or more, or 0 for never.")
    if request.frame_every and out is None:
        raise InputError("`frame_every=` writes frames to a run folder.", "name it with `out=`, or leave it away.")
    check_states(request, out, portable=not request.host_fft)
    for name in request.fields:
        if name not in DERIVED:
            raise InputError(
                f"there is no field {name!r}.", f"{suggestion(str(name), DERIVED)}ask for some of {', '.join(DERIVED)}."
            )
    _check_seeds(request)


def _check_seeds(request: SimulateRequest) -> None:
    seeds, forcing = request.seeds, request.flow.forcing
    require_seeds("seeds", seeds)
    if request.states is not None:
        if request.initial != "random" or request.initial_options or tuple(seeds) != (0,):
            raise InputError(
                "`states=` are the start themselves.", "leave `initial=`, `initial_options=` and `seeds=` away."
            )
        return
    if request.from_file and (request.initial_options or seed_count(seeds) != 1):
        raise InputError(
            "numbers and several seeds go with a named initial condition.",
            "leave `initial_options=` and `seeds=` away with a file.",
        )
    if not isinstance(forcing, Stochastic):
        return
    if forcing.seed not in (0, seeds[0]):
        raise InputError(
            f"the forcing has the seed {forcing.seed}, and `seeds=` begins with {seeds[0]}.",
            "leave the forcing's seed away: those of the members decide the kicks too.",
        )
    if not follow_each_other(seeds):
        raise InputError(
            f"`seeds=` is {list(seeds)}, and a flow with kicks takes seeds that follow each other.",
            "use such seeds, or a run for each.",
        )


def strides_of(request: SimulateRequest, out: Path | None) -> FlowStrides:
    """The strides asked for, or their defaults."""
    tenth = max(1, request.steps // 10)

    def chosen(asked: int | None, usual: int) -> int:
        return usual if asked is None else asked

    return FlowStrides(
        look=chosen(request.look_every, max(1, request.steps // 100)),
        frame=chosen(request.frame_every, tenth) if out else 0,
        hash=claimed_stride(request.states_every, request.hash_every, tenth),
        states=request.states_every or 0,
        bits=request.states_bits or BITS[0],
    )


def resumed_strides(request: SimulateRequest, asked: FlowStrides, earlier: FlowStrides | None) -> FlowStrides:
    """Strides of the run that goes on. A default depends on how far a run goes, so only what was asked for must fit."""
    if earlier is None:
        return asked
    for name in _STRIDES:
        value, before = getattr(request, name), getattr(earlier, name.removesuffix("_every"))
        if value not in (None, before):
            raise InputError(f"the run that goes on has `{name}={before}`.", f"leave `{name}=` away, or give that.")
    require_same_states(request, earlier.states, earlier.bits)
    return earlier


def states_of(
    request: SimulateRequest, progress: Callable[[int], None] | None = None, device: Device | None = None
) -> Floats:
    """The initial states, (members, n, n/2 + 1, 2). `progress` is told of members; a `device` helps with large ones."""
    flow = request.seeded_flow
    if request.states is not None:
        states = float_array("states", request.states)
        if states.ndim not in (3, 4):
            raise ShapeError(
                f"`states=` has shape {states.shape}.", "pass what dashi.flow.ensemble or from_field returns."
            )
        return states[None] if states.ndim == 3 else states
    if request.from_file:
        return states_from_file(Path(request.initial), flow)
    members = seed_count(request.seeds)
    size = members * flow.n * flow.modes * 2 * flow.numpy_dtype.itemsize
    if size > LIMIT:
        raise InputError(
            f"{members} members of {flow.n} x {flow.n} points are {size / 2**30:,.0f} GiB.",
            f"use fewer: {LIMIT >> 30} GiB at most.",
        )
    named: dict[str, Any] = dict(request.initial_options)
    return initial.ensemble(flow, str(request.initial), list(request.seeds), progress=progress, device=device, **named)


def member_seeds(request: SimulateRequest, members: int) -> list[int]:
    """The seeds of all members, as files name them; those of a file or of states follow the first."""
    if request.states is not None or request.from_file:
        return [request.seeds[0] + j for j in range(members)]
    return list(request.seeds)


def named_start(request: SimulateRequest) -> tuple[str, list[str]]:
    """The initial condition as files tell it, and its numbers as NAME=VALUE."""
    name = "states" if request.states is not None else str(request.initial)
    return name, [f"{key}={value}" for key, value in request.initial_options.items()]


def settings_of(request: SimulateRequest, every: FlowStrides, states: Floats | None) -> dict[str, object]:
    """All that decides the results of a simulation: where it runs does not. The initial states count where no name
    says what they are."""
    name, numbers = named_start(request)
    known = request.states is None and not request.from_file
    seeds = list(request.seeds) if states is None else member_seeds(request, len(states))
    source = name if known or states is None else array_digest(states)
    start: dict[str, object] = {"initial": source, "set": sorted(numbers)}
    return {
        **request.seeded_flow.parameters, **start, "seed": seeds[0] if follow_each_other(seeds) else seeds,
        "members": len(seeds), "steps": request.steps, "look-every": every.look, "frame-every": every.frame,
        "hash-every": every.hash, "fields": request.fields, "transfer": request.transfer, "fast": request.host_fft,
        **({"states-every": every.states, "states-bits": every.bits} if every.states else {}),
    }  # fmt: skip
