"""Programs on a Vulkan device: steps recorded once into command buffers, resubmitted for microseconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.runtime._binding import Step
from dashi.runtime._buffer import Buffer
from dashi.runtime._gate import inside
from dashi.runtime._program import Program, Recording, Waitable, require_tickets
from dashi.runtime._staging import synchronise
from dashi.runtime._sync import Queue, QueueTicket
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawCommands, RawDispatch, RawSubmission, Waits
from dashi.runtime._waits import waits_of
from dashi.runtime.array import Array
from dashi.runtime.info import Barriers
from dashi.runtime.landing import Landing
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import Lowered, VulkanDevice

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
        self._barriers: Barriers = options.barriers
        self._timestamps = device.raw.create_query_pool(2) if options.timed else None
        self._recorded: list[RawCommands] = []
        self._bury = device.graveyard.watch(self, _destroy(device.raw, self._recorded, self._timestamps))
        self._sources: list[Buffer] = [array.storage for array in self.fetches]
        self._lock = threading.Lock()
        first = self._record_slot()
        self._submissions = first.submissions
        if self.fetches:
            self._landing = Landing(label, self.fetches, options.slots, first, _reader(device.raw, self.fetches))
        self.dispatches = sum(commands.dispatches for commands in self._recorded)
        self.barriers = sum(commands.barriers for commands in self._recorded)
        self._ran_timed = False

    def _record_slot(self) -> _Slot:
        """Everything that a run needs which comes back to memory of its own."""
        first = len(self._recorded)
        landing = [self.device.landing(source.nbytes) for source in self._sources]
        self._record(landing)
        timeline = self._queue.timeline
        submissions = [RawSubmission(self.device.raw, [c.handle], timeline) for c in self._recorded[first:]]
        return _Slot(submissions, landing)

    def _record(self, landing: Sequence[Buffer]) -> None:
        commands = self._begin()
        if self._timestamps is not None:
            commands.timestamp(self._timestamps, 0, end=False)
        for i, batch in enumerate(self._batches()):
            if i:
                self._end(commands)
                commands = self._begin()
            commands.dispatch(batch, self._barriers)
        if landing:
            commands.in_order()
            for source, target in zip(self._sources, landing, strict=True):
                commands.copy(source.range[:2], target.range[:2], source.nbytes)
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

    def _barriers_by_step(self) -> list[int]:
        """Recorded once more, dispatch by dispatch, to see where barriers go."""
        commands = RawCommands(self.device.raw, self._queue.family)
        try:
            commands.begin()
            counts: list[int] = []
            for step in self.steps:
                before = commands.barriers
                commands.dispatch(step.lowered.dispatches, self._barriers)
                counts.append(commands.barriers - before)
            commands.end()
        finally:
            commands.close()
        return counts

    def submit(self, after: Iterable[Waitable] = ()) -> Waitable:
        # As the decorator `inside` does, without the cost of a call: a submission takes microseconds.
        device, queue = self.device, self._queue
        gate = device.gate
        entered = gate.entered
        try:
            entered.append(None)
            if gate.refusal is not None:
                raise gate.refusal()
            ticket = QueueTicket(device, queue)
            with self._lock:
                self.require_open()
                waits = waits_of(device, queue, require_tickets(after), ticket) if after else ()
                if self._landing is None:
                    for submission in self._submissions:
                        ticket.value = queue.submit(submission, waits)
                        waits = ()  # what follows on the queue comes after it
                else:
                    self._submit_to(self._landing, ticket, waits)
        finally:
            entered.pop()
        self._ran_timed = self._timestamps is not None
        if device.listeners:
            self._tell(ticket)
        return ticket

    def _submit_to(self, landing: Landing, ticket: QueueTicket, waits: Waits) -> None:
        slot: _Slot = landing.take(ticket, self._record_slot)
        try:
            for submission in slot.submissions:
                ticket.value = self._queue.submit(submission, waits)
                waits = ()
        except BaseException:
            landing.give_back(ticket)
            raise

    @inside
    def device_ns(self) -> int | None:
        # Whoever closes the program waits: it would take the timestamps away.
        with self._lock:
            self.require_open()
            if self._timestamps is None or not self._ran_timed:
                return None
            start, end = self.device.raw.query_results(self._timestamps, 2)
        return round((end - start) * self.device.info.timestamp_ns)

    @inside
    def interval(self) -> tuple[int, int] | None:
        with self._lock:
            self.require_open()
            if self._timestamps is None or not self._ran_timed:
                return None
            start, end = self.device.raw.query_results(self._timestamps, 2)
        clock = self.device.clock()
        return clock.host(start), clock.host(end)

    def close(self) -> None:
        gate = self.device.gate
        entered = gate.entered
        try:
            entered.append(None)
            if gate.refusal is not None:
                return  # it went with its device
            with self._lock:
                self._closed = True
            self._bury()
            self.device.graveyard.drain()
        finally:
            entered.pop()


@dataclass(frozen=True)
class _Slot:
    """A recording of the program, and the memory that its results come back to."""

    submissions: Sequence[RawSubmission]
    landing: Sequence[Buffer]


def _reader(raw: RawDevice, arrays: Sequence[Array]) -> Callable[[_Slot, int], HostArray]:
    """Copies of arrays out of a slot."""
    forms = [(array.dtype, array.shape, array.nbytes) for array in arrays]

    def read(slot: _Slot, index: int) -> HostArray:
        (dtype, shape, nbytes), landing = forms[index], slot.landing[index]
        synchronise(raw, landing, flush=False)
        view = landing.view
        assert view is not None  # memory for reading back is always mapped
        return dtype.from_bytes(np.frombuffer(view, np.uint8, nbytes).copy()).reshape(shape)

    return read


def _destroy(raw: RawDevice, recorded: list[RawCommands], timestamps: int | None) -> Callable[[], None]:
    def destroy() -> None:
        for commands in recorded:
            commands.close()
        if timestamps is not None:
            raw.destroy("QueryPool", timestamps)

    return destroy
