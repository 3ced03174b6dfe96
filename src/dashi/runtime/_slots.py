"""Where what runs take from the host and leave on it lies: a few slots for each program, none taken while it is in use.

A run holds its slot from its submission until everything in it was read, or its ticket was dropped; a slot that takes
values from the host, from the moment that somebody fills it until the run is done. Slots are made when they are first
needed; after that nothing is allocated for a submission.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from dashi.errors import BusyError, InputError, TimeoutError_
from dashi.runtime._clock import RunTimes
from dashi.runtime.array import Array
from dashi.runtime.landing import Ticket, require_own, require_same
from dashi.types import HostArray

Read = Callable[[Any, int, "HostArray | None"], HostArray]
"""Copies an array out of a slot's storage, by its number, into an array of the host or a new one."""
Shown = Callable[[Any, int], "HostArray | None"]
"""An array in a slot's storage, by its number, as it can be copied from there; None where `Read` does more."""


class Slot:
    """Memory of the host that one run at a time uses. `unread` has a bit for each array that was not read yet; `end`
    is the end of the run that takes values from it, and `holder` whoever fills it."""

    __slots__ = ("end", "holder", "owner", "run", "storage", "unread")

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.run = 0
        self.unread = 0
        self.owner: weakref.ref[Ticket] | None = None
        self.holder: weakref.ref[Any] | None = None
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
        shown: Shown | None = None,
    ) -> None:
        self._label = label
        self._index = {id(array): i for i, array in enumerate(arrays)}
        self._all = sum(1 << i for i, array in enumerate(arrays) if array.nbytes)
        self._most = most
        self._read = read
        self._times = times
        self._shown = shown
        self._spare: list[Slot] = []
        self._own = weakref.ref(self)
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
        reference = weakref.ref(holder)
        spare = self._take_spare() if self._spare else None
        if spare is not None:
            spare.holder = reference
            return spare
        while True:
            with self._lock:
                slot = self._free(make)
                under_way = slot.end
                if under_way is None:
                    slot.holder = reference
                    return slot
                run = slot.run
            try:
                under_way.wait(timeout)
            except TimeoutError_ as error:
                raise TimeoutError_(
                    f"all {self._most} slots of the program {self._label!r} are used by runs that are under way, and "
                    f"run {run}, the oldest, is not done: {error.what}",
                    f"submit less at a time, or ask for more slots: device.program(..., slots={self._most + 1}).",
                ) from error

    def _take_spare(self) -> Slot | None:
        try:
            return self._spare.pop()
        except IndexError:  # somebody else has it
            return None

    def spare_one(self) -> None:
        """Looks for the slot that is handed out next, while the device is at work: then nobody waits for that."""
        with self._lock:
            if self._spare or self._times is not None or len(self._slots) < self._most:
                return
            for slot in self._slots:
                if not slot.claimed and (slot.end is None or slot.end.done):
                    slot.end, slot.holder = None, self._own
                    self._spare.append(slot)
                    return

    def submit(self, slot: Slot | None, holder: object, ticket: Ticket) -> Any:
        """The storage of a slot that its holder has filled, which is the ticket's from now on."""
        storage = self.begin(slot, holder)
        self.begun(slot, ticket)
        return storage

    def begin(self, slot: Slot | None, holder: object) -> Any:
        """The storage of a slot that its holder has filled, which is nobody's until a run has begun with it."""
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
            slot.holder = self._own
        return slot.storage

    def begun(self, slot: Slot | None, ticket: Ticket) -> None:
        """The slot is that of a ticket from now on. Until the end of the run is known (`under_way`), nobody else may
        take it."""
        assert slot is not None  # it was begun with
        with self._lock:
            self._assign(slot, ticket)

    def not_begun(self, slot: Slot | None) -> None:
        """Gives a slot back that no run has begun with."""
        if slot is not None:
            slot.holder = None

    def under_way(self, ticket: Ticket, end: Ticket) -> None:
        """Notes the end of the run that takes values from the ticket's slot: until then nobody fills it again."""
        slot = ticket.slot
        if slot is not None:
            slot.end = end
            slot.holder = None  # last, since whoever looks for a slot looks at the holder first

    def _assign(self, slot: Slot, ticket: Ticket) -> None:
        self._run = slot.run = ticket.run = self._run + 1
        slot.unread, slot.owner = self._all, weakref.ref(ticket)
        ticket.landing, ticket.slot = self, slot

    def give_back(self, ticket: Ticket) -> None:
        """Frees the slot of a run that came to nothing."""
        with self._lock:
            if ticket.slot is not None and ticket.slot.run == ticket.run:
                ticket.slot.run, ticket.slot.owner = 0, None

    def let_go(self, ticket: Ticket) -> None:
        """Nobody will read what the ticket's run leaves."""
        with self._lock:
            if ticket.slot is not None and ticket.slot.run == ticket.run:
                ticket.slot.owner = None

    def _free(self, make: Callable[[], Any]) -> Slot:
        last: Slot | None = None
        oldest: Slot | None = None
        grows = len(self._slots) < self._most
        for slot in self._slots if self._times is None else sorted(self._slots, key=_run_of):
            holder = slot.holder  # as `claimed` does, without the cost of a call
            if (holder is not None and holder() is not None) or (slot.unread and slot.claimed):
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

    def look_up(self, ticket: Ticket, array: Array, out: HostArray | None) -> tuple[int, HostArray | None]:
        """The number of an array to read into another, and how its values lie in the ticket's slot, where they can be
        copied as they are. For whoever is about to wait."""
        index = self._require(array, out)
        slot = ticket.slot
        if self._shown is None or out is None or slot is None or slot.run != ticket.run:
            return index, None
        return index, self._shown(slot.storage, index)

    def of_ticket(self, ticket: Ticket, index: int, values: HostArray | None, out: HostArray | None) -> HostArray:
        """The values that the ticket's run left, which is done (as `waited_for` notes), by what `look_up` gave."""
        with self._lock:
            run, slot = ticket.run, ticket.slot
            self._waited = max(self._waited, run)
            if slot is not None and slot.run == run:
                slot.end = None
                if values is not None and out is not None:
                    out[...] = values
                    slot.unread &= ~(1 << index)
                    return out
            return self._values(run, index, out)

    def of_run(self, run: int, array: Array) -> HostArray:
        """The values that a run left which is done, and whose slot no other took."""
        index = self._require(array, None)
        with self._lock:
            return self._values(run, index, None)

    def of_last(self, array: Array, out: HostArray | None = None) -> HostArray:
        """The values that the latest of the runs left that were waited for."""
        index = self._require(array, out)
        with self._lock:
            return self._values(self._waited, index, out)

    @property
    def counts(self) -> tuple[int, int]:
        """How many slots runs took anew, and how often one that another had used before."""
        taken = min(self._run, len(self._slots))
        return taken, self._run - taken

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

    def _require(self, array: Array, out: HostArray | None) -> int:
        """The number of an array that comes back; `out` is to fit it."""
        index = self._index.get(id(array))
        if index is None:
            raise InputError(
                f"{array.description} does not come back with the program {self._label!r}.",
                "name it when the program is made: device.program(..., fetch=[array]).",
            )
        if out is not None:
            require_own(f"`out` for {array.description}", out)
            if out.dtype != array.dtype.numpy or out.shape != array.shape:
                require_same(f"`out` for {array.description}", out, array)
        return index

    def _values(self, run: int, index: int, out: HostArray | None) -> HostArray:
        """A copy, made under the lock: meanwhile no submission takes the slot."""
        if not run:
            raise InputError(
                f"no run of the program {self._label!r} was waited for, so nothing came back yet.",
                "run it first: program.run(), or ticket.wait() after program.submit().",
            )
        slot = self._slot_of(run)
        values = self._read(slot.storage, index, out)
        slot.unread &= ~(1 << index)
        return values
