"""Programs on a Vulkan device: steps recorded once into command buffers, resubmitted for microseconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import ClosedError
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawCommands, RawDispatch, RawSubmission
from dashi.runtime.array import Array
from dashi.runtime.device import Program, Recording, Step, Waitable
from dashi.runtime.info import Barriers
from dashi.runtime.staging import synchronise
from dashi.runtime.sync import Queue, Ticket
from dashi.types import Array as HostArray

if TYPE_CHECKING:
    from dashi.runtime.vulkan_device import Lowered, VulkanDevice

_WORK_PER_SUBMISSION: Final = 32
"""A submission holds at most this many times the work of the largest dispatch: drivers kill long ones."""


class VulkanProgram(Program):
    """Recorded command buffers. `barriers` counts those placed between dispatches."""

    device: VulkanDevice

    def __init__(
        self, device: VulkanDevice, steps: Sequence[Step], label: str, options: Recording, queue: Queue
    ) -> None:
        super().__init__(device, steps, label, options)
        self._queue = queue
        self._timestamps = device.raw.create_query_pool(2) if options.timed else None
        self._recorded: list[RawCommands] = []
        self._closed = False
        self._landing = {id(a): device.landing(a.nbytes) for a in options.fetch}
        self._bury = device.graveyard.watch(self, _destroy(device.raw, self._recorded, self._timestamps))
        self._record(options.barriers)
        self._lock = threading.Lock()
        self._submissions = [RawSubmission(device.raw, [c.handle], queue.timeline) for c in self._recorded]
        self._ran_timed = False

    def _record(self, barriers: Barriers) -> None:
        commands = self._begin()
        if self._timestamps is not None:
            commands.timestamp(self._timestamps, 0, end=False)
        for i, batch in enumerate(self._batches()):
            if i:
                self._end(commands)
                commands = self._begin()
            commands.dispatch(batch, barriers)
        if self.fetches:
            commands.in_order()
            for array in self.fetches:
                commands.copy(array.storage.range[:2], self._landing[id(array)].range[:2], array.nbytes)
        if self._timestamps is not None:
            commands.timestamp(self._timestamps, 1, end=True)
        self._end(commands)

    def _batches(self) -> Iterator[list[RawDispatch]]:
        """The dispatches of all steps, cut where a submission would grow too long."""
        budget = self.device.work_per_dispatch * _WORK_PER_SUBMISSION
        ready: list[Lowered] = [step.lowered for step in self.steps]
        if sum([lowered.work for lowered in ready]) <= budget:
            yield list(chain.from_iterable([lowered.dispatches for lowered in ready]))
            return
        batch: list[RawDispatch] = []
        total = 0
        for lowered in ready:
            if total and total + lowered.work > budget:
                yield batch
                batch, total = [], 0
            batch += lowered.dispatches
            total += lowered.work
        yield batch

    def _begin(self) -> RawCommands:
        commands = RawCommands(self.device.raw, self._queue.family)
        self._recorded.append(commands)
        commands.begin()
        commands.label(self.label)
        return commands

    def _end(self, commands: RawCommands) -> None:
        commands.end_label()
        commands.results_to_host()
        commands.end()
        self.dispatches += commands.dispatches
        self.barriers += commands.barriers

    def submit(self, after: Iterable[Waitable] = ()) -> Waitable:
        self.device.require_open()
        if self._closed:
            raise ClosedError(f"the program {self.label!r} is closed.", "record it again, or close it later.")
        queue, value = self._queue, 0
        with self._lock:
            for other in sort_waits(self.device, queue, after):
                # The device itself waits for another queue's timeline, in an empty submission of its own.
                queue.submit(RawSubmission(self.device.raw, [], queue.timeline, [other.queue.timeline]), (other.value,))
            for submission in self._submissions:
                value = queue.submit(submission)
        self._ran_timed = self._timestamps is not None
        return Ticket(queue, value)

    def device_ns(self) -> int | None:
        if self._timestamps is None or not self._ran_timed:
            return None
        start, end = self.device.raw.query_results(self._timestamps, 2)
        return round((end - start) * self.device.info.timestamp_ns)

    def fetched(self, array: Array) -> HostArray:
        landing = self._landing[id(array)]
        synchronise(self.device.raw, landing, flush=False)
        assert landing.view is not None  # memory for reading back is always mapped
        flat = np.frombuffer(landing.view, np.uint8, array.nbytes).copy()
        return flat.view(array.dtype.numpy).reshape(array.shape)

    def close(self) -> None:
        """Frees the recording once its last run is done. Closing twice is harmless."""
        self._closed = True
        self._bury()
        self.device.graveyard.drain()


def sort_waits(device: VulkanDevice, queue: Queue, after: Iterable[Waitable]) -> list[Ticket]:
    """Those tickets that the device can wait for by itself; work of the same queue is ordered anyway, and work of
    other devices is waited for here."""
    waits: list[Ticket] = []
    for other in after:
        if not isinstance(other, Ticket) or other.queue not in device.queues:
            other.wait()
        elif other.queue is not queue:
            waits.append(other)
    return waits


def _destroy(raw: RawDevice, recorded: list[RawCommands], timestamps: int | None) -> Callable[[], None]:
    def destroy() -> None:
        for commands in recorded:
            commands.close()
        if timestamps is not None:
            raw.destroy("QueryPool", timestamps)

    return destroy
