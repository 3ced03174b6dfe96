"""Recordings by what they read and write in place: made when they are first needed, the latest of them kept."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from dashi.graph.passes.record import Recorded
    from dashi.runtime.array import Array
    from dashi.runtime.block import Block


@dataclass(frozen=True, eq=False)
class Place:
    """Memory of a value that stays on the device, and whose recordings name it."""

    block: Block
    array: Array
    users: weakref.WeakSet[Recordings[Any]] = field(default_factory=lambda: weakref.WeakSet[Recordings[Any]]())

    def release(self) -> None:
        """Drops the recordings that use it; the memory goes back once their last runs are done."""
        for recordings in list(self.users):
            recordings.forget(self)


@dataclass(frozen=True)
class ResidentKey:
    """A run with inputs that lie on the device, results that are copied there, and results for the host."""

    inputs: tuple[tuple[str, Place], ...]
    copies: tuple[tuple[str, Place, int | None], ...]
    """(the result, the place, the most of its rows that are copied; None where it is all of it)"""
    fetch: tuple[str, ...]
    imported: frozenset[str] = frozenset()
    """Inputs that are copied to their places before the run."""

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(place for _, place, *_ in (*self.inputs, *self.copies))


@dataclass(frozen=True)
class RowKey:
    """A copy of one row of a result into a row of a place."""

    output: str
    source_row: int
    place: Place
    target_row: int

    @property
    def places(self) -> tuple[Place, ...]:
        return (self.place,)


class Keyed(Protocol):
    """What a recording follows from."""

    @property
    def places(self) -> tuple[Place, ...]:
        """The memory that it names."""
        ...


_Key = TypeVar("_Key", bound=Keyed)


class Recordings(Generic[_Key]):
    """Up to `most` recordings; those that were not used for longest give way. Whoever runs one holds it."""

    def __init__(self, make: Callable[[_Key], Recorded], most: int) -> None:
        self._make = make
        self._most = most
        self._lock = threading.Lock()
        self._recorded: OrderedDict[_Key, Recorded] = OrderedDict()

    def get(self, key: _Key) -> Recorded:
        """The recording for a key, made where there is none. One thread at a time asks."""
        with self._lock:
            recorded = self._recorded.get(key)
            if recorded is not None:
                self._recorded.move_to_end(key)
                return recorded
        recorded = self._make(key)
        for place in key.places:
            place.users.add(self)
        with self._lock:
            self._recorded[key] = recorded
            while len(self._recorded) > self._most:
                self._recorded.popitem(last=False)
        return recorded

    def forget(self, place: Place) -> None:
        """Drops the recordings that use a place."""
        with self._lock:
            for key in [key for key in self._recorded if place in key.places]:
                del self._recorded[key]

    def close(self) -> None:
        """Ends all recordings."""
        with self._lock:
            recordings = list(self._recorded.values())
            self._recorded.clear()
        for recorded in recordings:
            recorded.program.close()

    def __len__(self) -> int:
        return len(self._recorded)
