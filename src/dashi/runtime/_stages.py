"""Uploads and downloads through memory that the host can see: stages that go round, so that none is made twice.

A stage is such memory with the commands that copy from or to it. It is taken by a transfer and free again when that is
done and, for a download, read or forgotten.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.runtime._buffer import Buffer
from dashi.runtime._memory import Use
from dashi.runtime._queue_tickets import QueueTicket
from dashi.runtime._staging import synchronise
from dashi.runtime._sync import Queue
from dashi.runtime._vk_record import RawCommands, RawSubmission
from dashi.runtime._waits import waits_of
from dashi.runtime.array import Array
from dashi.runtime.landing import Download
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._asynchronous import After
    from dashi.runtime._vulkan_device import VulkanDevice

_LEAST: Final = 1 << 16
_LARGEST_KEPT: Final = 1 << 26


class Stage:
    """Memory of the host, the commands that copy from it or to it, and when it is free again."""

    def __init__(self, device: VulkanDevice, queue: Queue, nbytes: int, use: Use) -> None:
        self.buffer = Buffer(device.raw, device.allocator, device.graveyard, nbytes, use)
        self.commands = RawCommands(device.raw, queue.family)
        self.submission = RawSubmission(device.raw, [self.commands.handle], queue.timeline)
        self.free_at = 0
        device.graveyard.watch(self, self.commands.close)

    @property
    def view(self) -> memoryview:
        """The host's view of the memory."""
        view = self.buffer.view
        assert view is not None  # memory for transfers is always mapped
        return view


class QueueDownload(QueueTicket, Download):
    """A download of a Vulkan device."""

    __slots__ = ("_array", "_give_back", "_result", "_stage", "_stages")

    def __init__(self, stages: QueueStages, stage: Stage, array: Array) -> None:
        super().__init__(stages.device, stages.queue)
        self._stages = stages
        self._stage = stage
        self._array = (array.dtype, array.shape, array.nbytes)
        self._result: HostArray | None = None
        self._give_back = weakref.finalize(self, stages.give, stage)
        self._give_back.atexit = False

    def _values(self) -> HostArray:
        with self._stages.lock:
            if self._result is not None:
                return self._result.copy()
            dtype, shape, nbytes = self._array
            synchronise(self._stages.device.raw, self._stage.buffer, flush=False)
            values = np.frombuffer(self._stage.view, np.uint8, nbytes).copy()
            self._result = dtype.from_bytes(values).reshape(shape)
            self._give_back()
            return self._result


class QueueStages:
    """The stages of one queue; thread-safe."""

    def __init__(self, device: VulkanDevice, queue: Queue, use: Use) -> None:
        self._device = weakref.ref(device)
        self.queue = queue
        self._use: Use = use
        self.lock = threading.RLock()
        self._free: list[Stage] = []

    @property
    def device(self) -> VulkanDevice:
        """The device, which whoever calls holds."""
        device = self._device()
        assert device is not None
        return device

    def _take(self, nbytes: int) -> Stage:
        """A stage that nothing uses any more, the smallest that is large enough; a new one where there is none."""
        size = max(_LEAST, 1 << max(0, nbytes - 1).bit_length()) if nbytes <= _LARGEST_KEPT else nbytes
        with self.lock:
            reached = self.queue.reached() if self._free else 0
            fitting = [s for s in self._free if s.buffer.nbytes >= nbytes and s.free_at <= reached]
            if fitting:
                stage = min(fitting, key=lambda s: s.buffer.nbytes)
                self._free.remove(stage)
                return stage
        return Stage(self.device, self.queue, size, self._use)

    def give(self, stage: Stage) -> None:
        """Whoever had the stage needs it no longer than its copy takes."""
        if stage.buffer.nbytes <= _LARGEST_KEPT:
            with self.lock:
                self._free.append(stage)

    def upload(self, array: Array, values: HostArray, after: After) -> QueueTicket:
        """Copies the values into a stage, and starts the copy from there."""
        target: Buffer = array.storage
        stage = self._take(target.nbytes)
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        stage.view[: data.nbytes] = data.data
        synchronise(self.device.raw, stage.buffer, flush=True)
        ticket = QueueTicket(self.device, self.queue)
        try:
            self._submit(stage, stage.buffer.range[:2], target.range[:2], target.nbytes, after, ticket)
        finally:
            self.give(stage)
        return ticket

    def download(self, array: Array, after: After) -> QueueDownload:
        """Starts a copy to a stage, which is the ticket's until it was read."""
        source: Buffer = array.storage
        stage = self._take(source.nbytes)
        ticket = QueueDownload(self, stage, array)
        self._submit(stage, source.range[:2], stage.buffer.range[:2], source.nbytes, after, ticket)
        return ticket

    def _submit(
        self,
        stage: Stage,
        source: tuple[int, int],
        target: tuple[int, int],
        nbytes: int,
        after: After,
        ticket: QueueTicket,
    ) -> None:
        device, queue = self.device, self.queue
        if after is None:
            ticket.all_before = [(other, other.horizon) for other in device.queues if other.horizon]
            after = [QueueTicket(device, *place) for place in ticket.all_before]
        waits = waits_of(device, queue, after, ticket)
        commands = stage.commands
        commands.reset()
        commands.begin()
        commands.copy(source, target, nbytes)
        commands.results_to_host()
        commands.end()
        # Memory that is given up from now on is freed after what was submitted: the array may be closed at once.
        ticket.value = stage.free_at = queue.submit(stage.submission, waits)
