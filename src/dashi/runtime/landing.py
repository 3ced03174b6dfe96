"""Where what runs take from the host and leave on it lies: a few slots for each program, none taken while it is in use.

A run holds its slot from its submission until everything in it was read, or its ticket was dropped; a slot that takes
values from the host, from the moment that somebody fills it until the run is done. Slots are made when they are first
needed; after that nothing is allocated for a submission.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from dashi.errors import BusyError, DTypeError, InputError, NoResultError, ShapeError, TimeoutError_
from dashi.runtime._clock import RunTimes, StepSpan
from dashi.runtime._gate import Gate, inside
from dashi.runtime.array import Array
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device


Read = Callable[[Any, int, "HostArray | None"], HostArray]
"""Copies an array out of a slot's storage, by its number, into an array of the host or a new one."""


def require_same(what: str, values: HostArray, array: Array) -> None:
    """Raises where values of the host have not the shape and type of an array."""
    if values.dtype != array.dtype.numpy:
        raise DTypeError(
            f"{what} has elements of {values.dtype}, not of {array.dtype}.",
            f"convert it: values.astype(np.{array.dtype}).",
        )
    if values.shape != array.shape:
        raise ShapeError(f"{what} has the shape {values.shape}, not {array.shape}.", "pass an array of the same shape.")


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
    def fetched(self, array: Array, out: HostArray | None = None) -> HostArray:
        """A copy of one of the arrays that come back with the run (`fetch`), as it was at the end of this run; waits
        for it. It is new, or `out`, of the same shape and type. Once all of them were read, the next submission may
        take their place."""
        if self.landing is None:
            raise InputError(
                "nothing comes back with this work.", "name what should: device.program(..., fetch=[...])."
            )
        self.wait()
        return self.landing.of_ticket(self, array, out)

    @inside
    def device_ns(self) -> int | None:
        """Nanoseconds that the run took on the device's own clock; waits for it. None where that is not known: programs
        made without `timed`, copies. A program has the times of as many runs as it has slots: those of earlier ones
        give way."""
        times = self._run_times()
        return None if times is None else times.end_ns - times.start_ns

    @inside
    def step_times(self) -> tuple[StepSpan, ...]:
        """When each step of the run was under way, on the device's own clock; waits for it. For programs made with
        `timed="steps"`."""
        times = self._run_times()
        if times is None and self.landing is not None and self.landing.times_runs:
            raise NoResultError(
                f"{self.device.info.name!r} has no clock that runs are timed by.",
                "time it elsewhere: another device of `dashi devices list`.",
            )
        if times is None or times.steps is None:
            raise InputError(
                "the steps of this work were not timed.",
                'say so when it is recorded: device.program(..., timed="steps").',
            )
        return times.steps

    def _run_times(self) -> RunTimes | None:
        if self.landing is None or not self.landing.times_runs:
            return None
        self.wait()
        return self.landing.times_of(self.run)


def require_tickets(after: Any) -> list[Ticket]:
    """What work is to come after must be tickets, in a list."""
    tickets = list(cast("Iterable[Any]", after)) if isinstance(after, Iterable) else None
    if tickets is None or not all(hasattr(ticket, "wait") for ticket in tickets):
        raise InputError(
            f"`after` takes a list of tickets, not {after!r}.", "pass what submit() or copy() gave: after=[ticket]."
        )
    return tickets


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
    """Memory of the host that one run at a time uses. `unread` has a bit for each array that was not read yet; `end`
    is the end of the run that takes values from it, and `holder` whoever fills it."""

    __slots__ = ("end", "holder", "owner", "run", "storage", "unread")

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.run = 0
        self.unread = 0
        self.owner: weakref.ref[Ticket] | None = None
        self.holder: weakref.ref[object] | None = None
        self.end: Ticket | None = None

    @property
    def held(self) -> bool:
        """Whether somebody fills it."""
        return self.holder is not None and self.holder() is not None

    @property
    def claimed(self) -> bool:
        """Whether somebody fills it, or holds the ticket of a run that was not read."""
        return self.held or (bool(self.unread) and self.owner is not None and self.owner() is not None)


def _run_of(slot: Slot) -> int:
    return slot.run


