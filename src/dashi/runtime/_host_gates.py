"""Places in a queue that what follows passes when a function of the host has returned."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Protocol

SUBMISSIONS_INSIDE: Final = 1 << 16
"""Timeline values before a gate for what a host step submits."""
FARTHEST_VALUE: Final = 1 << 30
"""Drivers promise 2^31 - 1 between the value that a timeline has and those that are waited for."""


class Failable(Protocol):
    """What may end by an error: an event, a run with host steps."""

    @property
    def error(self) -> BaseException | None: ...

    @property
    def succeeded(self) -> bool:
        """Whether it has ended, without an error."""
        ...


class RunOutcome:
    """The error of a run with host steps, if it failed, and whether somebody was told; `succeeded` once all of its
    steps have returned. `number` is the value that its queue's timeline reaches with it."""

    __slots__ = ("error", "number", "queue", "reported", "succeeded")

    def __init__(self, queue: Hashable, number: int) -> None:
        self.queue, self.number = queue, number
        self.error: BaseException | None = None
        self.succeeded = self.reported = False


class HostGate:
    """A place in a queue that what follows passes when a function of the host has returned. `value` is the last before
    it: what the function itself submits comes before the gate too, by values up to `end`."""

    __slots__ = ("end", "open", "thread", "value")

    def __init__(self, value: int) -> None:
        self.value = value
        self.end = value + SUBMISSIONS_INSIDE
        self.open = False
        self.thread: int | None = None
