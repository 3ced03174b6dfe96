"""`dashi flow parity`: the decode of a device held against NumPy, and both against plain float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import add_row, new_table, print_json, print_table, remark
from dashi.cli.rollout_options import RunType

if TYPE_CHECKING:
    from dashi.flow.decode._parity import Parity

N = Annotated[int, typer.Option("--n", help="Points along each side.")]
KCut = Annotated[float, typer.Option("--k-cut", help="Modes up to this wave number are kept in z.")]
Anchors = Annotated[int, typer.Option("--anchors", help="Strongest modes of the mid band that are kept besides.")]
Seeds = Annotated[int, typer.Option("--seeds", help="How many random fields, and residuals.")]
Residuals = Annotated[
    list[str] | None,
    typer.Option("--residual", metavar="KIND", help="none, seeded or statistics. Repeatable. Default: all."),
]
Gate = Annotated[str, typer.Option("--gate", metavar="GATE", help="support (unsigned), signed, or open.")]
DType = Annotated[RunType, typer.Option("--dtype", help="The element type.")]


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi flow`."""
    line, told = "dashi flow parity --n 64 --seeds 2", "Hold a device's decode against NumPy's."
    app.command("parity", epilog=example(line), short_help=told)(parity)


def parity(
    n: N = 128,
    k_cut: KCut = 8.0,
    anchors: Anchors = 16,
    seeds: Seeds = 5,
    residual: Residuals = None,
    gate: Gate = "support",
    dtype: DType = RunType.float32,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """Decode random fields on NumPy and on a device, and compare: errors, energies, masks, bands.

    Both run the portable kernels, so fields and masks must have the same bits; NumPy's are held against an independent
    decode in float64 as well. The table shows what a residual costs: the error of the field with it and without.
    Exit code 0: the same bits, and float64 agrees to rounding; 1: not so; 3: an error.
    """
    from dashi import lab
    from dashi.cli.progress import Shown

    request = lab.ParityRequest(n=n, k_cut=k_cut, anchors=anchors, seeds=seeds, gate=gate, dtype=str(dtype))
    if residual:
        request = replace(request, residuals=tuple(residual))
    parity = lab.compare_decodes(request, device=device, events=Shown())
    info = parity.device
    if json:
        print_json(
            {
                "device": info.name,
                "spec": info.spec,
                "same": parity.same,
                "other_device": parity.other_device,
                "parity": [asdict(field) for field in parity.fields],
            }
        )
    else:
        _table(parity.fields)
        remark(f"{info.name} ({info.spec}) beside NumPy, {n} x {n}, k_cut {k_cut:g}, {anchors} anchors, {dtype}")
        remark("the same bits, and float64 agrees" if parity.same else "NOT the same: see the table")
        if not parity.other_device:
            remark("no other device took part: NumPy was held against itself, and against float64")
    if not parity.same:
        raise typer.Exit(1)


def _table(fields: Sequence[Parity]) -> None:
    table = new_table(
        "residual", "seed", "bits", "mean error", "max error", "dE", "dZ", "masks differ", "beside float64", "support",
        "mid wanted", "made", "left", "high wanted", "made", "left", "error", "without residual",
    )  # fmt: skip
    for p in fields:
        add_row(
            table, p.residual, str(p.seed), "same" if p.same_bits else "OTHER", f"{p.mean_error:.1e}",
            f"{p.max_error:.1e}", f"{p.d_energy:.1e}", f"{p.d_enstrophy:.1e}", f"{p.hamming} of {p.sites}",
            f"{p.plain_max_error:.1e}, {p.plain_hamming} sites", f"{p.support:.3f}",
            *(f"{value:.4g}" for band in (0, 1) for value in (p.wanted[band], p.synthesised[band], p.achieved[band])),
            f"{p.error:.3f}", f"{p.lowpass_error:.3f}",
        )  # fmt: skip
    print_table(table)
