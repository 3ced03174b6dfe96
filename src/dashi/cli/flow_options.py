"""The options of `dashi flow simulate`, in the order of its help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dashi.cli.rollout_options import RunType


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


N = Annotated[int, typer.Option("--n", help="Points along each side: even, 2^a 3^b 5^c 7^d, 8 to 4096.")]
Steps = Annotated[int, typer.Option("--steps", help="How many steps of dt.")]
Dt = Annotated[float, typer.Option("--dt", help="The time step.")]
Nu = Annotated[float, typer.Option("--nu", help="Viscosity.")]
Drag = Annotated[float, typer.Option("--drag", help="Linear drag.")]
Length = Annotated[float | None, typer.Option("--length", help="The side of the box. Default: 2 pi.")]
Smagorinsky = Annotated[float, typer.Option("--smagorinsky", help="Cs of the eddy viscosity; 0 is none.")]
SchemeName = Annotated[Scheme, typer.Option("--scheme", help="The time scheme.")]
DType = Annotated[RunType, typer.Option("--dtype", help="The element type.")]
Forcing = Annotated[Force, typer.Option("--forcing", help="The kind of forcing.")]
ForceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--force",
        metavar="NAME=VALUE",
        help="kolmogorov: wavenumber, amplitude; stochastic: low, high, rate. May be given several times.",
    ),
]
Initial = Annotated[
    str,
    typer.Option(
        "--initial",
        help="random, taylor-green, shear-layer, patches, lamb-dipole, ellipse, lamb-oseen, or a file: vorticity "
        "(n, n) or (members, n, n) as .npy, .npz (key vorticity), or the last frame of a .zarr.",
    ),
]
InitialOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A number of the initial condition, such as peak=8. Repeatable."),
]
Seed = Annotated[int, typer.Option("--seed", help="Of the first member; those of the others follow.")]
Members = Annotated[int, typer.Option("--members", help="How many flows run together, with seeds that follow.")]
LookEvery = Annotated[
    int | None, typer.Option("--look-every", help="Energy, spectra, Courant number. Default: 100 times.")
]
FrameEvery = Annotated[
    int | None, typer.Option("--frame-every", help="Frames of the fields, with a checkpoint. Default: 10 times.")
]
HashEvery = Annotated[int | None, typer.Option("--hash-every", help="Hash the state. Default: 10 times.")]
Field = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        help="vorticity, streamfunction, velocity_x, velocity_y, strain_normal, strain_shear or pressure. Repeatable.",
    ),
]
Transfer = Annotated[bool, typer.Option("--transfer", help="Measure the transfer of energy between scales too.")]
Fast = Annotated[bool, typer.Option("--fast", help="NumPy's own transforms on the device cpu: quick, not portable.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="The run folder: fields.zarr, metrics, certificate.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --out.")]
Fallback = Annotated[bool, typer.Option("--allow-fallback", help="Run elsewhere if the device is not there.")]
RequireGpu = Annotated[bool, typer.Option("--require-gpu", help="Fail unless it runs on a GPU.")]
