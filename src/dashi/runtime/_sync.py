"""Queues and their timelines: every submission gets the next value, every wait names one."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dashi.errors import ClosedError
from dashi.runtime._events import Awaited, Done, Event
from dashi.runtime._relay import Relay
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawSubmission, RawWait, Waits
from dashi.runtime.landing import Ticket

if TYPE_CHECKING:
    from dashi.runtime.device import Device

_SLICE_NS: Final = 100_000_000  # waits come up for air this often, so that Ctrl-C works


class QueueTicket(Ticket):
    """A submission: done when its queue's timeline reaches `value`. `events` are those that it
    waited for: what was to signal one and failed has failed this too."""

    __slots__ = ("events", "queue", "value")

    def __init__(self, device: Device, queue: Queue, value: int = 0) -> None:
        self.device = device
        self.landing = None
        self.queue = queue
        self.value = value
        self.events: Sequence[Event] = ()

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
        for event in self.events:
            if event.error is not None:
                raise event.error
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

    def when_done(self, call: Done) -> None:
        events = self.events
        if not events:
            self.queue.when_reached(self.value, call)
            return

        def call_with_error(error: BaseException | None) -> None:
            call(error or next((event.error for event in events if event.error is not None), None))

        self.queue.when_reached(self.value, call_with_error)

    @property
    def end(self) -> Ticket:
        ticket = QueueTicket(self.device, self.queue, self.value)
        ticket.events = self.events
        return ticket


class Port:
    """A queue of the driver, and the queues of ours that use it: one, or several where the driver has too few."""

    def __init__(self, raw: RawDevice, family: int, index: int) -> None:
        self.handle = raw.queue(family, index)
        self.family = family
        self.lock = threading.RLock()
        self.users: dict[int, Queue] = {}


class Queue:
    """A queue with one timeline semaphore; thread-safe. Where it shares the driver's queue with others, work that must
    wait is held back here until it can begin, so that it stands in nobody's way, as on hardware that has more."""

    def __init__(
        self,
        raw: RawDevice,
        port: Port,
        name: str,
        timeout: float,
        relay: Relay,
        awaited: Awaited,
        *,
        export: bool = False,
    ) -> None:
        self._raw = raw
        self._port = port
        self._handle = port.handle
        self._lock = port.lock
        self._submitted = 0
        self._begun = 0
        self._held: deque[tuple[RawSubmission, int, Waits]] = deque()
        self._failure: BaseException | None = None
        self._waiters: list[RawWait] = []
        self._timeout = timeout
        self._relay = relay
        self._awaited = awaited
        self.name = name
        self.family = port.family
        self.timeline = raw.create_timeline(export=export)
        port.users[self.timeline] = self

    def submit(self, submission: RawSubmission, waits: Waits = ()) -> int:
        """Submits and returns the timeline value that marks its end. What `waits` names comes first; nobody blocks."""
        with self._lock:
            if not self._handle:
                raise ClosedError("this queue is closed.", "close the device later.")
            value = self._submitted + 1
            if self._held or (waits and self._missing(waits)):
                self._hold(submission, value, waits)
            else:
                submission.submit(self._handle, value, waits)
                self._begun = value
            self._submitted = value
        return value

    # Queues that share one of the driver's

    def _missing(self, waits: Waits) -> tuple[int, int] | None:
        """What work must be held back for: a timeline that is signalled neither yet nor by what stands before it in the
        driver's queue. None on a queue of one's own, which may stand still."""
        users = self._port.users
        if len(users) == 1:
            return None
        for timeline, value in waits:
            sibling = users.get(timeline)
            if (sibling is None or sibling._begun < value) and self._raw.timeline_value(timeline) < value:
                return timeline, value
        return None

    def _hold(self, submission: RawSubmission, value: int, waits: Waits) -> None:
        self._held.append((submission, value, waits))
        if len(self._held) == 1:
            self._watch(self._missing(waits))

    def _watch(self, missing: tuple[int, int] | None) -> None:
        # What is missing nothing any more goes on at once, but on the thread: the lock is held here.
        timeline, value = missing or (self.timeline, 0)
        self._relay.watch(timeline, value, self._go_on)

    def _go_on(self, error: BaseException | None) -> None:
        """Submits what need not be held back any longer, in order."""
        with self._lock:
            while self._held and self._handle and error is None:
                submission, value, waits = self._held[0]
                missing = self._missing(waits)
                if missing is not None:
                    self._watch(missing)
                    return
                try:
                    submission.submit(self._handle, value, waits)
                except Exception as failure:
                    error = failure
                    break
                self._held.popleft()
                self._begun = value
            if error is not None:
                self._failure = error
                self._held.clear()

    # Waiting

    def when_reached(self, value: int, call: Done) -> None:
        """Calls once the timeline has reached `value`, on another thread unless that is so already."""
        if self.reached() >= value:
            call(None)
        else:
            self._relay.watch(self.timeline, value, call)

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
            if self._failure is not None:
                raise self._failure
            if time.monotonic() > deadline:
                raise self._awaited.too_late(timeout)

    @property
    def submitted(self) -> int:
        """The timeline value of the last submission."""
        return self._submitted

    def reached(self) -> int:
        """The timeline's present value."""
        return self._raw.timeline_value(self.timeline)

    def close(self) -> None:
        """Destroys the timeline. What was made for it is forgotten: nothing may be called with a dead handle."""
        with self._lock:
            self._handle = 0
            self._held.clear()
            self._port.users.pop(self.timeline, None)
        self._raw.destroy("Semaphore", self.timeline)
        self._waiters.clear()
