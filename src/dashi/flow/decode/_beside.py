"""Decodes beside a run: states wait in a window, and a thread decodes them in their order while the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from dashi.io._writer import Writer
from dashi.types import HostArray

WINDOW: Final = 3
"""States that wait to be decoded, before the run waits too."""

Row = TypeVar("Row")


class DecodeThread(Generic[Row]):
    """Calls `decode` with steps and their states, in a thread that begins with the first of them and keeps their order.
    The first error ends it: it is raised by the next `put`, or by `rows`."""

    def __init__(self, decode: Callable[[int, HostArray], Row], window: int = WINDOW) -> None:
        self._decode, self._window = decode, window
        self._writer: Writer | None = None
        self._rows: list[Row] = []

    @property
    def waited(self) -> float:
        """Seconds that the run waited, since the window was full."""
        return self._writer.waited if self._writer else 0.0

    def put(self, step: int, states: HostArray) -> None:
        """Hands in states, which are the thread's own from now on; waits while the window is full."""
        if self._writer is None:
            self._writer = Writer(most_pieces=self._window, name="dashi decode")
            self._writer.start()
        self._writer.put(lambda: self._rows.append(self._decode(step, states)))

    def wait(self) -> None:
        """Until all that was handed in is decoded."""
        if self._writer is not None:
            self._writer.wait()

    def rows(self) -> list[Row]:
        """Waits for all that was handed in; what came of it, each once."""
        self.wait()
        rows, self._rows = self._rows, []
        return rows

    def close(self) -> None:
        """Ends the thread after the decode that is under way."""
        if self._writer is not None:
            self._writer.stop(drop=True)
