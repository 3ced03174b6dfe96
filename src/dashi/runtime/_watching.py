"""Programs that are watched: what stands before a program sees its submissions, and leaves all else to it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

from dashi.runtime._clock import RunTimes
from dashi.runtime._description import Description
from dashi.runtime._feeding import Feed, RunSlot
from dashi.runtime._hazards import Batch
from dashi.runtime._slots import Slot
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Recording, Waitable
from dashi.types import HostArray


class WatchedProgram(Program):
    """A program that stands before another. Whoever watches overrides `submit`."""

    def __init__(self, program: Program) -> None:
        super().__init__(
            program.device, program.steps, program.label, Recording(fetch=program.fetches, feed=program.feeds)
        )
        self._inner = program
        self.dispatches, self.barriers, self.queue = program.dispatches, program.barriers, program.queue
        self.copied_feeds, self.copied_fetches = program.copied_feeds, program.copied_fetches

    def submit(self, after: Iterable[Waitable] = (), feed: Feed | None = None) -> Waitable:
        return self._inner.submit(after, feed)

    def _hand_out(self, slot: RunSlot, timeout: float | None) -> Slot:
        return self._inner._hand_out(slot, timeout)

    def fetched_of(self, run: int, array: Array) -> HostArray:
        return self._inner.fetched_of(run, array)

    @property
    def slot_counts(self) -> tuple[int, int]:
        return self._inner.slot_counts

    def _last_times(self) -> RunTimes | None:
        return self._inner._last_times()

    def schedule(self) -> Sequence[Batch]:
        return self._inner.schedule()

    def fetched(self, array: Array, out: HostArray | None = None) -> HostArray:
        return self._inner.fetched(array, out)

    def interval(self) -> tuple[int, int] | None:
        return self._inner.interval()

    def describe(self) -> Description:
        return self._inner.describe()

    def close(self) -> None:
        self._closed = True
        self._inner.close()


@contextmanager
def watched(device: Device, by: Callable[[Program], WatchedProgram]) -> Generator[None]:
    """While it lasts, every program that is recorded on the device is watched, by whoever watched before as well."""
    before = device.watcher
    device.watcher = by if before is None else lambda program: by(before(program))
    try:
        yield
    finally:
        device.watcher = before
