"""What the command line says of a flow: its equation, where it starts, what is seen of it and how often."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from dashi.cli.flow import Request
from dashi.cli.flow_options import Scheme
from dashi.core.certificates.certificate import array_digest
from dashi.errors import InputError, suggestion
from dashi.flow import initial
from dashi.flow.derived_fields import DERIVED
from dashi.flow.equations import FORCINGS, UNFORCED, Flow, Stochastic, forcing_named
from dashi.flow.fields import read_frame
from dashi.flow.grid import Floats
from dashi.flow.trajectory import Strides
from dashi.io.arrays import LIMIT, read_array
from dashi.runtime.info import DeviceInfo

FIELD_FILES = (".npy", ".npz", ".zarr")
"""How files with fields to start from end."""


class FlowWords(Protocol):
    """What a command line says of a flow."""

    @property
    def n(self) -> int: ...
    @property
    def nu(self) -> float: ...
    @property
    def dt(self) -> float: ...
    @property
    def length(self) -> float: ...
    @property
    def drag(self) -> float: ...
    @property
    def smagorinsky(self) -> float: ...
    @property
    def scheme(self) -> Scheme: ...
    @property
    def dtype(self) -> str: ...
    @property
    def forcing(self) -> str: ...
    @property
    def force(self) -> tuple[str, ...]: ...
    @property
    def seed(self) -> int: ...


def flow_of(request: FlowWords) -> Flow:
    """The flow that was asked for."""
    numbers = named_numbers("--force", request.force)
    if numbers and request.forcing == UNFORCED:
        raise InputError("--force goes with --forcing.", f"give --forcing {' or '.join(FORCINGS)}.")
    if "seed" in numbers:
        raise InputError("--force has no seed.", "give --seed, which decides the initial condition too.")
    if FORCINGS.get(request.forcing) is Stochastic:
        numbers["seed"] = request.seed
    forcing = forcing_named(request.forcing, **numbers)
    return Flow(
        n=request.n, nu=request.nu, dt=request.dt, length=request.length, drag=request.drag,
        smagorinsky=request.smagorinsky, forcing=forcing, scheme=request.scheme.value, dtype=str(request.dtype),
    )  # fmt: skip


def strides_of(request: Request) -> Strides:
    """The strides asked for, or their defaults."""
    given = {"--look-every": request.look_every, "--frame-every": request.frame_every}
    for name, value in {**given, "--hash-every": request.hash_every, "--steps": request.steps}.items():
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}.", "use 1 or more.")
    if request.resume and not request.out:
        raise InputError("--resume goes on in a run folder.", "name it with --out.")
    if request.frame_every is not None and not request.out:
        raise InputError("--frame-every writes frames to a run folder.", "name it with --out, or leave it away.")
    tenth = max(1, request.steps // 10)
    return Strides(
        look=request.look_every or max(1, request.steps // 100),
        frame=(request.frame_every or tenth) if request.out else 0,
        hash=request.hash_every or tenth,
    )


def resumed_strides(request: Request, kept: Strides) -> Strides:
    """Those of the run that goes on: a default depends on how far a run goes, so only what was asked for must fit."""
    given = {"look": request.look_every, "frame": request.frame_every, "hash": request.hash_every}
    for name, value in given.items():
        if value not in (None, getattr(kept, name)):
            raise InputError(
                f"the run that goes on has --{name}-every {getattr(kept, name)}.",
                "leave the option away, or give that.",
            )
    return kept


def states_of(request: Request, flow: Flow, progress: Callable[[int], None] | None = None) -> Floats:
    """The initial states, (members, n, n/2 + 1, 2). `progress` is told of members."""
    if request.members < 1:
        raise InputError(f"--members is {request.members}.", "use 1 or more.")
    path = Path(request.initial)
    if path.suffix in FIELD_FILES:
        if request.options or request.members != 1:
            raise InputError("--set and --members go with a named initial condition.", "leave them away with a file.")
        return states_from(path, flow)
    size = request.members * flow.n * flow.modes * 2 * flow.kind.itemsize
    if size > LIMIT:
        raise InputError(
            f"{request.members} members of {flow.n} x {flow.n} points are {size / 2**30:,.0f} GiB.",
            f"use fewer: {LIMIT >> 30} GiB at most.",
        )
    seeds = [request.seed + j for j in range(request.members)]
    return initial.ensemble(flow, request.initial, seeds, progress=progress, **named_numbers("--set", request.options))


def settings_of(request: Request, flow: Flow, every: Strides, states: Floats) -> dict[str, object]:
    """All that decides the results of a simulation: where it runs does not."""
    start: dict[str, object] = {"initial": request.initial, "set": sorted(request.options), "seed": request.seed}
    if Path(request.initial).suffix in FIELD_FILES:
        start["initial"] = array_digest(states)
    return {
        **flow.parameters, **start, "members": len(states), "steps": request.steps, "look-every": every.look,
        "frame-every": every.frame, "hash-every": every.hash, "fields": request.fields, "transfer": request.transfer,
        "fast": request.fast,
    }  # fmt: skip


def states_from(path: Path, flow: Flow) -> Floats:
    """The initial states that a file holds as vorticity."""
    field = read_frame(path) if path.suffix == ".zarr" else read_array(path, "vorticity")
    return initial.from_field(flow, field)


def faster_choice(info: DeviceInfo, *, fast: bool) -> str | None:
    """The remark that another choice is several times faster on this machine's processor; None where none is."""
    if fast or info.type not in ("software", "reference"):
        return None
    if info.type == "reference":
        return "the exact references on a processor are slow; --fast is several times faster, and not portable"
    return f"{info.name} is software Vulkan; --device cpu --fast is several times faster here, and not portable"


def require_fields(names: tuple[str, ...]) -> None:
    """Refuses fields that are not known."""
    for name in names:
        if name not in DERIVED:
            near = suggestion(name, DERIVED)
            raise InputError(f"there is no field {name!r}.", f"{near}ask for some of {', '.join(DERIVED)}.")


def named_numbers(option: str, given: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE pairs; whole numbers stay whole."""
    made: dict[str, Any] = {}
    for text in given:
        name, _, value = text.partition("=")
        if name in made:
            raise InputError(f"{option} {name} is given twice.", "leave one of them away.")
        try:
            made[name] = int(value) if value.strip().lstrip("+-").isdigit() else float(value)
            finite = math.isfinite(made[name])
        except (ValueError, OverflowError) as error:
            raise _no_number(option, text) from error
        if not name.isidentifier() or name in ("given", "progress") or not finite:
            raise _no_number(option, text)
    return made


def _no_number(option: str, text: str) -> InputError:
    known = {"--perturb": "nu=0.004", "--force": "amplitude=1", "--option": "factor=1"}
    return InputError(
        f"{option} {text} is not NAME=NUMBER.", f"write for instance {option} {known.get(option, 'speed=1.5')}."
    )
