"""The options of `dashi flow` commands, each declared once: those of a flow as fields of `FlowOptions`, which commands
take as one parameter, and those of single commands."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

from dashi.cli.help import DATA, DEVICE, OUTPUT, RUN, START
from dashi.cli.help import FLOW as FLOW_PANEL
from dashi.cli.options import RunType, complete_fields, complete_initial, whole
from dashi.errors import InputError

if TYPE_CHECKING:
    from dashi.flow.equations import Flow


class Scheme(StrEnum):
    """Time schemes."""

    rk4 = "rk4"
    heun = "heun"
    etdrk4 = "etdrk4"


class Force(StrEnum):
    """Kinds of forcing."""

    none = "none"
    kolmogorov = "kolmogorov"
    stochastic = "stochastic"


def _option(name: str, text: str, panel: str = FLOW_PANEL, **more: Any) -> dict[str, Any]:
    return {"option": typer.Option(name, help=text, rich_help_panel=panel, **more)}


@dataclass(frozen=True, kw_only=True)
class FlowOptions:
    """What a command line says of a flow and its start: every field is an option."""

    n: int = field(
        default=128, metadata=_option("--n", "Points along each side: even, 2^a 3^b 5^c 7^d, 8 to 4096.", parser=whole)
    )
    dt: float = field(default=0.01, metadata=_option("--dt", "The time step."))
    nu: float = field(default=2e-3, metadata=_option("--nu", "Viscosity."))
    drag: float = field(default=0.0, metadata=_option("--drag", "Linear drag."))
    length: float = field(
        default=2 * math.pi, metadata=_option("--length", "The side of the box.", show_default="2 pi")
    )
    smagorinsky: float = field(
        default=0.0, metadata=_option("--smagorinsky", "Cs of Smagorinsky's eddy viscosity, 0.17 where it is used.")
    )
    beta: float = field(default=0.0, metadata=_option("--beta", "The slope beta of a beta plane: the term -beta v."))
    hyperviscosity: float = field(
        default=0.0, metadata=_option("--hyperviscosity", "nu_p of a hyperviscosity: damping nu_p k^(2 p).")
    )
    hyperviscosity_order: int = field(
        default=2, metadata=_option("--hyperviscosity-order", "Its order p: 2 or 4.", parser=whole)
    )
    scheme: Scheme = field(default=Scheme.rk4, metadata=_option("--scheme", "The time scheme."))
    dtype: RunType = field(default=RunType.float32, metadata=_option("--dtype", "The element type."))
    forcing: Force = field(default=Force.none, metadata=_option("--forcing", "The kind of forcing."))
    force: tuple[str, ...] = field(
        default=(),
        metadata=_option(
            "--force",
            "A number of the forcing. kolmogorov: wavenumber, amplitude; stochastic: low, high, rate. Repeatable.",
            metavar="NAME=VALUE",
        ),
    )
    initial: str = field(
        default="random",
        metadata=_option(
            "--initial",
            "The initial condition: random, taylor-green, shear-layer, patches, lamb-dipole, ellipse, lamb-oseen, or a "
            "file: vorticity (n, n) or (members, n, n) as .npy, .npz (key vorticity), or the last frame of a .zarr.",
            START,
            metavar="NAME|FILE",
            autocompletion=complete_initial,
        ),
    )
    options: tuple[str, ...] = field(
        default=(),
        metadata=_option(
            "--set", "A number of the initial condition, such as peak=8. Repeatable.", START, metavar="NAME=VALUE"
        ),
    )


DEFAULTS: Final = FlowOptions()
"""Stands in the signatures of commands; `takes_flow` puts the options there."""
FLOW: Final = tuple(entry.name for entry in fields(FlowOptions))
"""The names of its fields."""


def takes_flow(**defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Puts the options of a flow in the place of a command's parameter `flow`; some with other defaults."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def called(**values: Any) -> None:
            words: dict[str, Any] = {name: values.pop(name) for name in FLOW}
            # A list that was not given is None or empty.
            words |= {name: tuple(words[name] or ()) for name in _LISTS}
            command(**values, flow=FlowOptions(**words))

        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += _parameters(defaults) if parameter.name == "flow" else [parameter]
        called.__dict__["__signature__"] = signature.replace(parameters=parameters)
        return called

    return decorate


_LISTS = ("force", "options")


def _parameters(defaults: dict[str, Any]) -> list[inspect.Parameter]:
    kinds = get_type_hints(FlowOptions)
    parameters: list[inspect.Parameter] = []
    for entry in fields(FlowOptions):
        many = entry.name in _LISTS
        kind: Any = list[str] | None if many else kinds[entry.name]
        default = None if many else defaults.get(entry.name, entry.default)
        where = inspect.Parameter.POSITIONAL_OR_KEYWORD
        annotation = Annotated[kind, entry.metadata["option"]]
        parameters.append(inspect.Parameter(entry.name, where, default=default, annotation=annotation))
    return parameters


def flow_of(options: FlowOptions, seed: int = 0) -> Flow:
    """The flow that the options describe; random kicks are those of a seed."""
    from dashi.flow.equations import FORCINGS, UNFORCED, Flow, Stochastic, forcing_named

    numbers = named_numbers("--force", options.force)
    if numbers and options.forcing == UNFORCED:
        raise InputError("--force goes with --forcing.", f"give --forcing {' or '.join(FORCINGS)}.")
    if "seed" in numbers:
        raise InputError("--force has no seed.", "give --seed, which decides the initial condition too.")
    if FORCINGS.get(options.forcing) is Stochastic:
        numbers["seed"] = seed
    return Flow(
        n=options.n, nu=options.nu, dt=options.dt, length=options.length, drag=options.drag,
        smagorinsky=options.smagorinsky, forcing=forcing_named(options.forcing, **numbers),
        scheme=options.scheme.value, dtype=str(options.dtype), hyperviscosity=options.hyperviscosity,
        hyperviscosity_order=options.hyperviscosity_order, beta=options.beta,
    )  # fmt: skip


def named_numbers(option: str, texts: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; whole numbers stay whole."""
    numbers: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name in numbers:
            raise InputError(f"{option} {name} is given twice.", "leave one of them away.")
        try:
            numbers[name] = int(value) if value.strip().lstrip("+-").isdigit() else float(value)
            finite = math.isfinite(numbers[name])
        except (ValueError, OverflowError) as error:
            raise _no_number(option, text) from error
        if not name.isidentifier() or name in ("given", "progress") or not finite:
            raise _no_number(option, text)
    return numbers


