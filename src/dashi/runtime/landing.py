"""Where results of runs come to lie on the host: a few slots for each program, none taken while somebody may read it.

A run holds its slot from its submission until everything in it was read, or its ticket was dropped. Slots are made
when they are first needed; after that nothing is allocated for a submission.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dashi.errors import BusyError, InputError
from dashi.runtime._gate import Gate, inside
from dashi.runtime.array import Array
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device


class Ticket:
    """Submitted work; of this class itself, work that was finished when it was submitted."""

    __slots__ = ("__weakref__", "device", "landing", "run", "slot")

    def __init__(self, device: Device) -> None:
        self.device = device
        self.landing: Landing | None = None
        self.slot: Slot | None = None
        self.run = 0

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the work is done."""
        self.device.require_open()
        if self.landing is not None:
            self.landing.waited_for(self)

    @property
    def done(self) -> bool:
        self.device.require_open()
        return True

    def when_done(self, call: Callable[[BaseException | None], None]) -> None:
        """Calls once the work is done, with None or the error that ended it: at once where that is so already, else
        on another thread."""
        call(None)

    @property
    def end(self) -> Ticket:
        """The end of the work and nothing else: waiting for it does not change what `Program.fetched` gives."""
        return Ticket(self.device)

    @property
    def gate(self) -> Gate:
        """The gate of its device."""
        return self.device.gate

    def __repr__(self) -> str:
        return f"<Ticket of work on {self.device.info.spec}>"

    @inside
    def fetched(self, array: Array) -> HostArray:
        """A copy of one of the arrays that come back with the run (`fetch`), as it was at the end of this run; waits
        for it. Once all of them were read, the next submission may take their place."""
        if self.landing is None:
            raise InputError(
                "nothing comes back with this work.", "name what should: device.program(..., fetch=[...])."
            )
        self.wait()
        return self.landing.of_ticket(self, array)


class Download(Ticket):
    """A copy of an array that is on its way to the host."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> HostArray:
        """The values, when they are there; asked again, a copy of them."""
        self.wait(timeout)
        return self._result_inside()

    @inside
    def _result_inside(self) -> HostArray:
        return self._values()

    def _values(self) -> HostArray:
        """The values, which have come."""
        raise NotImplementedError


class Slot:
    """Memory of the host that one run at a time fills. `unread` has a bit for each array that was not read yet."""

    __slots__ = ("owner", "run", "storage", "unread")

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.run = 0
        self.unread = 0
        self.owner: weakref.ref[Ticket] | None = None

    @property
    def claimed(self) -> bool:
        """Whether somebody holds the ticket of a run that was not read."""
        return bool(self.unread) and self.owner is not None and self.owner() is not None


class Landing:
    """The slots of one program: `storage` is that of the first, and `read` copies an array out of one."""

    def __init__(
        self, label: str, arrays: Sequence[Array], most: int, storage: Any, read: Callable[[Any, int], HostArray]
    ) -> None:
        self._label = label
        self._index = {id(array): i for i, array in enumerate(arrays)}
        self._all = sum(1 << i for i, array in enumerate(arrays) if array.nbytes)
        self._most = most
        self._read = read
        self._lock = threading.Lock()
        self._slots = [Slot(storage)]
        self._run = 0
        self._waited = 0

    def take(self, ticket: Ticket, make: Callable[[], Any]) -> Any:
        """The storage of a slot, which is the ticket's from now on; `make` gives that of a new one."""
        with self._lock:
            slot = self._free(make)
            self._run += 1
            slot.run = ticket.run = self._run
            slot.unread, slot.owner = self._all, weakref.ref(ticket)
        ticket.landing, ticket.slot = self, slot
        return slot.storage

    def give_back(self, ticket: Ticket) -> None:
        """Frees the slot of a run that came to nothing."""
        with self._lock:
            if ticket.slot is not None and ticket.slot.run == ticket.run:
                ticket.slot.run, ticket.slot.owner = 0, None

    def _free(self, make: Callable[[], Any]) -> Slot:
        last: Slot | None = None
        for slot in self._slots:
            if not slot.claimed:
                if slot.run != self._waited:
                    return slot
                last = slot
        # What the program itself answers for goes last: it was read, or there can be no other slot.
        if last is not None and (not last.unread or len(self._slots) == self._most):
            return last
        if len(self._slots) < self._most:
            self._slots.append(Slot(make()))
            return self._slots[-1]
        raise BusyError(
            f"all {self._most} slots of the program {self._label!r} hold results that were not read.",
            "read them (ticket.fetched) or drop their tickets before submitting again, or ask for more: "
            f"device.program(..., slots={self._most + 1}).",
        )

    def waited_for(self, ticket: Ticket) -> None:
        """Makes the ticket's run the one that the program answers for, unless a later one was waited for."""
        with self._lock:
            self._waited = max(self._waited, ticket.run)

    def of_ticket(self, ticket: Ticket, array: Array) -> HostArray:
        """The values that the ticket's run left, which was waited for."""
        with self._lock:
            return self._values(ticket.run, array)

    def of_last(self, array: Array) -> HostArray:
        """The values that the latest of the runs left that were waited for."""
        with self._lock:
            return self._values(self._waited, array)

    def _values(self, run: int, array: Array) -> HostArray:
        """A copy, made under the lock: meanwhile no submission takes the slot."""
        index = self._index.get(id(array))
        if index is None:
            raise InputError(
                f"{array.description} does not come back with the program {self._label!r}.",
                "name it when the program is made: device.program(..., fetch=[array]).",
            )
        if not run:
            raise InputError(
                f"no run of the program {self._label!r} was waited for, so nothing came back yet.",
                "run it first: program.run(), or ticket.wait() after program.submit().",
            )
        slot = next((slot for slot in self._slots if slot.run == run), None)
        if slot is None:
            raise InputError(
                f"what run {run} of the program {self._label!r} left gave way to a run that was submitted since.",
                f"read it before submitting again, or ask for more slots: device.program(..., slots={self._most + 1}).",
            )
        values = self._read(slot.storage, index)
        slot.unread &= ~(1 << index)
        return values
