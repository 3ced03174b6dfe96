"""A process that runs one shard for `local_jobs`: a pickled job comes on its standard input, events and the end of it
go out on its standard output, as lines of JSON.

The job comes from the process that started this one, and from nobody else. When standard input ends, because that
process asks for it or is gone, the shard is stopped as by Ctrl-C; what does not end then is ended.
"""

from __future__ import annotations

import _thread
import json
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import IO, Any, Final

from dashi.errors import DashiError
from dashi.lab.events import Advance
from dashi.lab.shards._shard_job import GRACE, run_shard

_BEAT: Final = 0.1
"""Seconds between two reports of progress, at least."""


class _PipedEvents:
    """Events as lines for the process that listens."""

    def __init__(self, pipe: IO[str]) -> None:
        self._pipe, self._waiting, self._last = pipe, dict[str, int](), time.monotonic()

    def send(self, **message: Any) -> None:
        """Writes a line; where nobody listens any more, the end of standard input stops the work."""
        with suppress(OSError):
            print(json.dumps(message), file=self._pipe, flush=True)

    def remark(self, *lines: str) -> None:
        self.send(remark=list(lines))

    @contextmanager
    def progress(self, title: str, total: int | None, unit: str) -> Generator[Advance]:
        def advance(amount: int) -> None:
            self._waiting[unit] = self._waiting.get(unit, 0) + amount
            if time.monotonic() - self._last >= _BEAT:
                self._flush()

        yield advance
        self._flush()

    def _flush(self) -> None:
        self._last = time.monotonic()
        for unit, amount in self._waiting.items():
            self.send(advance=amount, unit=unit)
        self._waiting.clear()


def main() -> None:
    """Runs the shard that comes in."""
    # Ignored in what a script runs in the background, and then inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no message
    job = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    events = _PipedEvents(pipe)
    try:
        threading.Thread(target=_stop_at_end_of_input, daemon=True).start()  # it can stop what stands below at once
        end = _ending(lambda: run_shard(job, events))
    except KeyboardInterrupt:  # it came as the work ended
        end = {"end": "stopped"}
    with suppress(KeyboardInterrupt):
        events.send(**end)


def _ending(work: Callable[[], object]) -> dict[str, Any]:
    """What is said of how the work ended."""
    try:
        work()
    except KeyboardInterrupt:
        return {"end": "stopped"}
    except DashiError as error:
        return {"end": "failed", "kind": type(error).__name__, "what": error.what, "fix": error.fix}
    return {"end": "done"}


def _stop_at_end_of_input() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    _thread.interrupt_main()
    time.sleep(GRACE)
    os._exit(1)


if __name__ == "__main__":
    main()
