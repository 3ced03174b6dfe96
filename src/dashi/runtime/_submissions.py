"""What is told of submissions to whoever asked: the queue, the label, the ticket, and when it was submitted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashi.runtime.landing import Ticket

if TYPE_CHECKING:
    from dashi.runtime.device import Device

_log = logging.getLogger("dashi")


@dataclass(frozen=True)
class Submission:
    """Work that was submitted to a queue of a device. `ticket` is the end of the work and nothing else; `at` is a
    reading of `time.perf_counter_ns`."""

    device: Device
    queue: str
    label: str
    ticket: Ticket
    dispatches: int
    at: int


Listener = Callable[[Submission], None]


class Listeners:
    """Functions that are called with every submission to a device."""

    __slots__ = ("_calls", "_labels")

    def __init__(self) -> None:
        self._calls: tuple[Listener, ...] = ()
        self._labels = threading.local()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, call: Listener) -> Callable[[], None]:
        """From now on it is called; what is returned ends that."""

        def listener(submission: Submission) -> None:  # a function of its own: the same call may be there twice
            call(submission)

        self._calls = (*self._calls, listener)

        def remove() -> None:
            self._calls = tuple(c for c in self._calls if c is not listener)

        return remove

    @contextmanager
    def labelled(self, label: str) -> Generator[None]:
        """While it lasts, submissions of this thread have this label, whatever their programs are called."""
        before = getattr(self._labels, "label", "")
        self._labels.label = label
        try:
            yield
        finally:
            self._labels.label = before

    def tell(self, device: Device, queue: str, label: str, ticket: Ticket, dispatches: int = 0) -> None:
        """Tells all of them; what fails in one is logged, since the work was submitted all the same."""
        label = getattr(self._labels, "label", "") or label
        submission = Submission(device, queue, label, ticket.end, dispatches, time.perf_counter_ns())
        for call in self._calls:
            try:
                call(submission)
            except Exception:
                _log.exception("what was to be told of a submission failed")
