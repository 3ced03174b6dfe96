"""`--compat v4` of `dashi flow evaluate` and `dashi flow rollout`: the old code's numbers beside ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import typer

from dashi.cli.output import add_row, new_table, print_json, print_table, remark
from dashi.cli.progress import progress
from dashi.core.certificates.certify import certify_folder
from dashi.core.metrics.document import Stages, build_metrics
from dashi.core.metrics.placement import Placement, place
from dashi.core.operators.affine import Linear
from dashi.errors import InputError
from dashi.flow.v4.golden import SETTING, Row
from dashi.flow.v4.measure import Report, measure
from dashi.io import run_folder
from dashi.io.arrays import write_arrays
from dashi.io.metrics import write_metrics
from dashi.io.whole_folder import Owner, require_replaceable, whole_folder

MODES: Final = ("v4",)
_OWNER: Final = Owner(
    "flow rollout --compat v4",
    frozenset({run_folder.CERTIFICATE, run_folder.INPUTS, run_folder.METRICS, run_folder.REPORT, run_folder.STATE}),
)


def run_v4(
    what: Literal["evaluate", "rollout"], *, compat: str = "v4", n: int | None = None, steps: int | None = None,
    seed: int | None = None, device: str = "auto", out: Path | None = None, overwrite: bool = False,
    allow_fallback: bool = False, require_gpu: bool = False, json: bool = False,
) -> None:  # fmt: skip
    """Measures and prints a table golden | ours | digits; `rollout` prints what the rollout on the device decides, and
    leaves a run folder with a certificate in `out`. Exit code 1 where a golden digit is missing."""
    if compat not in MODES:
        raise InputError(f"there is no compatibility mode {compat!r}.", "use --compat v4.")
    leaves = out if what == "rollout" else None
    setting = [given if value is None else value for value, given in zip((n, steps, seed), SETTING, strict=True)]
    owner = replace(
        _OWNER, settings=dict(zip(("n", "steps", "seed"), setting, strict=True)), overwrite=overwrite
    )  # fmt: skip
    if leaves:
        require_replaceable(leaves, owner)
    stages = Stages()
    with place(device, allow_fallback=allow_fallback, require_gpu=require_gpu) as placed:
        remark(f"v4: {setting[1]} steps of {setting[0]} x {setting[0]} in NumPy, the map on {placed.device.info.name}")
        with progress("v4", setting[1], "steps") as advance:
            report = measure(*setting, device=placed.device, progress=advance)
        digest = _leave(report, placed, stages, leaves, owner) if leaves else None
    rows = [row for row in report.rows if what == "evaluate" or row.device is not None]
    if json:
        print_json(document(report, rows, digest, out))
    else:
        print_rows(report, rows, digest, out)
    if rows[0].golden and not all(row.holds for row in rows):
        raise typer.Exit(1)


def document(report: Report, rows: list[Row], digest: str | None, out: Path | None) -> dict[str, Any]:
    """What --json prints."""
    made, run = report.record, report.run
    return {
        "compat": "v4",
        "n": made.n,
        "steps": made.steps,
        "seed": made.seed,
        "numbers": [_numbers(row) for row in rows],
        "holds": all(row.holds for row in rows) if rows[0].golden else None,
        "where": dict(report.where),
        "hashes": [{"step": h.step, "hash": h.digest} for h in run.hashes] if run else [],
        "certificate": digest,
        "folder": str(out) if out else None,
    }


def _numbers(row: Row) -> dict[str, Any]:
    made: dict[str, Any] = {"name": row.name, "golden": row.golden or None, "ours": row.ours}
    if row.golden:
        made |= {"digits": row.digits, "agree": row.agreeing(row.ours)}
    if row.device is not None:
        made["device"] = row.device
        if row.golden:
            made["device_agree"] = row.agreeing(row.device)
    return made


def print_rows(report: Report, rows: list[Row], digest: str | None, out: Path | None) -> None:
    """The same for people: a row for each number, then where each part ran."""
    table = new_table("v4", "golden", "ours", "digits agree", "on the device", "digits agree")
    for row in rows:
        there = "" if row.device is None else f"{row.device:.9g}"
        cells = (row.name, row.golden.lower(), f"{row.ours:.9g}", _agree(row, row.ours), there)
        add_row(table, *cells, "" if row.device is None else _agree(row, row.device))
    print_table(table)
    ran = new_table("", "")
    for part, where in report.where.items():
        add_row(ran, part, where)
    if report.run and report.run.hashes:
        add_row(ran, "hash", f"{report.run.hashes[-1].digest} after {report.run.steps} steps")
    if digest:
        add_row(ran, "certificate", f"{digest} ({out})")
    print_table(ran)


def _agree(row: Row, value: float) -> str:
    return f"{row.agreeing(value)} of {row.digits}" if row.golden else ""


def _leave(report: Report, placed: Placement, stages: Stages, out: Path, owner: Owner) -> str:
    """The run folder of the rollout; its certificate's digest."""
    run, operator = report.run, Linear(report.A)
    assert run is not None
    with whole_folder(out, owner) as folder:
        digest = certify_folder(run, folder, operator, report.record.z[:1])
        assert digest is not None
        write_arrays(folder / run_folder.STATE, {"z": run.state[0], "step": np.array(run.steps, np.int64)})
        metrics = build_metrics(_OWNER.command, run, placed, stages, certificate=digest)
        write_metrics(folder / run_folder.METRICS, metrics)
    return digest
