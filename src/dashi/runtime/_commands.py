"""Programs on a Vulkan device: steps recorded once into command buffers, resubmitted for microseconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dashi.errors import BusyError
from dashi.runtime._buffer import Buffer
from dashi.runtime._clock import RunTimes
from dashi.runtime._exports import Exports
from dashi.runtime._feeding import Feed, RunSlot, filled_slot, require_no_feed
from dashi.runtime._hazards import Batch
from dashi.runtime._host_runs import HostRun
from dashi.runtime._program import Program, Recording, Waitable
from dashi.runtime._segments import named, segments
from dashi.runtime._staging import synchronise
from dashi.runtime._stamps import Stamps, parts_of
from dashi.runtime._steps import AnyStep, HostStep
from dashi.runtime._sync import Queue, QueueTicket
from dashi.runtime._transfers import HostCall, copy_command, host_view
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawCommands, RawSubmission, Waits
from dashi.runtime._waits import waits_of
from dashi.runtime.array import Array
from dashi.runtime.landing import Landing, Slot, require_tickets
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
        self._segments = list(segments(device, self.steps, self._targets, self._sources, options.barriers))
        self._timed = bool(options.timed)
        self._stamps = self._timed and device.info.timestamp_ns > 0
        self._parts = parts_of(self._segments, self.steps) if options.timed == "steps" else None
        self._lock = threading.Lock()
        self._calls = [segment.call for segment in self._segments if segment.call is not None]
        self._calling: int | None = None
        first = self._record_slot()
        self._submissions = first.submissions
        if self.fetches or self.feeds or self._timed:
            reader, times = _reader(device.raw, self.fetches), _times if self._timed else None
            self._landing = Landing(label, self.fetches, options.slots, first, reader, times)
        self.dispatches = sum(commands.dispatches for commands in self._recorded)
        self.barriers = sum(batch.step_barriers for segment in self._segments for batch in segment.batches)

    def _record_slot(self) -> _Slot:
        """Everything that a run needs which takes values from memory of its own, and brings them back there."""
        uploads = [self.device.upload_memory(target.nbytes) for target in self._targets]
        landing = [self.device.landing_memory(source.nbytes) for source in self._sources]
        feeds = [copy_command(*pair) for pair in zip(uploads, self._targets, strict=True)]
        fetches = [copy_command(*pair) for pair in zip(self._sources, landing, strict=True)]
        timeline = self._queue.timeline
        stamps = Stamps(self.device, self._parts) if self._stamps else None
        batches = [batch for segment in self._segments for batch in segment.batches]
        submissions: list[list[RawSubmission]] = []
        for segment in self._segments:
            submissions.append([])
            for batch in segment.batches:
                first, last = batch is batches[0], batch is batches[-1]
                commands = self._begin()
                before, after = feeds if first else batch.before, fetches if last else batch.after
                transfers = bool(before or after or batch.transfers)
                recorded = [*before, *batch.steps, *after]
                if stamps is None:
                    commands.record(recorded, batch.barriers, transfers=transfers)
                else:
                    stamps.record(commands, batches.index(batch), recorded, batch.barriers, transfers=transfers)
                    if last:
                        stamps.finish(commands)
                self._end(commands)
                submissions[-1].append(RawSubmission(self.device.raw, [commands.handle], timeline))
        results = [_shaped(buffer, array) for buffer, array in zip(landing, self.fetches, strict=True)]
        return _Slot(submissions, landing, results, uploads, self.feeds, self.device.exports, stamps)

    def schedule(self) -> list[Batch]:
        return named(self._segments, self.steps)

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
                slot = filled_slot(self, feed, self.feeds)
            elif feed is not None:
                require_no_feed(self, feed)
            if self._calling is not None:
                self._require_no_call()
            with self._lock:
                self.require_open()
                waits = waits_of(device, queue, require_tickets(after), ticket) if after else ()
                if self._landing is None:
                    self._submit_all(self._submissions, ticket, waits)
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

    def _submit_all(self, submissions: Sequence[Sequence[RawSubmission]], ticket: QueueTicket, waits: Waits) -> None:
        """Submits the parts of a program in order; the host steps between them are called by a thread of the device,
        unless this is one already, inside a step of the same queue."""
        if self._calls and not self._queue.inside_host_step:
            self._submit_gated(submissions, ticket, waits)
            return
        for parts, segment in zip(submissions, self._segments, strict=True):
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
        if filled is None:
            slot: _Slot = landing.take(ticket, self._record_slot)
        else:
            slot = filled.take(landing, ticket)
            for buffer in slot.uploads:
                synchronise(self.device.raw, buffer, flush=True)
        try:
            self._submit_all(slot.submissions, ticket, waits)
        except BaseException:
            landing.give_back(ticket)
            raise
        finally:
            if filled is not None:
                landing.under_way(ticket, QueueTicket(self.device, self._queue, ticket.value))

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


@dataclass(frozen=True)
class _Slot:
    """A recording of the program, the memory that its results come back to, and that which its values come from."""

    submissions: Sequence[Sequence[RawSubmission]]
    landing: Sequence[Buffer]
    results: Sequence[HostArray]
    uploads: Sequence[Buffer]
    feeds: Sequence[Array]
    exports: Exports
    stamps: Stamps | None

    def views(self) -> dict[int, HostArray]:
        """The memory that values come from, for somebody to fill."""
        return {
            id(array): self.exports.show(buffer, array.shape, array.dtype, writeable=True)
            for array, buffer in zip(self.feeds, self.uploads, strict=True)
        }


def _reader(raw: RawDevice, arrays: Sequence[Array]) -> Callable[[_Slot, int, HostArray | None], HostArray]:
    """Copies of arrays out of a slot."""
    converted = [array.dtype if array.dtype.name in ("bool", "bf16") else None for array in arrays]

    def read(slot: _Slot, index: int, out: HostArray | None) -> HostArray:
        synchronise(raw, slot.landing[index], flush=False)
        values, dtype = slot.results[index], converted[index]
        if dtype is not None:
            values = dtype.from_bytes(values)
        if out is None:
            return values.copy() if dtype is None else values
        np.copyto(out, values)
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
