"""Who is inside a device: closing it waits for the calls that are under way, and later ones are refused.

A call enters by one append and leaves by one pop, both atomic: that costs nanoseconds, where a lock for readers and
writers would be a part of every submission that one could measure. The append stands inside the `try`, so that Ctrl-C
cannot leave it behind.
"""

from __future__ import annotations

import inspect
import os
import time
import weakref
from collections.abc import Callable
from functools import cache, wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from dashi.errors import ClosedError, ForkedError

_LONGEST_PAUSE: Final = 0.01


class Forkable(Protocol):
    """What must be told that this process is a copy of another, in which the threads of that one are gone."""

    def after_fork(self) -> None: ...


_FORKABLE: weakref.WeakSet[Forkable] = weakref.WeakSet()
_LEFT_BEHIND: list[str] = []
"""Names of the hardware devices that this process' parent had open when it forked."""


def watch_forks(thing: Forkable) -> None:
    """From now on it is told, in child processes that are forked."""
    _register()
    _FORKABLE.add(thing)


@cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_tell_all)


def _tell_all() -> None:
    for thing in list(_FORKABLE):
        thing.after_fork()


class Gate:
    """Counts the calls inside a device. `refusal` makes the error that whoever enters gets, once it is shut."""

    __slots__ = ("__weakref__", "entered", "forked", "name", "refusal")

    def __init__(self, name: str) -> None:
        self.name = name
        self.entered: list[None] = []
        self.refusal: Callable[[], ClosedError] | None = None
        self.forked = False

    def require_open(self) -> None:
        """Raises where the gate is shut."""
        if self.refusal is not None:
            raise self.refusal()

    def refuse(self) -> None:
        """From now on refuses whoever comes."""
        self.refusal = self._closed

    def shut(self) -> bool:
        """Refuses whoever comes, and returns when all who were inside have left. False, at once, if the caller is
        one of them (a signal's handler that interrupted a call): that one cannot be waited for."""
        self.refuse()
        pause = 1e-5
        while self.entered:
            if self._entered_here():
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def _entered_here(self) -> bool:
        """Whether this thread is inside: whoever enters has the list in a local variable of this name."""
        here = inspect.currentframe()
        # Not from its own frame on: the locals of that would hold it, and all frames below, until the next collection.
        frame = None if here is None else here.f_back
        del here
        while frame is not None:
            if frame.f_locals.get("entered") is self.entered:
                return True
            frame = frame.f_back
        return False

    def _closed(self) -> ClosedError:
        return ClosedError(
            f"the device {self.name!r} is closed.", "open it again with dashi.open(), or close it later."
        )

    def leave_behind(self, *, hardware: bool = False) -> None:
        """What happens to it in a child process: it is shut, and nobody is waited for. With `hardware` its driver
        cannot be used here any more, for any device."""
        self.forked = True
        self.refusal = self._forked
        if hardware:
            _LEFT_BEHIND.append(self.name)

    def _forked(self) -> ForkedError:
        return ForkedError(
            f"the device {self.name!r} was opened in another process, of which this one is a copy.",
            "open a device after the fork, or start processes by spawning: multiprocessing.get_context('spawn').",
        )


def require_usable_drivers() -> None:
    """Raises ForkedError in a child whose parent had a hardware device open: its driver was seen to wait for ever
    (NVIDIA 580), since what it began before the fork goes on in the parent alone."""
    if _LEFT_BEHIND:
        raise ForkedError(
            f"this process was forked from one that had {_LEFT_BEHIND[0]!r} open, and its driver cannot begin again.",
            "start processes by spawning: multiprocessing.get_context('spawn'); or fork before a device is opened.",
        )


class _Gated(Protocol):
    @property
    def gate(self) -> Gate: ...


_Owner = TypeVar("_Owner", bound=_Gated)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def inside(method: Callable[Concatenate[_Owner, _P], _R]) -> Callable[Concatenate[_Owner, _P], _R]:
    """A method that runs inside its owner's gate, or raises because that is shut."""

    @wraps(method)
    def call(self: _Owner, *values: _P.args, **named: _P.kwargs) -> _R:
        gate = self.gate
        entered = gate.entered
        try:
            entered.append(None)
            if gate.refusal is not None:
                raise gate.refusal()
            return method(self, *values, **named)
        finally:
            entered.pop()

    return call