def _no_number(option: str, text: str) -> InputError:
    known = {"--perturb": "nu=0.004", "--force": "amplitude=1", "--option": "factor=1"}
    return InputError(
        f"{option} {text} is not NAME=NUMBER.", f"write for instance {option} {known.get(option, 'speed=1.5')}."
    )


def axis_names(texts: Sequence[str]) -> dict[str, str]:
    """The names of --dims: AXIS=NAME pairs."""
    pairs: dict[str, str] = {}
    for text in texts:
        axis, _, name = text.partition("=")
        if not axis or not name:
            raise InputError(f"--dims {text} is not AXIS=NAME.", "write for instance --dims time=t.")
        pairs[axis] = name
    return pairs


def given_options(context: typer.Context) -> dict[str, str]:
    """What stands on the command line: parameters by name, and how each is written (`--n`, `MODEL`)."""
    return {
        one.name: one.opts[-1] if one.opts[-1].startswith("-") else one.name.upper()
        for one in context.command.params
        if one.name and getattr(context.get_parameter_source(one.name), "name", "") == "COMMANDLINE"
    }


Variable = Annotated[
    list[str] | None,
    typer.Option(
        "--variable",
        metavar="NAME",
        rich_help_panel=DATA,
        help="With --from FILE: the variable that holds vorticity; given twice, the velocities along x and along y. "
        "Default: vorticity, or velocity_x and velocity_y, u and v, ux and uy.",
    ),
]
Dims = Annotated[
    list[str] | None,
    typer.Option(
        "--dims",
        metavar="AXIS=NAME",
        rich_help_panel=DATA,
        help="With --from FILE: how it calls time, y, x or member, such as time=t. Repeatable.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", parser=whole, rich_help_panel=START, help="The seed of the first member; those of the others follow."
    ),
]
Members = Annotated[
    int,
    typer.Option(
        "--members",
        parser=whole,
        rich_help_panel=START,
        help="How many flows run together, each with a seed of its own.",
    ),
]
Steps = Annotated[int, typer.Option("--steps", rich_help_panel=RUN, parser=whole, help="How many steps of dt.")]
LookEvery = Annotated[
    int | None,
    typer.Option(
        "--look-every",
        parser=whole,
        rich_help_panel=RUN,
        help="Steps between looks at energy, spectra and the Courant number. Default: 100 looks.",
    ),
]
FrameEvery = Annotated[
    int | None,
    typer.Option(
        "--frame-every",
        parser=whole,
        rich_help_panel=OUTPUT,
        help="With --out: steps between frames, each with a checkpoint. Default: 10 frames.",
    ),
]
HashEvery = Annotated[
    int | None,
    typer.Option(
        "--hash-every", parser=whole, rich_help_panel=RUN, help="Steps between hashes of the state. Default: 10 hashes."
    ),
]
Field = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        rich_help_panel=OUTPUT,
        metavar="NAME",
        autocompletion=complete_fields,
        help="What frames hold: vorticity (the default), streamfunction, velocity_x, velocity_y, strain_normal, "
        "strain_shear or pressure. Repeatable.",
    ),
]
Transfer = Annotated[
    bool, typer.Option("--transfer", rich_help_panel=RUN, help="Measure the transfer of energy between scales too.")
]
HostFft = Annotated[
    bool,
    typer.Option(
        "--host-fft", rich_help_panel=DEVICE, help="NumPy's own transforms on the device cpu: quick, not portable."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        rich_help_panel=OUTPUT,
        metavar="DIR",
        help="The run folder to write: fields.zarr, metrics, certificate.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", rich_help_panel=OUTPUT, help="Go on from the checkpoint in --out.")]
Fallback = Annotated[
    bool, typer.Option("--allow-fallback", rich_help_panel=DEVICE, help="Run elsewhere if the device is not there.")
]
RequireGpu = Annotated[
    bool, typer.Option("--require-gpu", rich_help_panel=DEVICE, help="Fail unless it runs on a GPU.")
]
