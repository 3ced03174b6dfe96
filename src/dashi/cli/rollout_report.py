"""What `dashi rollout` prints at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dashi.cli.output import add_row, error_document, new_table, print_json, print_table
from dashi.core.rollouts.run import Run
from dashi.errors import FileError
from dashi.io.metrics import Metrics


def print_report(
    run: Run, metrics_file: Path | None, unwritten: FileError | None = None, *, as_json: bool = False
) -> None:
    """A table for people; with --json the metrics document, the names of the files, and why one is missing."""
    metrics = run.metrics
    if as_json:
        document = _document(run, metrics_file)
        if unwritten:
            document["error"] = error_document(unwritten)
        print_json(document)
        return
    table = new_table("", "")
    verdict = metrics.verdict
    rows = {
        "verdict": verdict.sentence if verdict else "",
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "steps": _steps(run, metrics),
        "time": f"{metrics.ns_per_step / 1000:.3f} us per step ({metrics.steps_per_s:,.0f} steps/s)",
        "way": f"{run.strategy}: {run.reason}",
        "hash": metrics.hashes[-1].hash if metrics.hashes else "none",
        "portable": "" if metrics.portable else "no: these hashes hold on this device alone",
        "fell back": "; ".join(f"{f.name}: {f.used} instead of {f.requested} ({f.reason})" for f in metrics.perf_flags),
        "certificate": ", ".join(str(file) for file in run.certificates),
        "folder": str(run.folder or ""),
    }
    for name, value in rows.items():
        if value:
            add_row(table, name, value)
    print_table(table)


def _steps(run: Run, metrics: Metrics) -> str:
    shape = " x ".join(str(n) for n in metrics.state_shape or ())
    many = f"{metrics.states} states of " if metrics.states != 1 else ""
    stopped = ", stopped" if run.stopped else ""
    return f"{metrics.steps} of {metrics.operator}, {many}{shape}, {metrics.dtype}{stopped}"


def _document(run: Run, metrics_file: Path | None) -> dict[str, Any]:
    metrics = run.metrics
    document: dict[str, Any] = metrics.model_dump(mode="json", exclude_none=True)
    document["hash"] = metrics.hashes[-1].hash if metrics.hashes else None
    document["certificate"] = next((str(file) for file in run.certificates), None)
    document["metrics"] = str(metrics_file) if metrics_file else None
    document["folder"] = str(run.folder) if run.folder else None
    return document
