"""What the main job leaves as it goes, and at its end: files, documents, and the report."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import Any

from dashi.core.traces.trace import write_trace
from dashi.errors import InputError
from dashi.io import _run_folder as run_folder
from dashi.io._files import write_text
from dashi.io._run_names import TRACE
from dashi.io.metrics import write_metrics
from dashi.lab._job import uninterruptible
from dashi.lab.demos._documents import metrics_of, story_of, summary_of
from dashi.lab.demos._files import KEEPERS
from dashi.lab.demos._work import Work
from dashi.report import page
from dashi.report._story import write_story
from dashi.report._style import plot_module
from dashi.report.run import read_run


def keep(work: Work, stage: str) -> None:
    """Writes what a stage gave, and what the run says of itself now: killed after this, the folder has a report."""
    if not work.results.windows:
        return
    with uninterruptible():
        if stage in KEEPERS:
            KEEPERS[stage](work)
        write_trace(work.folder / TRACE, work.trace.spans)
        metrics = metrics_of(work)
        if metrics is not None:
            write_metrics(work.folder / run_folder.METRICS, metrics)
        seconds = work.seconds
        write_story(work.folder, story_of(work, seconds))
        _summarise(work, summary_of(work, metrics, seconds))


def _summarise(work: Work, summary: dict[str, Any]) -> None:
    names = {*(path.name for path in work.folder.iterdir() if path.name[0] != "."), run_folder.SUMMARY}
    work.summary = {**summary, "files": sorted(names)}
    write_text(work.folder / run_folder.SUMMARY, json.dumps(work.summary, indent=2) + "\n")


def draw(work: Work, place: Path) -> None:
    """The report, where it can be drawn. `place` is where the folder will be."""
    if not _can_draw(work, place):
        return
    try:
        page.write_report(work.folder / run_folder.REPORT, read_run(work.folder, shown_as=place))
    except KeyboardInterrupt:
        work.events.remark("no report yet: stopped while it was drawn")
        raise
    with uninterruptible():
        _summarise(work, work.summary)


def _can_draw(work: Work, place: Path) -> bool:
    """Whether there will be a page; without matplotlib everything else is there all the same."""
    try:
        plot_module("matplotlib.figure")
    except InputError as error:
        work.events.remark(f"no report: {error}, then dashi report {quote(str(place))}")
        return False
    work.events.remark("drawing the report; all else is on the disk")
    return True
