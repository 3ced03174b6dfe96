"""Queues and their timelines: every submission gets the next value, every wait names one."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from dashi.errors import ClosedError, TimeoutError_
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawSubmission, RawWait
from dashi.runtime.landing import Ticket

if TYPE_CHECKING:
    from dashi.runtime.device import Device

_SLICE_NS: Final = 100_000_000  # waits come up for air this often, so that Ctrl-C works


class QueueTicket(Ticket):
    """A submission: done when its queue's timeline reaches `value`."""

    __slots__ = ("queue", "value")

    def __init__(self, device: Device, queue: Queue, value: int = 0) -> None:
        self.device = device
        self.landing = None
        self.queue = queue
        self.value = value

    def wait(self, timeout: float | None = None) -> None:
        # As the decorator `inside` does, without the cost of a call: this is as hot as submitting.
        gate = self.device.gate
        entered = gate.entered
        try:
            entered.append(None)
            if gate.refusal is not None:
                raise gate.refusal()
            self.queue.wait(self.value, timeout)
        finally:
            entered.pop()
        if self.landing is not None:
            self.landing.waited_for(self)

    @property
    def done(self) -> bool:
        gate = self.device.gate
        entered = gate.entered
        try:
            entered.append(None)
            if gate.refusal is not None:
                raise gate.refusal()
            return self.queue.reached() >= self.value
        finally:
            entered.pop()

    @property
    def end(self) -> Ticket:
        return QueueTicket(self.device, self.queue, self.value)


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
            if not self._handle:
                raise ClosedError("this queue is closed.", "close the device later.")
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
        """Destroys the timeline. What was made for it is forgotten: nothing may be called with a dead handle."""
        self._raw.destroy("Semaphore", self.timeline)
        self._handle = 0
        self._waiters.clear()
