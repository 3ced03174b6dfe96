"""Writing beside the work: pieces are done in order by a thread of its own, and whoever hands them in goes on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

MOST: Final = 8
"""Pieces that wait before whoever hands in more waits too."""


class Writer:
    """Does pieces of work in the order in which they were handed in. What one of them raises is raised by the next
    `put`, or at the end of the `with` block; the pieces after it are not done.

    Leaving the block waits for all that was handed in, also where an error or Ctrl-C ends it: nothing is lost.
    """

    def __init__(self, most: int = MOST) -> None:
        self._pieces: queue.Queue[Callable[[], object] | None] = queue.Queue(most)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="dashi writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pieces.put(None)
        self._thread.join()
        if error is None:
            self._raise()

    def put(self, piece: Callable[[], object]) -> None:
        """Hands in a piece; waits while too many wait already."""
        self._raise()
        self._pieces.put(piece)

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be done."""
        return self._pieces.empty()

    def wait(self) -> None:
        """Until everything that was handed in is done."""
        self._pieces.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _work(self) -> None:
        failed = False
        while True:
            piece = self._pieces.get()
            try:
                if piece is None:
                    return
                if not failed:
                    piece()
            except BaseException as error:
                failed, self._error = True, error
            finally:
                self._pieces.task_done()
