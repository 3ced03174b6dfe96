"""Progress of a chain for people: how many items came out, and now and then a line for each stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from dashi.stream._report import ChainReport
from dashi.stream._stage_times import WAITS

LINES_EVERY = 5.0
"""Seconds between two sets of lines."""
_LEAST: Final = 0.02
"""Shares of the time below this are not told."""


class ChainEvents(Protocol):
    """Who listens: the events of a job (`dashi.lab.events`) are one."""

    def remark(self, *lines: str) -> None:
        """Lines for people."""
        ...

    def progress(self, title: str, total: int | None, unit: str) -> AbstractContextManager[Callable[[int], None]]:
        """Counts items while it lasts."""
        ...


class StageLines:
    """Tells a line for each stage every so many seconds, while the chain is looked at."""

    def __init__(
        self, events: ChainEvents, report: Callable[[], ChainReport], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._events, self._report, self._clock = events, report, clock
        self._due = clock() + LINES_EVERY
        self._events_told = 0

    def beat(self) -> None:
        """Tells what there is to tell by now."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + LINES_EVERY
        report = self._report()
        new = report.events[self._events_told :]
        self._events_told = len(report.events)
        self._events.remark(*report.lines(), *(event.text for event in new))


def device_lines(stages: Sequence[Mapping[str, Any]], period: float | None) -> list[str]:
    """A line for each stage of a chain that one thread submits ahead: its rate, the share of its time that it works,
    how full the link behind it is, and what it waits for. `stages` are records of the stages so far."""
    lines: list[str] = []
    for number, stage in enumerate(stages):
        parts = [f"{stage['id']} on {stage['device']}: {stage['items_out']} items submitted"]
        if period:
            parts.append(f"{1 / period:.1f}/s")
        seconds = stage["seconds"]
        whole = sum(seconds.values())
        if whole > 0:
            parts.append(f"busy {seconds['busy'] / whole:.0%}")
        link = stage["link"]
        if link is not None and link["mean_used"] is not None:
            parts.append(f"{link['mean_used']:.1f} of {link['window']} slots in use")
        before = stages[number - 1]["id"] if number else ""
        behind = stages[number + 1]["id"] if number + 1 < len(stages) else ""
        words = {
            "starved": f"starved by {before}",
            "linked": f"waits for the link from {before}",
            "blocked": f"blocked by {behind}",
            "submitting": "waits for the host",
        }
        parts += [
            f"{words[name]} {seconds[name] / whole:.0%}" for name in WAITS if whole and seconds[name] / whole >= _LEAST
        ]
        if stage["restarts"]:
            parts.append(f"{stage['restarts']} restarts")
        lines.append(", ".join(parts))
    return lines
