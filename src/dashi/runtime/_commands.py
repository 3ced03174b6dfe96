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
from dashi.runtime._hazards import Barrier, Batch, place_barriers
from dashi.runtime._program import Program, Recording, Waitable, require_tickets
from dashi.runtime._staging import synchronise
from dashi.runtime._sync import Queue, QueueTicket
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawCommands, RawDispatch, RawSubmission, raw_transfer
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
        self._timestamps = device.raw.create_query_pool(2) if options.timed else None
        self._recorded: list[RawCommands] = []
        self._bury = device.graveyard.watch(self, _destroy(device.raw, self._recorded, self._timestamps))
        self._sources: list[Buffer] = [array.storage for array in self.fetches]
        self._batches = list(self._placed(options.barriers))
        self._lock = threading.Lock()
        first = self._record_slot()
        self._submissions = first.submissions
        if self.fetches:
            self._landing = Landing(label, self.fetches, options.slots, first, _reader(device.raw, self.fetches))
        self.dispatches = sum(commands.dispatches for commands in self._recorded)
        self.barriers = sum(batch.barriers_between_steps for batch in self._batches)
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
        for i, batch in enumerate(self._batches):
            commands = self._begin()
            if self._timestamps is not None and not i:
                commands.timestamp(self._timestamps, 0, end=False)
            last = batch is self._batches[-1]
            fetches = [fetch(*pair) for pair in zip(self._sources, landing, strict=True)] if last else []
            commands.record([*batch.steps, *fetches], batch.barriers, transfers=bool(fetches))
            if self._timestamps is not None and last:
                commands.timestamp(self._timestamps, 1, end=True)
            self._end(commands)

    def _placed(self, barriers: Barriers) -> Iterator[_Batch]:
        """The commands of all steps, cut where a submission would grow too long, and the barriers between them; what
        comes back is copied at the end."""
        fetches = [fetch(source, source) for source in self._sources]
        batches = list(self._cut())
        for steps in batches:
            ends = fetches if steps is batches[-1] else []
            placed = place_barriers(steps, barriers) if barriers != "auto" else b""
            # Whatever is asked for between steps, results come back whole.
            placed = placed + bytes([Barrier.FLUSH] * bool(ends) + [0] * (len(ends) - 1)) if placed else placed
            yield _Batch(steps, ends, placed or place_barriers([*steps, *ends]))

    def _cut(self) -> Iterator[list[RawDispatch]]:
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

    def schedule(self) -> list[Batch]:
        names = iter([step.kernel.name for step in self.steps for _ in step.lowered.dispatches])
        return [
            Batch(
                [*batch.steps, *batch.fetches],
                batch.barriers,
                [*[next(names) for _ in batch.steps], *["fetch" for _ in batch.fetches]],
            )
            for batch in self._batches
        ]

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
                if after:
                    self._wait_for(require_tickets(after))
                if self._landing is None:
                    for submission in self._submissions:
                        ticket.value = queue.submit(submission)
                else:
                    self._submit_to(self._landing, ticket)
        finally:
            entered.pop()
        self._ran_timed = self._timestamps is not None
        return ticket

    def _wait_for(self, after: Iterable[Waitable]) -> None:
        """The device itself waits for other queues' timelines, in empty submissions of their own."""
        raw, queue = self.device.raw, self._queue
        for other in sort_waits(self.device, queue, after):
            queue.submit(RawSubmission(raw, [], queue.timeline, [other.queue.timeline]), (other.value,))

    def _submit_to(self, landing: Landing, ticket: QueueTicket) -> None:
        slot: _Slot = landing.take(ticket, self._record_slot)
        try:
            for submission in slot.submissions:
                ticket.value = self._queue.submit(submission)
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
class _Batch:
    """One submission: the commands of its steps, copies of what comes back after them, what stands before each."""

    steps: Sequence[RawDispatch]
    fetches: Sequence[RawDispatch]
    barriers: bytes

    @property
    def barriers_between_steps(self) -> int:
        """Barriers without that before the copies."""
        return len(self.steps) - self.barriers.count(0, 0, len(self.steps))


def fetch(source: Buffer, target: Buffer) -> RawDispatch:
    """A copy of a buffer's bytes to memory of the host that nothing else of the program touches."""
    size = source.nbytes

    def record(commands: RawCommands) -> None:
        commands.copy(source.range[:2], target.range[:2], size)

    return raw_transfer((source.bytes,), (), record)


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


def sort_waits(device: VulkanDevice, queue: Queue, after: Iterable[Waitable]) -> list[QueueTicket]:
    """Tickets that the device can wait for by itself; work of the same queue is ordered anyway, and work of
    other devices is waited for here."""
    waits: list[QueueTicket] = []
    for other in after:
        if not isinstance(other, QueueTicket) or other.queue not in device.queues:
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
