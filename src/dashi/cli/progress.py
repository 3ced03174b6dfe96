"""Progress of long work, on stderr: a bar with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from dashi.cli.output import remark

Advance = Callable[[int], None]
_PAUSE: Final = 5.0


@contextmanager
def progress(title: str, total: int | None, unit: str) -> Generator[Advance]:
    """Shows progress while it lasts; call what it gives with the number of units that were finished. The total is None
    where nobody knows it beforehand."""
    if sys.stderr.isatty():
        with _bar(title, total, unit) as advance:
            yield advance
    else:
        yield _Lines(title, total, unit).advance


@contextmanager
def _bar(title: str, total: int | None, unit: str) -> Generator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Units per second."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f} {unit}/s" if task.speed else "")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda amount: bar.advance(task, amount)


class _Lines:
    """A line every few seconds: not a terminal, so nothing can be drawn over."""

    def __init__(self, title: str, total: int | None, unit: str) -> None:
        self._title, self._total, self._unit = title, total, unit
        self._done = 0
        self._start = self._last = time.monotonic()

    def advance(self, amount: int) -> None:
        self._done += amount
        now = time.monotonic()
        if now - self._last < _PAUSE:
            return
        self._last = now
        rate = self._done / (now - self._start)
        if self._total is None:
            remark(f"{self._title}: {self._done} {self._unit}, {rate:,.1f}/s")
            return
        left = (self._total - self._done) / rate if rate else 0.0
        remark(f"{self._title}: {self._done} of {self._total} {self._unit}, {rate:,.0f}/s, {left:.0f} s left")
