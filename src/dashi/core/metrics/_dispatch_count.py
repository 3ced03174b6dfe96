"""How much of something ran on a device: the dispatches that were submitted while it went on."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from dashi.runtime._feeding import Feed
from dashi.runtime._watching import WatchedProgram, watched
from dashi.runtime.device import Device, Program, Waitable


class Count:
    """Compute dispatches that were submitted so far."""

    def __init__(self) -> None:
        self.dispatches = 0


class CountedProgram(WatchedProgram):
    """A program whose submissions are counted."""

    def __init__(self, program: Program, count: Count) -> None:
        super().__init__(program)
        self._count = count

    def submit(self, after: Iterable[Waitable] = (), feed: Feed | None = None) -> Waitable:
        ticket = super().submit(after, feed)
        self._count.dispatches += self.dispatches
        return ticket


@contextmanager
def counted(device: Device) -> Generator[Count]:
    """While it lasts, submissions of programs that are recorded on the device are counted. A trace goes on."""
    count = Count()
    with watched(device, lambda program: CountedProgram(program, count)):
        yield count
