"""Events: what submitted work waits for until the host, or other work, says that it may begin."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dashi.errors import ClosedError, DashiError, TimeoutError_
from dashi.runtime._gate import inside
from dashi.runtime.landing import Ticket, require_tickets

if TYPE_CHECKING:
    from dashi.runtime.device import Device

Done = Callable[[BaseException | None], None]


class Event(Ticket):
    """Something that has not happened until it is signalled, once. Work may be submitted `after` it, on any device and
    queue, before that: the submission returns at once, and the work begins when the event is signalled."""

    __slots__ = ("_calls", "_error", "_flag", "_lock", "label")

    def __init__(self, device: Device, label: str = "") -> None:
        super().__init__(device)
        self.label = label
        self._lock = threading.Lock()
        self._flag = threading.Event()
        self._calls: list[Done] = []
        self._error: BaseException | None = None

    @inside
    def signal(self, after: Iterable[Ticket] = ()) -> None:
        """Whoever waits for the event goes on: now, or once the work is done that `after` names, of any device. A
        second signal changes nothing."""
        tickets = require_tickets(after) if after else []
        if tickets:
            when_all_done(tickets, self.finish)
        else:
            self.finish()

    def finish(self, error: BaseException | None = None) -> None:
        """The signal itself, which a device that is being closed still takes. With an error, whoever waits for the
        event gets that."""
        with self._lock:
            if self._flag.is_set():
                return
            self._error = error  # before whoever waits on the device sees the signal
            try:
                self._reach()
            except DashiError as failure:  # a lost device: whoever waits is told
                error = self._error = error or failure
            self._flag.set()
            calls, self._calls = self._calls, []
        for call in calls:
            call(error)

    def _reach(self) -> None:
        """What a device needs, beyond this object, to see the signal."""

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the event was signalled."""
        limit = self.device.timeout if timeout is None else timeout
        self._stay(limit)
        if self._error is not None:
            raise self._error

    @inside
    def _stay(self, limit: float) -> None:
        self.device.awaited.add([self])  # whoever closes the device lets go of it
        if not self._flag.wait(limit):
            raise TimeoutError_(
                f"{self.description} was not signalled within {limit:g} s.",
                "signal it (event.signal()), or wait longer: dashi.open(device, timeout=SECONDS).",
            )

    @property
    def done(self) -> bool:
        """Whether it was signalled."""
        self.device.require_open()
        return self._flag.is_set()

    @property
    def signalled(self) -> bool:
        """Whether it was signalled, also where its device is closed."""
        return self._flag.is_set()

    @property
    def error(self) -> BaseException | None:
        """What ended the work that was to signal it, if something did."""
        return self._error

    @property
    def succeeded(self) -> bool:
        """Whether it was signalled, and by no error."""
        return self._flag.is_set() and self._error is None

    @property
    def end(self) -> Ticket:
        return self

    def when_done(self, call: Done) -> None:
        with self._lock:
            if not self._flag.is_set():
                self._calls.append(call)
                return
        call(self._error)

    @property
    def description(self) -> str:
        """The event, in words."""
        return f"the event {self.label!r} of {self.device.info.spec}"

    def __repr__(self) -> str:
        return f"<Event {self.label!r} of {self.device.info.spec}: {'' if self._flag.is_set() else 'not '}signalled>"


class RelayedEvent(Event):
    """The end of work of another device, as an event of this one."""

    __slots__ = ()

    @property
    def description(self) -> str:
        return f"work of {self.label}"


def relayed(work: Ticket, device: Device) -> Event:
    """An event of the device that the end of another's work signals."""
    event = RelayedEvent(device, work.device.info.spec)
    work.when_done(event.finish)
    return event


def when_all_done(tickets: Iterable[Ticket], call: Done) -> None:
    """Calls once all of the work is done, with the first error among them."""
    listed = list(tickets)
    lock = threading.Lock()
    left, first = len(listed), list[BaseException]()
    if not listed:
        call(None)

    def one_done(error: BaseException | None) -> None:
        nonlocal left
        with lock:
            left -= 1
            if error is not None:
                first.append(error)
            if left:
                return
        call(first[0] if first else None)

    for ticket in listed:
        ticket.when_done(one_done)


class Awaited:
    """The events that submitted work of a device waits for: what to name where a wait takes too long, and what to
    release where the device is closed."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._lock = threading.Lock()

    def add(self, events: Iterable[Event]) -> None:
        with self._lock:
            self._events = [event for event in self._events if not event.signalled]
            self._events += [event for event in events if not event.signalled and event not in self._events]

    @property
    def outstanding(self) -> list[Event]:
        """Events that were not signalled yet."""
        with self._lock:
            return [event for event in self._events if not event.signalled]

    def release(self, name: str) -> None:
        """Lets go whoever waits: the device is being closed."""
        for event in self.outstanding:
            event.finish(
                ClosedError(
                    f"the device {name!r} was closed while its work waited for {event.description}.",
                    "signal events before the device is closed.",
                )
            )

    def too_late(self, seconds: float) -> DashiError:
        """The error of a wait that took too long."""
        events = self.outstanding
        if not events:
            return TimeoutError_(
                f"the device did not finish its work within {seconds:g} s.",
                "submit less work at a time, or raise the limit: dashi.open(device, timeout=SECONDS).",
            )
        return TimeoutError_(
            f"the device did not finish its work within {seconds:g} s: it waits for "
            f"{', '.join(event.description for event in events)}.",
            "signal what it waits for (event.signal()), or submit what signals it.",
        )
