"""Values that go from the host to the device with a run: slots that callers fill, each submitted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from dashi.errors import InputError
from dashi.runtime._host_values import host_array
from dashi.runtime._slots import Landing, Slot
from dashi.runtime.array import Array
from dashi.runtime.landing import Ticket, require_same
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._program import Program

_NOTHING: Final[Mapping[int, HostArray]] = {}


class RunSlot:
    """Memory of the host for one run of a program, handed out by `program.slot()`: fill it, then submit it, once.

    `slot[a]` is a NumPy array in that memory, of the shape and type of the array that the program feeds; filling it
    waits for nothing. What was not filled holds what an earlier run left there.
    """

    __slots__ = ("__weakref__", "_program", "feeds", "slot")

    def __init__(self, program: Program) -> None:
        self._program = program
        self.slot: Slot | None = None
        self.feeds = _NOTHING

    def __getitem__(self, array: Array) -> HostArray:
        values = self.feeds.get(id(array))
        if values is None:
            self._program.device.require_open()
            self._require_held()  # what was submitted or given back has no feeds any more
            raise InputError(
                f"the program {self._program.label!r} does not feed {_description(array)}.",
                "name it when the program is made: device.program(..., feed=[array]).",
            )
        return values[...]  # a view: whoever gives it another form does not give that to the slot

    def __setitem__(self, array: Array, values: Any) -> None:
        """Copies values of the array's shape and type into the slot."""
        target = self[array]
        if isinstance(values, np.ndarray):
            host = cast("HostArray", values)
        else:
            host = host_array(values, None if hasattr(values, "dtype") else array.dtype)
        if host.dtype != target.dtype and host.dtype == array.dtype.numpy:
            host = array.dtype.to_stored(host)
        if host.dtype != target.dtype or host.shape != target.shape:
            require_same(f"what the program {self._program.label!r} is fed", host, array)
        target[...] = host

    def submit(self, after: Iterable[Ticket] = ()) -> Ticket:
        """Starts a run with these values, after other work, and returns at once."""
        return self._program.submit(after, feed=self)

    def take(self, landing: Landing, ticket: Ticket) -> Any:
        """The storage of the slot, which is the ticket's from now on."""
        storage = landing.submit(self.slot, self, ticket)
        self.let_go()
        return storage

    def let_go(self) -> None:
        """What it has shown is the run's."""
        self.feeds = _NOTHING

    def close(self) -> None:
        """Gives the slot back without a run. Harmless once it was submitted; forgetting it does as much."""
        if self._held() and self.slot is not None:
            self.slot.holder = None
            self.feeds = _NOTHING

    def _require_held(self) -> None:
        if not self._held():
            raise InputError(
                f"this slot of the program {self._program.label!r} was submitted or given back already.",
                "take another for each run: program.slot().",
            )

    def _held(self) -> bool:
        holder = None if self.slot is None else self.slot.holder
        return holder is not None and holder() is self

    def __enter__(self) -> RunSlot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RunSlot of the program {self._program.label!r}: {len(self.feeds)} arrays to fill>"


Feed = RunSlot | Mapping[Array, Any]
"""What a run is fed with: a slot that was filled, or values by array."""


def filled_slot(program: Program, feed: Feed | None, arrays: Sequence[Array]) -> RunSlot:
    """The slot to submit, filled with the values where they were passed by array. All that the program feeds must be
    there: what an earlier run left in a slot is nobody's guess."""
    if isinstance(feed, RunSlot):
        return feed
    if not isinstance(feed, Mapping):
        if feed is not None:
            raise InputError(
                f"`feed` takes a dict of values by array, not {type(feed).__name__}.", "pass feed={array: values}."
            )
        raise InputError(
            f"the program {program.label!r} is fed with {len(arrays)} arrays at every run, and nothing was passed.",
            "pass their values: program.submit(feed={array: values}), or fill a slot: program.slot().",
        )
    missing = [array for array in arrays if array not in feed]
    if missing:
        raise InputError(
            f"the program {program.label!r} is also fed with {missing[0].description}.",
            "pass the values of all of them: feed={array: values, ...}.",
        )
    slot = program.slot()
    try:
        for array, values in feed.items():
            slot[array] = values
    except BaseException:
        slot.close()
        raise
    return slot


def require_no_feed(program: Program, feed: Feed | None) -> None:
    """No slot; raises where values were passed to a program that takes none."""
    if feed is not None:
        raise InputError(
            f"the program {program.label!r} is fed with nothing.",
            "name the arrays when it is made: device.program(..., feed=[array]).",
        )


def _description(array: Any) -> str:
    return array.description if isinstance(array, Array) else repr(array)
