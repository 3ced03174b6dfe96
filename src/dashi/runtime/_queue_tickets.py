"""Tickets of work that was submitted to a queue of a Vulkan device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dashi.runtime._events import Done
from dashi.runtime._host_gates import Failable, RunOutcome
from dashi.runtime.landing import Ticket
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._sync import Queue
    from dashi.runtime.array import Array
    from dashi.runtime.device import Device


class QueueTicket(Ticket):
    """A submission: done when its queue's timeline reaches `value`. `events` are those that it
    waited for: what was to signal one and failed has failed this too. Its own host steps are among them."""

    __slots__ = ("all_before", "events", "queue", "value")

    def __init__(self, device: Device, queue: Queue, value: int = 0) -> None:
        self.device = device
        self.landing = None
        self.queue = queue
        self.value = value
        self.events: Sequence[Failable] = ()
        self.all_before: Sequence[tuple[Queue, int]] | None = None
        """The places of other queues up to which everything came first, of a transfer after all that was submitted."""

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
        if self.events:
            self._raise_error()
        if self.device.failures.listed:
            self._raise_untold()
        if self.landing is not None:
            self.landing.waited_for(self)

    def fetched(self, array: Array, out: HostArray | None = None) -> HostArray:
        landing = self.landing
        if landing is None:
            return super().fetched(array, out)
        # As `wait`, and reading, without the cost of two calls.
        gate = self.device.gate
        entered = gate.entered
        try:
            entered.append(None)
            if gate.refusal is not None:
                raise gate.refusal()
            index, values = landing.look_up(self, array, out)
            failures = self.device.failures
            self.queue.wait(self.value)
            if self.events:
                self._raise_error()
            if failures.listed:
                self._raise_untold()
            return landing.of_ticket(self, index, values, out)
        finally:
            entered.pop()

    def _raise_error(self) -> None:
        """Raises the first error of what it waited for. Whoever gets that need not be told of the others."""
        failed = [event for event in self.events if event.error is not None]
        for event in failed:
            if isinstance(event, RunOutcome):
                self.device.failures.forget(event)
        if failed and failed[0].error is not None:
            raise failed[0].error

    def _raise_untold(self) -> None:
        """Raises the error of work that came before this in its queue, or before all that this came after, where nobody
        was told of it."""
        self.device.failures.raise_before([*(self.all_before or ()), (self.queue, self.value)])

    @property
    def done(self) -> bool:
        gate = self.device.gate
        entered = gate.entered
        try:
            entered.append(None)
            if gate.refusal is not None:
                raise gate.refusal()
            return self.queue.known >= self.value or self.queue.reached() >= self.value
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
        ticket.events, ticket.all_before = self.events, self.all_before
        return ticket
