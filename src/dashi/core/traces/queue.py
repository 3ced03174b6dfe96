"""What a device's queue does, as spans of a trace: every program that is submitted while a device is watched.

A span begins when the work was submitted, or when the queue was done with what came before it, and ends when the host
saw that it had ended: a thread waits for each submission in turn. Where the device ran it in less than that, the
difference is the time in which it was not at work.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

from dashi.core.traces.trace import Span, Trace
from dashi.errors import DashiError
from dashi.runtime._watching import WatchedProgram, watched
from dashi.runtime.device import Device, Program, Waitable

_QUEUE: Final = "queue 0"


class _Watch:
    """The thread that waits, and what it waits for."""

    def __init__(self, device: Device, trace: Trace) -> None:
        self.trace = trace
        self._group = device.info.name
        self._jobs: queue.SimpleQueue[tuple[Waitable, str, int, int] | None] = queue.SimpleQueue()
        self._free = 0
        self._thread = threading.Thread(target=self._work, name="dashi-trace", daemon=True)
        self._thread.start()

    def submitted(self, ticket: Waitable, label: str, begin: int, dispatches: int) -> None:
        self._jobs.put((ticket.end, label, begin, dispatches))

    def finish(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            ticket, label, begin, dispatches = job
            try:
                ticket.wait()
            except DashiError:
                continue  # whoever submitted it is told
            end = self.trace.now()
            start = min(max(begin, self._free), end)
            self._free = end
            self.trace.add(Span(self._group, _QUEUE, label, start, end, {"dispatches": dispatches}))


class TracedProgram(WatchedProgram):
    """A program whose submissions are noted."""

    def __init__(self, program: Program, watch: _Watch) -> None:
        super().__init__(program)
        self._watch = watch

    def submit(self, after: Iterable[Waitable] = ()) -> Waitable:
        begin = self._watch.trace.now()
        ticket = super().submit(after)
        self._watch.submitted(ticket, self.label or "program", begin, self.dispatches)
        return ticket


@contextmanager
def watch(device: Device, trace: Trace) -> Generator[None]:
    """While it lasts, programs recorded on the device leave a span for each submission."""
    watching = _Watch(device, trace)
    try:
        with watched(device, lambda program: TracedProgram(program, watching)):
            yield
    finally:
        watching.finish()
