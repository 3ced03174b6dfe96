"""Writing beside the work: pieces are done in order by a thread of its own, and whoever hands them in goes on."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

MOST_BYTES: Final = 1 << 28
"""That wait, unless a single piece holds more, before whoever hands in more waits too."""
MOST_PIECES: Final = 64
"""That wait at most."""

Piece = Callable[[], object]


class Writer:
    """Does pieces of work in the order in which they were handed in. What one of them raises is raised by the next
    `put` or `wait`, or at the end of the `with` block; the pieces after it are not done.

    Leaving the block waits for all that was handed in, also where an error or Ctrl-C ends it: nothing is lost. Where no
    block can stand, `start` and `stop` are its ends.
    """

    def __init__(
        self, most_bytes: int = MOST_BYTES, most_pieces: int = MOST_PIECES, *, name: str = "dashi writer"
    ) -> None:
        self._most_bytes, self._most_pieces = most_bytes, most_pieces
        self.waited = 0.0
        """Seconds that whoever handed in waited for room."""
        self._pieces: deque[tuple[Piece, int]] = deque()
        self._bytes = 0
        """Bytes of the pieces that wait or are being done."""
        self._busy = self._ended = self._failed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if error is None:
            self._raise()

    def start(self) -> None:
        """Begins to do what is handed in."""
        self._thread.start()

    def stop(self, *, drop: bool = False) -> None:
        """Ends the thread when all is done; with `drop`, after the piece that is under way: the others are forgotten.
        Raises nothing. Stopping twice is harmless."""
        with self._changed:
            self._ended = True
            if drop:
                self._pieces.clear()
            self._changed.notify_all()
        self._thread.join()

    def put(self, piece: Piece, nbytes: int = 0) -> None:
        """Hands in a piece that holds so many bytes; waits while too much waits already."""
        began = time.perf_counter()
        with self._changed:
            if not self._failed and not self._has_room(nbytes):
                self._changed.wait_for(lambda: self._failed or self._has_room(nbytes))
                self.waited += time.perf_counter() - began
            self._raise()
            self._pieces.append((piece, nbytes))
            self._bytes += nbytes
            self._changed.notify_all()

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be done; a piece that is being done may ask."""
        return not self._pieces

    def wait(self) -> None:
        """Until everything that was handed in is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._failed or (not self._pieces and not self._busy))
            self._raise()

    def _has_room(self, nbytes: int) -> bool:
        return not self._pieces or (self._bytes + nbytes <= self._most_bytes and len(self._pieces) < self._most_pieces)

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._pieces) or self._ended)
                if not self._pieces:
                    return
                (piece, nbytes), self._busy = self._pieces.popleft(), True
            try:
                if not self._failed:
                    piece()
            except BaseException as error:  # whatever it is, whoever handed it in is told
                self._failed, self._error = True, error
            del piece  # with what it holds, before there is room for the next
            with self._changed:
                self._busy = False
                self._bytes -= nbytes
                self._changed.notify_all()
