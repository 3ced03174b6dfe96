"""What `dashi demo` leaves as it goes, and at its end: files, the report, and what is printed."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from dashi.cli.demo_account import metrics_of
from dashi.cli.demo_files import KEEPERS
from dashi.cli.demo_folder import whole
from dashi.cli.demo_story import print_summary, story_of, summary_of
from dashi.cli.output import remark
from dashi.core.accounts.placement import Placement
from dashi.core.traces.trace import write_trace
from dashi.errors import InputError
from dashi.io import run_folder
from dashi.io.files import write_text
from dashi.io.metrics import write_metrics

if TYPE_CHECKING:
    from dashi.cli.demo_job import Job


def keep(job: Job, placed: Placement, folder: Path, stage: str) -> None:
    """Writes what a stage gave, and what the run says of itself now: killed after this, the folder has a report."""
    if not job.results.windows:
        return
    with whole():
        if stage in KEEPERS:
            KEEPERS[stage](job, placed, folder)
        _tell(job, placed, folder)


def _tell(job: Job, placed: Placement, folder: Path) -> None:
    """Trace, metrics, the story and the summary."""
    from dashi.io.run_names import TRACE
    from dashi.report.story import write_story

    write_trace(folder / TRACE, job.trace.spans)
    metrics = metrics_of(job, placed)
    if metrics is not None:
        write_metrics(folder / run_folder.METRICS, metrics)
    seconds = job.seconds
    write_story(folder, story_of(job, placed, seconds))
    _summarise(job, folder, summary_of(job, placed, metrics, seconds))


def _summarise(job: Job, folder: Path, told: dict[str, Any]) -> None:
    names = {*(path.name for path in folder.iterdir() if path.name[0] != "."), run_folder.SUMMARY}
    job.summary = {**told, "files": sorted(names)}
    write_text(folder / run_folder.SUMMARY, json.dumps(job.summary, indent=2) + "\n")


def draw(job: Job, folder: Path, place: Path) -> None:
    """The report, where it can be drawn. `place` is where the folder will be."""
    from dashi.report.page import write_report
    from dashi.report.run import read_run

    if not _can_draw(place):
        return
    try:
        write_report(folder / run_folder.REPORT, read_run(folder, shown_as=place))
    except KeyboardInterrupt:
        remark("no report yet: stopped while it was drawn")
        raise
    with whole():
        _summarise(job, folder, job.summary)


def _can_draw(place: Path) -> bool:
    """Whether there will be a page; without matplotlib everything else is there all the same."""
    from dashi.report.style import plot_module

    try:
        plot_module("matplotlib.figure")
    except InputError as error:
        remark(f"no report: {error}, then dashi report {quote(str(place))}")
        return False
    remark("drawing the report; all else is on the disk")
    return True


def show(job: Job, place: Path) -> None:
    """Prints the summary, opens the report if asked to; exit code 1 if a hash differed."""
    drawn = run_folder.REPORT in job.summary["files"]
    told = {
        "folder": str(place),
        "report": str(place / run_folder.REPORT) if drawn else None,
        "total_seconds": job.seconds,
    }
    print_summary({**job.summary, **told}, job.json)
    if job.open_report and drawn:
        webbrowser.open((place / run_folder.REPORT).absolute().as_uri())
    if job.results.differs is not None:
        raise typer.Exit(1)
