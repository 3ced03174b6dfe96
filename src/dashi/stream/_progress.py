"""Progress of a chain for people: how many items came out, and now and then a line for each stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from dashi.stream._report import ChainReport

LINES_EVERY = 5.0
"""Seconds between two sets of lines."""
_BUSY: Final = 0.98
"""A device that is busy for this share of the time waits for nobody."""


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
    """A line for each stage of a chain that one thread submits ahead: its rate, the share of the period that its device
    is busy, and whom it waits for the rest of it. `stages` are records of the stages so far."""
    times = {stage["id"]: stage["device_us"] for stage in stages if stage["device_us"] is not None}
    slowest = max(times, key=lambda name: times[name], default="")
    lines: list[str] = []
    for stage in stages:
        text = f"{stage['id']} on {stage['device']}: {stage['items_out']} items submitted"
        if period:
            text += f", {1 / period:.1f}/s"
            if stage["id"] in times:
                busy = min(1.0, times[stage["id"]] * 1e-6 / period)
                text += f", busy {busy:.0%}"
                if busy < _BUSY:
                    other = slowest if stage["id"] != slowest else "the host and the links"
                    text += f", waits for {other} {1 - busy:.0%}"
        lines.append(text)
    return lines
