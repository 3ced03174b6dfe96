"""Events of a job as plain lines: for notebooks, IPython and scripts, where nothing can be drawn over."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import IO

from dashi.lab.events import Advance


class PrintedEvents:
    """Prints remarks and progress on a stream: stderr, which notebooks and IPython show, unless another is passed.

    Progress is a line when the work has begun for `every` seconds, another after each `every` seconds more, and one at
    the end if there was any. Lines come when the job reports, from its own thread.
    """

    def __init__(
        self, stream: IO[str] | None = None, *, every: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._every, self._clock = stream, every, clock

    def remark(self, *lines: str) -> None:
        """Prints lines."""
        # Looked up late: a notebook's stream is another in every cell.
        stream = sys.stderr if self._stream is None else self._stream
        print(*lines, sep="\n", file=stream, flush=True)

    @contextmanager
    def progress(self, title: str, total: int | None, unit: str) -> Generator[Advance]:
        """Counts units of work while it lasts."""
        start = self._clock()
        done, lines, due = 0, 0, start + self._every

        def advance(amount: int) -> None:
            nonlocal done, lines, due
            done += amount
            now = self._clock()
            if now >= due:
                lines, due = lines + 1, now + self._every
                self.remark(_line(title, done, total, unit, now - start))

        yield advance
        if lines:
            self.remark(_line(title, done, total, unit, self._clock() - start))


def _line(title: str, done: int, total: int | None, unit: str, seconds: float) -> str:
    counted = f"{done:,}" if total is None else f"{done:,} of {total:,}"
    return f"{title}: {f'{counted} {unit}, ' if unit else ''}{seconds:.0f} s"