class Landing:
    """The slots of one program: `storage` is that of the first, and `read` copies an array out of one, into an array
    of the host where there is one. Where runs are timed, `times` reads those of the latest run in a slot, and slots are
    taken in turn, so that the times of earlier runs stay."""

    def __init__(
        self,
        label: str,
        arrays: Sequence[Array],
        most: int,
        storage: Any,
        read: Read,
        times: Callable[[Any], RunTimes | None] | None = None,
    ) -> None:
        self._label = label
        self._index = {id(array): i for i, array in enumerate(arrays)}
        self._all = sum(1 << i for i, array in enumerate(arrays) if array.nbytes)
        self._most = most
        self._read = read
        self._times = times
        self._lock = threading.Lock()
        self._slots = [Slot(storage)]
        self._run = 0
        self._waited = 0

    def take(self, ticket: Ticket, make: Callable[[], Any]) -> Any:
        """The storage of a slot, which is the ticket's from now on; `make` gives that of a new one."""
        with self._lock:
            slot = self._free(make)
            self._assign(slot, ticket)
        return slot.storage

    def hand_out(self, holder: object, make: Callable[[], Any], timeout: float | None = None) -> Slot:
        """A slot for somebody to fill, who holds it until it is submitted or he is forgotten. Waits for the oldest run
        where all slots are used by runs that are under way."""
        while True:
            with self._lock:
                slot = self._free(make)
                under_way, run = slot.end, slot.run
                if under_way is None:
                    slot.holder = weakref.ref(holder)
                    return slot
            try:
                under_way.wait(timeout)
            except TimeoutError_ as error:
                raise TimeoutError_(
                    f"all {self._most} slots of the program {self._label!r} are used by runs that are under way, and "
                    f"run {run}, the oldest, is not done: {error.what}",
                    f"submit less at a time, or ask for more slots: device.program(..., slots={self._most + 1}).",
                ) from error

    def submit(self, slot: Slot | None, holder: object, ticket: Ticket) -> Any:
        """The storage of a slot that its holder has filled, which is the ticket's from now on."""
        with self._lock:
            if slot not in self._slots:
                raise InputError(
                    f"this slot is none of the program {self._label!r}.",
                    "submit slots where they come from: slot.submit().",
                )
            if slot.holder is None or slot.holder() is not holder:
                raise InputError(
                    f"this slot of the program {self._label!r} was submitted or given back already.",
                    "take another for each run: program.slot().",
                )
            # Until the end of the run is known, the slot is the ticket's: nobody else may take it meanwhile.
            slot.holder = weakref.ref(ticket)
            self._assign(slot, ticket)
        return slot.storage

    def under_way(self, ticket: Ticket, end: Ticket) -> None:
        """Notes the end of the run that takes values from the ticket's slot: until then nobody fills it again."""
        with self._lock:
            if ticket.slot is not None:
                ticket.slot.end, ticket.slot.holder = end, None

    def _assign(self, slot: Slot, ticket: Ticket) -> None:
        self._run += 1
        slot.run = ticket.run = self._run
        slot.unread, slot.owner = self._all, weakref.ref(ticket)
        ticket.landing, ticket.slot = self, slot

    def give_back(self, ticket: Ticket) -> None:
        """Frees the slot of a run that came to nothing."""
        with self._lock:
            if ticket.slot is not None and ticket.slot.run == ticket.run:
                ticket.slot.run, ticket.slot.owner = 0, None

    def _free(self, make: Callable[[], Any]) -> Slot:
        last: Slot | None = None
        oldest: Slot | None = None
        grows = len(self._slots) < self._most
        for slot in self._slots if self._times is None else sorted(self._slots, key=_run_of):
            if slot.claimed:
                continue
            if slot.end is not None and slot.end.done:
                slot.end = None
            if slot.end is not None:
                oldest = slot if oldest is None or slot.run < oldest.run else oldest
            elif not slot.run or slot.run != self._waited:
                if slot.run and grows and self._times is not None:
                    break
                return slot
            else:
                last = slot
        # What the program itself answers for goes last: it was read, or there can be no other slot.
        if last is not None and not (grows and (last.unread or self._times is not None)):
            return last
        if grows:
            self._slots.append(Slot(make()))
            return self._slots[-1]
        if oldest is not None:
            return oldest
        raise self._busy()

    def _busy(self) -> BusyError:
        filled = sum(slot.held for slot in self._slots)
        if filled:
            return BusyError(
                f"all {self._most} slots of the program {self._label!r} are in use: {filled} of them are being filled, "
                "and the others hold results that were not read.",
                "submit them (slot.submit) or give them back (slot.close), or ask for more: "
                f"device.program(..., slots={self._most + 1}).",
            )
        return BusyError(
            f"all {self._most} slots of the program {self._label!r} hold results that were not read.",
            "read them (ticket.fetched) or drop their tickets before submitting again, or ask for more: "
            f"device.program(..., slots={self._most + 1}).",
        )

    def waited_for(self, ticket: Ticket) -> None:
        """Makes the ticket's run the one that the program answers for, unless a later one was waited for."""
        with self._lock:
            self._waited = max(self._waited, ticket.run)
            slot = ticket.slot
            if slot is not None and slot.run == ticket.run:
                slot.end = None  # whoever takes the slot next need not ask the device

    def of_ticket(self, ticket: Ticket, array: Array, out: HostArray | None = None) -> HostArray:
        """The values that the ticket's run left, which was waited for."""
        with self._lock:
            return self._values(ticket.run, array, out)

    def of_last(self, array: Array, out: HostArray | None = None) -> HostArray:
        """The values that the latest of the runs left that were waited for."""
        with self._lock:
            return self._values(self._waited, array, out)

    @property
    def times_runs(self) -> bool:
        """Whether the device takes the times of runs."""
        return self._times is not None

    def times_of(self, run: int) -> RunTimes | None:
        """The times of a run that is done; None where the device takes none."""
        if self._times is None:
            return None
        with self._lock:
            return self._times(self._slot_of(run).storage)

    def _slot_of(self, run: int) -> Slot:
        slot = next((slot for slot in self._slots if slot.run == run), None)
        if slot is None:
            raise InputError(
                f"what run {run} of the program {self._label!r} left gave way to a run that was submitted since.",
                f"read it before submitting again, or ask for more slots: device.program(..., slots={self._most + 1}).",
            )
        return slot

    def _values(self, run: int, array: Array, out: HostArray | None) -> HostArray:
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
        slot = self._slot_of(run)
        if out is not None and (out.dtype != array.dtype.numpy or out.shape != array.shape):
            require_same(f"`out` for {array.description}", out, array)
        values = self._read(slot.storage, index, out)
        slot.unread &= ~(1 << index)
        return values
