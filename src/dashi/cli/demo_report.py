"""What `dashi demo` prints at the end."""

from __future__ import annotations

from typing import Any

from dashi.cli.output import add_row, new_table, print_json, print_table
from dashi.lab.demos.main_job import DemoResult
from dashi.lab.demos.wave import WaveResult


def print_demo(result: DemoResult, as_json: bool) -> None:
    """The main job: a table for people, or one document."""
    report = str(result.report) if result.report else None
    summary_document = {"folder": str(result.folder), "report": report, "total_seconds": result.seconds}
    print_summary({**result.summary, **summary_document}, as_json)


def print_summary(summary: dict[str, Any], as_json: bool) -> None:
    """A table for people, or one document."""
    if as_json:
        print_json(summary)
        return
    device = summary["device"]
    table = new_table("", "")
    add_row(table, "device", f"{device['name']} ({device['spec']}, {device['type']})")
    if summary["model"]:
        add_row(table, "model", summary["model"])
    for name, value in summary["horizons"].items():
        bound = ">=" if name in summary["at_least"] else "  "
        add_row(table, "horizon" if name == next(iter(summary["horizons"])) else "", f"{bound} {value:.2f}  {name}")
    if summary["hash"]:
        add_row(table, "hash", summary["hash"])
    add_row(table, "verified", summary["verified"])
    whole, scored = f"{summary['total_seconds']:.0f} s", f"{summary['seconds']:.0f} s"
    drawn = f", {scored} from the seeds to the scores, the rest to draw the report" if summary["report"] else ""
    add_row(table, "time", whole + drawn)
    add_row(table, "folder", f"{summary['folder']} ({len(summary['files'])} files)")
    if summary["report"]:
        add_row(table, "report", summary["report"])
    print_table(table)


def print_wave(result: WaveResult, as_json: bool) -> None:
    """The rollout of a wave: a table for people, or one document."""
    summary: dict[str, Any] = {**result.summary, "folder": str(result.folder)}
    if as_json:
        print_json(summary)
        return
    table = new_table("", "")
    device = summary["device"]
    rows = {
        "device": f"{device['name']} ({device['spec']}, {device['type']})",
        "steps": f"{summary['steps']} of z' = z A, dimension {summary['dimension']}, fp32",
        "time": f"{summary['us_per_step']:.2f} us per step"
        + (f" (NumPy {summary['numpy_us_per_step']:.2f})" if summary["numpy_us_per_step"] else ""),
        "hash": summary["hash"] or "none",
        "verified": summary["verified"],
        "folder": f"{summary['folder']} ({len(summary['files'])} files)",
    }
    for name, value in rows.items():
        add_row(table, name, value)
    print_table(table)
