"""The section on a chain of stages over devices: what each did with its time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from dashi.io.metrics import StageRecord
from dashi.report._html import Cell, figure, section, table, took
from dashi.report._style import BLUE, GRID, MUTED, ORANGE, new_figure, styled, svg

if TYPE_CHECKING:
    from dashi.report.page import Report

_INTRO: Final = (
    "Each stage works on an item of its own, while those beside it work on theirs: the slowest sets the pace."
)


def chain(report: Report) -> str:
    """Stages in order, their devices, items and seconds; empty for runs without stages."""
    stages = report.metrics.stages if report.metrics else None
    if not stages:
        return ""
    rows: list[list[Cell]] = [
        [
            stage.id, f"{stage.device} ({stage.backend_used})", f"{stage.items_out:,}", took(stage.compute_seconds),
            took(stage.starved_seconds), took(stage.blocked_seconds), took(stage.transfer_seconds),
            f"{stage.restarts}",
        ]
        for stage in stages
    ]  # fmt: skip
    head = ["stage", "device", "items out", "worked", "waited for input", "for a slot", "sent on", "restarts"]
    slowest = max(stages, key=lambda stage: stage.compute_seconds)
    text = f"<p>The stage {escape(slowest.id)} worked longest: {took(slowest.compute_seconds)}.</p>"
    return section(
        "chain", "The chain", _INTRO, text, table(head, rows, "Stages of the chain", text=True),
        figure(
            svg(shares(stages), "chain"), "What stages did with their time",
            "A bar for each stage: work, waiting for input, waiting for a free slot.",
            "Seconds by the device's own clock: work, then waiting for input, then for a free slot of the next link.",
        ),
    )  # fmt: skip


def shares(stages: Sequence[StageRecord]) -> Any:
    """A bar for each stage: seconds of work and of waiting."""
    drawing = new_figure(0.9 + 0.3 * len(stages))
    parts = (("work", BLUE, "compute_seconds"), ("waits for input", GRID, "starved_seconds"),
             ("waits for a slot", ORANGE, "blocked_seconds"))  # fmt: skip
    with styled():
        axes = drawing.subplots()
        left = [0.0] * len(stages)
        for label, colour, name in parts:
            widths = [float(getattr(stage, name)) for stage in stages]
            axes.barh(range(len(stages)), widths, left=left, color=colour, label=label)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        axes.set_yticks(range(len(stages)), [stage.id for stage in stages])
        axes.invert_yaxis()
        axes.set_xlabel("seconds", color=MUTED)
        axes.grid(visible=False, axis="y")
        axes.legend(loc="lower right", fontsize=8)
    return drawing
