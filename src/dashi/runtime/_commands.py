"""Programs on a Vulkan device: steps recorded once into command buffers, resubmitted for microseconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from dashi.errors import BusyError
from dashi.runtime._buffer import Buffer
from dashi.runtime._clock import RunTimes
from dashi.runtime._direct import SlotMemory, direct_use, slot_memory
from dashi.runtime._feeding import Feed, RunSlot, filled_slot, require_no_feed
from dashi.runtime._hazards import Batch
from dashi.runtime._host_runs import HostRun
from dashi.runtime._program import Program, Recording, Waitable
from dashi.runtime._queue_tickets import QueueTicket
from dashi.runtime._segments import commands_of, named, segments
from dashi.runtime._slots import Landing, Slot
from dashi.runtime._staging import synchronise
from dashi.runtime._stamps import Stamps, parts_of
from dashi.runtime._steps import AnyStep, HostStep
from dashi.runtime._sync import Queue
from dashi.runtime._transfers import HostCall, host_view
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawCommands, RawSubmission, Waits
from dashi.runtime._waits import waits_of
from dashi.runtime.array import Array
from dashi.runtime.landing import require_tickets
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import VulkanDevice


class VulkanProgram(Program):
    """Recorded command buffers. `barriers` counts those that stand before commands of steps."""

    device: VulkanDevice

    def __init__(
        self, device: VulkanDevice, steps: Sequence[AnyStep], label: str, options: Recording, queue: Queue
    ) -> None:
        super().__init__(device, steps, label, options)
        self._queue = queue
        self._recorded: list[RawCommands] = []
        self._bury = device.graveyard.watch(self, _destroy(self._recorded))
        self._sources: list[Buffer] = [array.storage for array in self.fetches]
        self._targets: list[Buffer] = [array.storage for array in self.feeds]
        self._direct = direct_use(device, self.steps, options)
        if options.direct:
            self.copied_feeds, self.copied_fetches = self._direct.feeds, self._direct.fetches
        memory = self._slot_memory()
        self._segments = list(segments(device, memory.steps, memory.feeds, memory.fetches, options.barriers))
        self._timed = bool(options.timed)
        self._stamps = self._timed and device.info.timestamp_ns > 0
        self._parts = parts_of(self._segments, self.steps) if options.timed == "steps" else None
        self._lock = threading.Lock()
        self._calls = [segment.call for segment in self._segments if segment.call is not None]
        self._lone = not self._calls and sum(len(segment.batches) for segment in self._segments) == 1
        self._calling: int | None = None
        self._first = first = self._record_slot(memory)
        if self.fetches or self.feeds or self._timed:
            reader, times = _reader(device.raw, self.fetches), _times if self._timed else None
            self._landing = Landing(label, self.fetches, options.slots, first, reader, times, _Slot.shown)
        self.dispatches = sum(commands.dispatches for commands in self._recorded)
        self.barriers = sum(batch.step_barriers for segment in self._segments for batch in segment.batches)

    def _slot_memory(self) -> SlotMemory:
        return slot_memory(self.device, self.steps, self._direct, self._targets, self._sources)

    def _record_slot(self, memory: SlotMemory | None = None) -> _Slot:
        """Everything that a run needs which takes values from memory of its own, and brings them back there."""
        memory = memory or self._slot_memory()
        stamps = Stamps(self.device, self._parts) if self._stamps else None
        batches = [batch for segment in self._segments for batch in segment.batches]
        submissions: list[list[RawSubmission]] = []
        for segment in self._segments:
            submissions.append([])
            for batch in segment.batches:
                first, last = batch is batches[0], batch is batches[-1]
                commands = self._begin()
                before, after = memory.feeds if first else batch.before, memory.fetches if last else batch.after
                transfers = bool(before or after or batch.transfers)
                steps = commands_of(memory.steps) if self._direct.any else batch.steps
                recorded = [*before, *steps, *after]
                if stamps is None:
                    commands.record(recorded, batch.barriers, transfers=transfers)
                else:
                    stamps.record(commands, batches.index(batch), recorded, batch.barriers, transfers=transfers)
                    if last:
                        stamps.finish(commands)
                submissions[-1].append(self._end(commands))
        return _Slot(submissions, memory, self, stamps)

    def schedule(self) -> list[Batch]:
        return named(self._segments, self.steps)

    def _begin(self) -> RawCommands:
        commands = RawCommands(self.device.raw, self._queue.family)
        self._recorded.append(commands)
        commands.begin()
        commands.label(self.label)
        return commands

    def _end(self, commands: RawCommands) -> RawSubmission:
        commands.end_label()
        commands.results_to_host()
        commands.end()
        return RawSubmission(self.device.raw, [commands.handle], self._queue.timeline)

    def _barriers_by_step(self) -> list[int]:
        batches = [batch for segment in self._segments for batch in segment.batches]
        placed = iter([barrier for batch in batches for barrier in batch.of_steps])
        return [
            0 if isinstance(step, HostStep) else sum(next(placed) != 0 for _ in step.lowered.dispatches)
            for step in self.steps
        ]

    def submit(self, after: Iterable[Waitable] = (), feed: Feed | None = None) -> Waitable:
        # As the decorator `inside` does, without the cost of a call: a submission takes microseconds.
        device, queue = self.device, self._queue
        gate = device.gate
        entered = gate.entered
        try:
            entered.append(None)
            if gate.refusal is not None:
                raise gate.refusal()
            ticket = QueueTicket(device, queue)
            slot = None
            if self.feeds:
                slot = feed if type(feed) is RunSlot else filled_slot(self, feed, self.feeds)
            elif feed is not None:
                require_no_feed(self, feed)
            if self._calling is not None:
                self._require_no_call()
            with self._lock:
                self.require_open()
                waits = waits_of(device, queue, require_tickets(after), ticket) if after else ()
                if self._landing is None:
                    self._submit_all(self._first, ticket, waits)
                else:
                    self._submit_to(self._landing, slot, ticket, waits)
        finally:
            entered.pop()
        if self._timed:
            self._note_run(ticket)
        if device.listeners:
            self._tell(ticket)
        return ticket

    def _require_no_call(self) -> None:
        if self._calling == threading.get_ident():
            raise BusyError(
                f"a host step of the program {self.label!r} submits the program that it is a part of.",
                "submit it after the run, or another program.",
            )

    def _submit_all(self, slot: _Slot, ticket: QueueTicket, waits: Waits) -> None:
        """Submits the parts of a program in order; the host steps between them are called by a thread of the device,
        unless this is one already, inside a step of the same queue."""
        if self._lone:
            ticket.value = self._queue.submit(slot.submissions[0][0], waits)
            return
        if self._calls and not self._queue.inside_host_step:
            self._submit_gated(slot.submissions, ticket, waits)
            return
        for parts, segment in zip(slot.submissions, self._segments, strict=True):
            for submission in parts:
                ticket.value = self._queue.submit(submission, waits)
                waits = ()  # what follows on the queue comes after it
            if segment.call is not None:
                self._call(segment.call, ticket.value)

    def _submit_gated(self, submissions: Sequence[Sequence[RawSubmission]], ticket: QueueTicket, waits: Waits) -> None:
        device, queue = self.device, self._queue
        before = {other: other.horizon for other in device.queues}
        with queue.lock:
            gates = queue.submit_gated(submissions, waits)
            ticket.value = queue.submitted
            device.host_runs.add(HostRun(self, self._calls, gates, before, ticket))

    def _call(self, call: HostCall, value: int) -> None:
        self._queue.wait(value)
        with self.calling(threading.get_ident()):
            call.run()

    @contextmanager
    def calling(self, thread: int) -> Generator[None]:
        """While it lasts, the thread is inside a host step of this program."""
        before, self._calling = self._calling, thread
        try:
            yield
        finally:
            self._calling = before

    def run_failed(self, ticket: QueueTicket | None) -> None:
        """The run of the ticket, if anybody has that still, came to nothing."""
        if ticket is not None and self._landing is not None:
            self._landing.give_back(ticket)

    def _submit_to(self, landing: Landing, filled: RunSlot | None, ticket: QueueTicket, waits: Waits) -> None:
        if filled is not None and self._lone:
            self._submit_filled(landing, filled, ticket, waits)
            return
        if filled is None:
            slot: _Slot = landing.take(ticket, self._record_slot)
        else:
            slot = filled.take(landing, ticket)
            for buffer in slot.flushed:
                synchronise(self.device.raw, buffer, flush=True)
        try:
            self._submit_all(slot, ticket, waits)
        except BaseException:
            landing.give_back(ticket)
            raise
        finally:
            if filled is not None:
                landing.under_way(ticket, QueueTicket(self.device, self._queue, ticket.value))

    def _submit_filled(self, landing: Landing, filled: RunSlot, ticket: QueueTicket, waits: Waits) -> None:
        """Submits a program of one part. Whatever can be done while the device is at work already comes after."""
        slot: _Slot = landing.begin(filled.slot, filled)
        try:
            for buffer in slot.flushed:
                synchronise(self.device.raw, buffer, flush=True)
            ticket.value = self._queue.submit(slot.submissions[0][0], waits)
        except BaseException:
            landing.not_begun(filled.slot)
            raise
        landing.begun(filled.slot, ticket)
        filled.let_go()
        landing.under_way(ticket, QueueTicket(self.device, self._queue, ticket.value))
        landing.spare_one()

    def _hand_out(self, slot: RunSlot, timeout: float | None) -> Slot:
        assert self._landing is not None
        if self._calling is not None:
            self._require_no_call()
        return self._landing.hand_out(slot, self._record_slot, timeout)

    def interval(self) -> tuple[int, int] | None:
        times = self._last_times()
        if times is None:
            return None
        clock = self.device.clock()
        return clock.host(times.start_ns), clock.host(times.end_ns)

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


class _Slot:
    """A recording of the program, the memory that its results come back to, and that which its values come from."""

    __slots__ = (
        "__weakref__",
        "_exports",
        "_feeds",
        "_plain",
        "_views",
        "flushed",
        "memory",
        "results",
        "stamps",
        "submissions",
    )

    def __init__(
        self,
        submissions: Sequence[Sequence[RawSubmission]],
        memory: SlotMemory,
        program: VulkanProgram,
        stamps: Stamps | None,
    ) -> None:
        self.submissions, self.memory, self.stamps = submissions, memory, stamps
        self.results = [_shaped(buffer, array) for buffer, array in zip(memory.landing, program.fetches, strict=True)]
        self.flushed = [buffer for buffer in memory.uploads if not buffer.allocation.coherent]
        """The memory whose values the device sees only when it is told."""
        self._plain = [
            values if buffer.allocation.coherent and array.dtype.name not in ("bool", "bf16") else None
            for values, buffer, array in zip(self.results, memory.landing, program.fetches, strict=True)
        ]
        self._feeds, self._exports = program.feeds, program.device.exports
        self._views: dict[int, HostArray] = {}

    def views(self) -> Mapping[int, HostArray]:
        """The memory that values come from, for somebody to fill: shown once, and as long as the device is open."""
        if not self._views:
            for array, buffer in zip(self._feeds, self.memory.uploads, strict=True):
                self._views[id(array)] = self._exports.show(buffer, array.shape, array.dtype, writeable=True)
            self._exports.lenders.add(self)
        return self._views

    def shown(self, index: int) -> HostArray | None:
        """An array among the results, where it can be copied as it lies there."""
        return self._plain[index]

    def take_back(self) -> None:
        self._views.clear()


def _reader(raw: RawDevice, arrays: Sequence[Array]) -> Callable[[_Slot, int, HostArray | None], HostArray]:
    """Copies of arrays out of a slot."""
    converted = [array.dtype if array.dtype.name in ("bool", "bf16") else None for array in arrays]

    def read(slot: _Slot, index: int, out: HostArray | None) -> HostArray:
        buffer = slot.memory.landing[index]
        if not buffer.allocation.coherent:
            synchronise(raw, buffer, flush=False)
        values, dtype = slot.results[index], converted[index]
        if dtype is not None:
            values = dtype.from_bytes(values)
        if out is None:
            return values.copy() if dtype is None else values
        out[...] = values
        return out

    return read


def _shaped(buffer: Buffer, array: Array) -> HostArray:
    """Memory that the host sees, in the form of an array; truth values as their bytes, bf16 as words."""
    dtype = np.dtype(np.uint8) if array.dtype.kind == "b" else array.dtype.stored
    return host_view(buffer).view(dtype).reshape(array.shape)


def _times(slot: _Slot) -> RunTimes | None:
    return None if slot.stamps is None else slot.stamps.read()


def _destroy(recorded: list[RawCommands]) -> Callable[[], None]:
    def destroy() -> None:
        for commands in recorded:
            commands.close()

    return destroy
