"""`dashi filament rate`: bits against error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashi.cli import flow_options as o
from dashi.cli.options import Json, example
from dashi.cli.output import print_json, print_rows, remark
from dashi.cli.progress import Shown

Source = Annotated[
    Path, typer.Argument(metavar="DATA", help="A field (.npy), the folder of a run, a NetCDF file, or a Zarr store.")
]
Frame = Annotated[int, typer.Option("--frame", help="Which frame of a record; -1 is the last.")]
Member = Annotated[int, typer.Option("--member", help="Which member of an ensemble.")]
Errors = Annotated[
    list[float] | None,
    typer.Option("--error", metavar="E", help="An error over the norm of the field. Repeatable. Default: 0.5 to 0.05."),
]
Periodic = Annotated[bool, typer.Option("--periodic", help="The box is periodic for certain.")]


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi filament`."""
    line = (
        "dashi flow simulate --n 64 --steps 400 --frame-every 200 --out runs/eddies && "
        "dashi filament rate runs/eddies --error 0.3 --error 0.1"
    )
    app.command("rate", epilog=example(line), short_help="Bits against error, of several codes.")(rate)


def rate(
    source: Source,
    frame: Frame = -1,
    error: Errors = None,
    member: Member = 0,
    variable: o.Variable = None,
    dims: o.Dims = None,
    periodic: Periodic = False,
    json: Json = False,
) -> None:
    """Code a field as Fourier modes, as wavelets, and with atoms in front, at several errors, and compare the bits.

    Also says what coherent vortex extraction keeps of it, and the error from which on atoms no longer make the code
    shorter.
    """
    from dashi import lab
    from dashi.filament.code.rates import ERRORS

    request = lab.RateRequest(
        source=source, frame=frame, member=member, errors=tuple(error or ERRORS), variables=tuple(variable or ()),
        dims=o.axis_names(dims or ()), periodic=periodic,
    )  # fmt: skip
    rates = lab.measure_rates(request, events=Shown())
    if json:
        print_json(rates.document)
        return
    print_rows(
        ("code", "error", "bits", "correlation", "spectrum", "atoms"),
        [
            (p.code, f"{p.error:.3g}", str(p.bits), f"{p.correlation:.4f}", f"{p.spectrum_error:.3f}", str(p.atoms))
            for p in rates.points
        ],
    )
    coherent, crossover = rates.coherent, rates.crossover
    remark(
        f"coherent vortices: {coherent.coefficients} coefficients ({coherent.share:.2%}) with {coherent.enstrophy:.1%} "
        f"of the enstrophy; flatness {coherent.flatness:.3g}, of the rest {coherent.rest_flatness:.3g}",
        "atoms make the code shorter at all of these errors"
        if crossover is None
        else f"atoms make the code shorter above an error of {crossover:.3g}",
    )
