"""What a device's queues do, as spans of a trace: every submission while it is watched, on the track of its queue.

A span begins when the work was submitted, or when the queue was done with what came before it, and ends when the host
was told that it had ended. Where the device ran it in less than that, the difference is the time in which it was not
at work.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Final

from dashi.core.traces.trace import Span, Trace
from dashi.runtime._submissions import Submission
from dashi.runtime.device import Device

_LAST_WAIT: Final = 60.0


class _Watch:
    """The submissions that have not ended yet, and when each queue was last done with one."""

    def __init__(self, trace: Trace, group: str) -> None:
        self._trace = trace
        self._group = group
        self._changed = threading.Condition()
        self._under_way = 0
        self._free: dict[str, int] = {}

    def submitted(self, submission: Submission) -> None:
        begin = self._trace.now()
        with self._changed:
            self._under_way += 1
        submission.ticket.when_done(partial(self._ended, submission.queue, submission.label, begin, submission))

    def _ended(self, track: str, label: str, begin: int, submission: Submission, error: BaseException | None) -> None:
        with self._changed:
            end = self._trace.now()
            if error is None:  # else whoever submitted it is told
                start = min(max(begin, self._free.get(track, 0)), end)
                self._free[track] = end
                self._trace.add(Span(self._group, track, label, start, end, {"dispatches": submission.dispatches}))
            self._under_way -= 1
            self._changed.notify_all()

    def finish(self) -> None:
        """Returns when what was submitted has ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, _LAST_WAIT)


@contextmanager
def watch(device: Device, trace: Trace, part: str = "") -> Generator[None]:
    """While it lasts, every submission to the device leaves a span on the track of its queue. `part` tells a second
    device of the same name from the first."""
    name = device.info.name
    watching = _Watch(trace, f"{name}, {part}" if part else name)
    stop = device.on_submit(watching.submitted)
    try:
        yield
    finally:
        stop()
        watching.finish()
