"""The options of `dashi rollout`, in the order of its help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dashi.cli.completion import complete_devices
from dashi.cli.help import DEVICE, OPERATOR, OUTPUT, RUN, START
from dashi.cli.options import whole


class Psi(StrEnum):
    """Admissible nonlinearities."""

    none = "none"
    squash = "squash"
    softplus = "softplus"
    clamp = "clamp"


class RunType(StrEnum):
    """Element types of states."""

    float32 = "float32"
    float64 = "float64"


class AnyWay(StrEnum):
    """How steps run, or the choice of the program."""

    auto = "auto"
    stepwise = "stepwise"
    workgroup = "workgroup"
    tagged = "tagged"


Z0 = Annotated[
    Path,
    typer.Option(
        "--z0",
        rich_help_panel=START,
        metavar="FILE",
        help="Initial state(s): .npz, key z0, (D,) or (M, D) for an ensemble.",
    ),
]
Matrix = Annotated[
    Path | None,
    typer.Option("--A", rich_help_panel=OPERATOR, metavar="FILE", help="The matrix of z' = z A: .npz, key A."),
]
Bias = Annotated[
    Path | None,
    typer.Option("--b", rich_help_panel=OPERATOR, metavar="FILE", help="The b of z' = psi(z A + b): .npz, key b."),
]
Nonlinear = Annotated[Psi, typer.Option("--psi", rich_help_panel=OPERATOR, help="The nonlinearity.")]
Alpha = Annotated[float, typer.Option("--alpha", rich_help_panel=OPERATOR, help="The alpha of squash, tanh(alpha x).")]
Low = Annotated[float, typer.Option("--low", rich_help_panel=OPERATOR, help="The lower end of clamp.")]
High = Annotated[float, typer.Option("--high", rich_help_panel=OPERATOR, help="The upper end of clamp.")]
OperatorFile = Annotated[
    Path | None,
    typer.Option(
        "--operator",
        rich_help_panel=OPERATOR,
        metavar="FILE",
        help="An operator of any kind as one .npz, instead of --A.",
    ),
]
Steps = Annotated[int, typer.Option("--steps", parser=whole, rich_help_panel=RUN, help="How many steps.")]
DType = Annotated[RunType | None, typer.Option("--dtype", rich_help_panel=RUN, help="Default: the type of z0.")]
HashEvery = Annotated[
    int | None,
    typer.Option(
        "--hash-every", parser=whole, rich_help_panel=RUN, help="Hash the state every so many steps. Default: 1000."
    ),
]
ObserveEvery = Annotated[
    int | None,
    typer.Option(
        "--observe-every",
        parser=whole,
        rich_help_panel=RUN,
        help="Norms, ratio, defect, non-finite values. Default: 200 times.",
    ),
]
SheetEvery = Annotated[
    int | None,
    typer.Option(
        "--sheet-every",
        parser=whole,
        rich_help_panel=RUN,
        help="Band energies. Default: as observed with --out, else never.",
    ),
]
Bands = Annotated[
    int | None,
    typer.Option(
        "--bands", parser=whole, rich_help_panel=RUN, help="Bands of the sheet. Default: 16, or D if that is less."
    ),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        "--certificate", rich_help_panel=OUTPUT, metavar="FILE", help="Write a certificate that `dashi verify` repeats."
    ),
]
MetricsFile = Annotated[
    Path | None, typer.Option("--metrics", rich_help_panel=OUTPUT, metavar="FILE", help="Write the metrics document.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", rich_help_panel=OUTPUT, metavar="FOLDER", help="The run folder: metrics, certificate, state, sheet."
    ),
]
CheckpointEvery = Annotated[
    int | None,
    typer.Option(
        "--checkpoint-every",
        parser=whole,
        rich_help_panel=OUTPUT,
        help="Keep a checkpoint in the run folder every so many steps.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", rich_help_panel=OUTPUT, help="Go on from the checkpoint in the run folder.")
]
OpDevice = Annotated[
    str | None,
    typer.Option(
        "--op-device",
        rich_help_panel=DEVICE,
        metavar="DEVICE",
        help="Instead of --device, for steps.",
        autocompletion=complete_devices,
    ),
]
Way = Annotated[
    AnyWay, typer.Option("--way", rich_help_panel=DEVICE, help="How steps run; every way gives the same bits.")
]
Fast = Annotated[
    bool,
    typer.Option(
        "--fast", rich_help_panel=DEVICE, help="Products in the device's own order (BLAS on cpu): not portable."
    ),
]
Fallback = Annotated[
    bool,
    typer.Option(
        "--allow-fallback/--strict",
        rich_help_panel=DEVICE,
        help="Run elsewhere if the device is not there, and book it; or fail.",
    ),
]
RequireGpu = Annotated[
    bool,
    typer.Option("--require-gpu", rich_help_panel=DEVICE, help="Fail unless a Vulkan device that is no CPU steps."),
]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", rich_help_panel=RUN, help="Do not stop at values that are not finite.")
]
