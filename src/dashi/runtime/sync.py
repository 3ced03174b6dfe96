"""Queues and their timelines: every submission gets the next value, every wait names one."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

from dashi.errors import TimeoutError_
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawSubmission, RawWait

_SLICE_NS: Final = 100_000_000  # waits come up for air this often, so that Ctrl-C works


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Ticket:
    """A submission: done when its queue's timeline reaches `value`."""

    queue: Queue
    value: int

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the work is done."""
        self.queue.wait(self.value, timeout)

    @property
    def done(self) -> bool:
        return self.queue.reached() >= self.value


class Queue:
    """One device queue with one timeline semaphore; thread-safe."""

    def __init__(self, raw: RawDevice, family: int, index: int, timeout: float) -> None:
        self._raw = raw
        self._handle = raw.queue(family, index)
        self._lock = threading.Lock()
        self._submitted = 0
        self._waiters: list[RawWait] = []
        self._timeout = timeout
        self.family = family
        self.timeline = raw.create_timeline()

    def submit(self, submission: RawSubmission, waits: tuple[int, ...] = ()) -> int:
        """Submits and returns the timeline value that marks its end."""
        with self._lock:
            value = self._submitted + 1
            submission.submit(self._handle, value, waits)
            self._submitted = value
        return value

    def wait(self, value: int, timeout: float | None = None) -> None:
        """Blocks until the timeline reaches `value`; a hung device gives an error, not a hung process."""
        # list.pop and append are atomic, so a wait costs no lock and no allocation.
        try:
            waiter = self._waiters.pop()
        except IndexError:
            waiter = RawWait(self._raw, self.timeline)
        try:
            if not waiter.wait(value, _SLICE_NS):
                self._wait_on(waiter, value, self._timeout if timeout is None else timeout)
        finally:
            self._waiters.append(waiter)

    def _wait_on(self, waiter: RawWait, value: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not waiter.wait(value, _SLICE_NS):
            if time.monotonic() > deadline:
                raise TimeoutError_(
                    f"the device did not finish its work within {timeout:g} s.",
                    "submit less work at a time, or raise the limit: dashi.open(device, timeout=SECONDS).",
                )

    @property
    def submitted(self) -> int:
        """The timeline value of the last submission."""
        return self._submitted

    def reached(self) -> int:
        """The timeline's present value."""
        return self._raw.timeline_value(self.timeline)

    def close(self) -> None:
        self._raw.destroy("Semaphore", self.timeline)
