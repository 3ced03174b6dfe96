"""Comparisons: `dashi flow parity`, the decode of a device held against NumPy and both against plain float64; and
`--compat v4` of `dashi flow evaluate` and `dashi flow rollout`, the old code's numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from dashi.cli.options import Json, OneDevice, RunType, example
from dashi.cli.output import print_facts, print_json, print_rows, remark
from dashi.cli.progress import Shown
from dashi.errors import InputError

if TYPE_CHECKING:
    from dashi.flow.decode._parity import Parity
    from dashi.flow.v4.golden import Row
    from dashi.lab.v4_comparison import V4Comparison

MODES: Final = ("v4",)

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
    line, summary = "dashi flow parity --n 64 --seeds 2", "Hold a device's decode against NumPy's."
    app.command("parity", epilog=example(line), short_help=summary)(parity)


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
        _print_parity(parity.fields)
        remark(f"{info.name} ({info.spec}) beside NumPy, {n} x {n}, k_cut {k_cut:g}, {anchors} anchors, {dtype}")
        remark("the same bits, and float64 agrees" if parity.same else "NOT the same: see the table")
        if not parity.other_device:
            remark("no other device took part: NumPy was held against itself, and against float64")
    if not parity.same:
        raise typer.Exit(1)


def _print_parity(fields: Sequence[Parity]) -> None:
    headings = (
        "residual", "seed", "bits", "mean error", "max error", "dE", "dZ", "masks differ", "beside float64", "support",
        "mid wanted", "made", "left", "high wanted", "made", "left", "error", "without residual",
    )  # fmt: skip
    rows = [
        (
            p.residual, str(p.seed), "same" if p.same_bits else "OTHER", f"{p.mean_error:.1e}",
            f"{p.max_error:.1e}", f"{p.d_energy:.1e}", f"{p.d_enstrophy:.1e}", f"{p.hamming} of {p.sites}",
            f"{p.plain_max_error:.1e}, {p.plain_hamming} sites", f"{p.support:.3f}",
            *(f"{value:.4g}" for band in (0, 1) for value in (p.wanted[band], p.synthesised[band], p.achieved[band])),
            f"{p.error:.3f}", f"{p.lowpass_error:.3f}",
        )
        for p in fields
    ]  # fmt: skip
    print_rows(headings, rows)


def run_v4(
    what: Literal["evaluate", "rollout"], *, compat: str = "v4", n: int | None = None, steps: int | None = None,
    seed: int | None = None, device: str = "auto", out: Path | None = None, overwrite: bool = False,
    allow_fallback: bool = False, require_gpu: bool = False, json: bool = False,
) -> None:  # fmt: skip
    """Measures and prints a table golden | ours | digits; `rollout` prints what the rollout on the device decides, and
    leaves a run folder with a certificate in `out`. Exit code 1 where a golden digit is missing."""
    from dashi import lab
    from dashi.lab.v4_comparison import holds

    if compat not in MODES:
        raise InputError(f"there is no compatibility mode {compat!r}.", "use --compat v4.")
    request = lab.V4Request(n=n, steps=steps, seed=seed, allow_fallback=allow_fallback, require_gpu=require_gpu)
    compared = lab.compare_v4(request, device=device, out=out, overwrite=overwrite, events=Shown())
    rows = compared.rows if what == "evaluate" else compared.device_rows
    if json:
        print_json(v4_document(compared, rows))
    else:
        print_v4(compared, rows)
    if holds(rows) is False:
        raise typer.Exit(1)


def v4_document(compared: V4Comparison, rows: list[Row]) -> dict[str, Any]:
    """What --json prints."""
    from dashi.lab.v4_comparison import holds

    record, run = compared.report.record, compared.report.run
    return {
        "compat": "v4",
        "n": record.n,
        "steps": record.steps,
        "seed": record.seed,
        "numbers": [_numbers(row) for row in rows],
        "holds": holds(rows),
        "where": dict(compared.report.where),
        "hashes": [{"step": h.step, "hash": h.digest} for h in run.hashes] if run else [],
        "certificate": compared.certificate_digest,
        "folder": str(compared.folder) if compared.folder else None,
    }


def _numbers(row: Row) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": row.name, "golden": row.golden or None, "ours": row.ours}
    if row.golden:
        facts |= {"digits": row.digits, "agree": row.agreeing(row.ours)}
    if row.device is not None:
        facts["device"] = row.device
        if row.golden:
            facts["device_agree"] = row.agreeing(row.device)
    return facts


def print_v4(compared: V4Comparison, rows: list[Row]) -> None:
    """A table for people: a row for each number, then where each part ran."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        ours = (row.name, row.golden.lower(), f"{row.ours:.9g}", _agree(row, row.ours))
        device = ("", "") if row.device is None else (f"{row.device:.9g}", _agree(row, row.device))
        lines.append((*ours, *device))
    print_rows(("v4", "golden", "ours", "digits agree", "on the device", "digits agree"), lines)
    report, certificate = compared.report, compared.certificate_digest
    run = report.run if report.run and report.run.hashes else None
    facts = {
        **report.where,
        "hash": f"{run.hashes[-1].digest} after {run.steps} steps" if run else "",
        "certificate": f"{certificate} ({compared.folder})" if certificate else "",
    }
    print_facts(facts)


def _agree(row: Row, value: float) -> str:
    return f"{row.agreeing(value)} of {row.digits}" if row.golden else ""
