"""`--compat v4` of `dashi flow evaluate` and `dashi flow rollout`: the old code's numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import typer

from dashi import lab
from dashi.cli.output import add_row, new_table, print_json, print_table
from dashi.cli.progress import Shown
from dashi.errors import InputError
from dashi.flow.v4.golden import Row
from dashi.lab.v4_comparison import V4Comparison, holds

MODES: Final = ("v4",)


def run_v4(
    what: Literal["evaluate", "rollout"], *, compat: str = "v4", n: int | None = None, steps: int | None = None,
    seed: int | None = None, device: str = "auto", out: Path | None = None, overwrite: bool = False,
    allow_fallback: bool = False, require_gpu: bool = False, json: bool = False,
) -> None:  # fmt: skip
    """Measures and prints a table golden | ours | digits; `rollout` prints what the rollout on the device decides, and
    leaves a run folder with a certificate in `out`. Exit code 1 where a golden digit is missing."""
    if compat not in MODES:
        raise InputError(f"there is no compatibility mode {compat!r}.", "use --compat v4.")
    request = lab.V4Request(n=n, steps=steps, seed=seed, allow_fallback=allow_fallback, require_gpu=require_gpu)
    compared = lab.compare_v4(request, device=device, out=out, overwrite=overwrite, events=Shown())
    rows = compared.rows if what == "evaluate" else compared.device_rows
    if json:
        print_json(document(compared, rows))
    else:
        print_rows(compared, rows)
    if holds(rows) is False:
        raise typer.Exit(1)


def document(compared: V4Comparison, rows: list[Row]) -> dict[str, Any]:
    """What --json prints."""
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


def print_rows(compared: V4Comparison, rows: list[Row]) -> None:
    """A table for people: a row for each number, then where each part ran."""
    table = new_table("v4", "golden", "ours", "digits agree", "on the device", "digits agree")
    for row in rows:
        there = "" if row.device is None else f"{row.device:.9g}"
        cells = (row.name, row.golden.lower(), f"{row.ours:.9g}", _agree(row, row.ours), there)
        add_row(table, *cells, "" if row.device is None else _agree(row, row.device))
    print_table(table)
    report = compared.report
    ran = new_table("", "")
    for part, where in report.where.items():
        add_row(ran, part, where)
    if report.run and report.run.hashes:
        add_row(ran, "hash", f"{report.run.hashes[-1].digest} after {report.run.steps} steps")
    if compared.certificate_digest:
        add_row(ran, "certificate", f"{compared.certificate_digest} ({compared.folder})")
    print_table(ran)


def _agree(row: Row, value: float) -> str:
    return f"{row.agreeing(value)} of {row.digits}" if row.golden else ""
