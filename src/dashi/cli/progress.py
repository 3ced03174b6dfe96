"""Progress of long work, on stderr: a bar with rate and time left on a terminal, plain lines elsewhere.

Plain lines come from a thread of their own, so that work which says nothing for long is seen to go on all the same.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from dashi.cli.flags import in_flags
from dashi.cli.output import remark

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dashi.report.live import LiveView

Advance = Callable[[int], None]
_FIRST: Final = 2.0
"""Seconds before the first line: shorter work has none."""
_PAUSE: Final = 5.0
"""Seconds between lines at first; later a line comes after each twentieth of the time so far."""
_PARTS: Final = 20
_WIDEST: Final = 64
"""Columns of a picture."""
_PICTURES_PER_SECOND: Final = 4


@contextmanager
def progress(title: str, total: int | None, unit: str) -> Generator[Advance]:
    """Shows progress while it lasts; call what it gives with the number of units that were finished. The total is None
    where nobody knows it beforehand, the unit empty where nothing is counted."""
    if sys.stderr.isatty():
        with _bar(title, total, unit) as advance:
            yield advance
    else:
        with _beating(Lines(title, total, unit)) as lines:
            yield lines.advance


@contextmanager
def phase(title: str) -> Generator[None]:
    """Shows that work goes on, and for how long it has."""
    with progress(title, None, ""):
        yield


class Shown:
    """Events of a job on stderr: remarks as lines, with the flags of the command that runs; progress as here, below
    what a live view holds."""

    def __init__(self, view: LiveView | None = None) -> None:
        self._view = view

    def remark(self, *lines: str) -> None:
        remark(*map(in_flags, lines))

    def progress(self, title: str, total: int | None, unit: str) -> AbstractContextManager[Advance]:
        return progress(title, total, unit) if self._view is None else _bar(title, total, unit, self._view)


def rate_text(per_second: float, unit: str) -> str:
    """Units per second, with as many digits as say something: 1,234 steps/s, 2.5 steps/s, 0.014 steps/s."""
    return f"{per_second:,.0f} {unit}/s" if per_second >= 10 else f"{per_second:.2g} {unit}/s"


@contextmanager
def _bar(title: str, total: int | None, unit: str, view: LiveView | None = None) -> Generator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Units per second."""

        def render(self, task: Task) -> Text:
            return Text(rate_text(task.speed, unit) if task.speed else "")

    console = Console(stderr=True)

    class Pictured(Progress):
        """Progress below pictures of the run."""

        def get_renderables(self) -> Iterable[RenderableType]:
            if view is not None:
                yield from picture_lines(view, console.width)
            yield from super().get_renderables()

    counted = (MofNCompleteColumn(), Rate()) if unit else ()
    times = (TimeElapsedColumn(), *((TimeRemainingColumn(),) if total is not None else ()))
    columns = (TextColumn("{task.description}"), BarColumn(), *counted, *times)
    rate = 10 if view is None else _PICTURES_PER_SECOND
    with Pictured(*columns, console=console, transient=True, refresh_per_second=rate) as bar:
        task = bar.add_task(title, total=total)
        yield lambda amount: bar.advance(task, amount)


def picture_lines(view: LiveView, width: int) -> list[RenderableType]:
    """What a view holds as lines of half blocks, each two pixels high."""
    from rich.text import Text

    from dashi.report.live import half_blocks

    lines: list[RenderableType] = []
    for picture in view.pictures(max(8, min(_WIDEST, width - 1))):
        for row in half_blocks(picture):
            line = Text(no_wrap=True)
            for upper, lower in row:
                line.append("\u2580", f"rgb({upper[0]},{upper[1]},{upper[2]}) on rgb({lower[0]},{lower[1]},{lower[2]})")
            lines.append(line)
    return lines


class Lines:
    """Lines now and then: not a terminal, so nothing can be drawn over."""

    def __init__(self, title: str, total: int | None, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._total, self._unit, self._clock = title, total, unit, clock
        self._done = 0
        self._start = clock()
        self._next = self._start + _FIRST

    def advance(self, amount: int) -> None:
        """So many more units are finished."""
        self._done += amount

    def beat(self) -> float:
        """A line, if it is time for one; the seconds until it will be."""
        now = self._clock()
        if now >= self._next:
            spent = now - self._start
            remark(self._text(spent))
            self._next = now + max(_PAUSE, spent / _PARTS)
        return self._next - now

    def _text(self, spent: float) -> str:
        done, total = self._done, self._total
        so_far = f"{spent:.0f} s so far"
        if not self._unit:
            return f"{self._title}: {so_far}"
        counted = f"{done}" if total is None else f"{done} of {total}"
        if not done:
            return f"{self._title}: {counted} {self._unit}, {so_far}"
        rate = done / spent
        left = "" if total is None else f", {max(0, total - done) / rate:.0f} s left"
        return f"{self._title}: {counted} {self._unit}, {rate_text(rate, self._unit)}{left}"


@contextmanager
def _beating(lines: Lines) -> Generator[Lines]:
    """Lets lines come while the work goes on."""
    over = threading.Event()

    def beat() -> None:
        with suppress(OSError, ValueError):  # nobody reads stderr any more: the work goes on without lines
            pause = lines.beat()
            while not over.wait(pause):
                pause = lines.beat()

    thread = threading.Thread(target=beat, name="dashi progress", daemon=True)
    thread.start()
    try:
        yield lines
    finally:
        over.set()
        thread.join()
