"""How much of something ran on a device: the dispatches that were submitted while it went on."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Recording, Waitable
from dashi.types import Array as HostArray


class Count:
    """Compute dispatches that were submitted so far."""

    def __init__(self) -> None:
        self.dispatches = 0


class CountedProgram(Program):
    """A program whose submissions are counted; everything else is the program's own."""

    def __init__(self, program: Program, count: Count) -> None:
        super().__init__(program.device, program.steps, program.label, Recording(fetch=program.fetches))
        self._inner, self._count = program, count
        self.dispatches, self.barriers = program.dispatches, program.barriers

    def submit(self, after: Iterable[Waitable] = ()) -> Waitable:
        ticket = self._inner.submit(after)
        self._count.dispatches += self.dispatches
        return ticket

    def device_ns(self) -> int | None:
        return self._inner.device_ns()

    def fetched(self, array: Array) -> HostArray:
        return self._inner.fetched(array)

    def close(self) -> None:
        self._inner.close()


@contextmanager
def counted(device: Device) -> Generator[Count]:
    """While it lasts, submissions of programs that are recorded on the device are counted. A trace goes on."""
    count, before = Count(), device.watcher
    device.watcher = lambda program: CountedProgram(before(program) if before else program, count)
    try:
        yield count
    finally:
        device.watcher = before
