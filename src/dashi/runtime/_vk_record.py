"""Raw calls of the hot path: recording and submitting. Everything that can be built once is built once."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from dashi.runtime import _vk as vk
from dashi.runtime import _vk_structs as s
from dashi.runtime._vk_device import COMPUTE_STAGE, RawDevice, RawPipeline
from dashi.runtime.info import Barriers

_COMPUTE_BIND: Final = 1
_STAGE_COMPUTE: Final = 0x800
_STAGE_HOST: Final = 0x4000
_STAGE_ALL: Final = 0x10000
_STAGE_TOP: Final = 0x1
_STAGE_BOTTOM: Final = 0x2000
_SHADER_READ_WRITE: Final = 0x20 | 0x40
_HOST_READ: Final = 0x2000
_MEMORY_READ: Final = 0x8000
_MEMORY_WRITE: Final = 0x10000
_SIMULTANEOUS_USE: Final = 0x4
_ROOM: Final = 4

Waits = Sequence[tuple[int, int]]
"""Timelines and the values that they must have reached."""


class RawDispatch(NamedTuple):
    """One dispatch, ready to be recorded: handles and addresses only. `reads` and `writes` hold buffer keys.

    A tuple, because unpacking one is the cheapest way to get at ten values in a loop.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    touches: frozenset[int]
    pipeline: int
    layout: int
    set: int
    push: int | None
    push_size: int
    groups: tuple[int, int, int]
    pieces: Sequence[tuple[tuple[int, int, int], tuple[int, int, int]]]
    keep: Any


def raw_dispatch(
    pipeline: RawPipeline,
    descriptor_set: int,
    push: bytes,
    groups: tuple[int, int, int],
    reads: frozenset[int],
    writes: frozenset[int],
    pieces: Sequence[tuple[tuple[int, int, int], tuple[int, int, int]]] = (),
) -> RawDispatch:
    """A dispatch of whole `groups`, or of (base, count) `pieces` of them."""
    sets = (ctypes.c_uint64 * 1)(descriptor_set)
    data = ctypes.create_string_buffer(push, len(push)) if push else None
    return RawDispatch(
        reads,
        writes,
        reads | writes,
        pipeline.pipeline,
        pipeline.layout,
        ctypes.addressof(sets),
        None if data is None else ctypes.addressof(data),
        len(push),
        groups,
        pieces,
        (sets, data),
    )


class RawCommands:
    """One command buffer, recorded once. It places barriers itself, where a hazard is, unless told otherwise."""

    def __init__(self, device: RawDevice, family: int) -> None:
        self._device = device
        fns = device.fns
        self._pool = device.create("CreateCommandPool", s.CommandPoolCreateInfo(queueFamilyIndex=family))
        info = s.CommandBufferAllocateInfo(commandPool=self._pool, commandBufferCount=1)
        out = ctypes.c_void_p()
        vk.check(
            fns.AllocateCommandBuffers(device.handle, ctypes.byref(info), ctypes.byref(out)), "vkAllocateCommandBuffers"
        )
        assert out.value is not None
        self.handle: int = out.value
        self.barriers = 0
        self.dispatches = 0
        self._bound = 0
        # What was read since the last barrier of any kind, and written since the last one that makes writes visible.
        self._read: frozenset[int] = frozenset()
        self._written: frozenset[int] = frozenset()
        between = s.MemoryBarrier(srcAccessMask=_SHADER_READ_WRITE, dstAccessMask=_SHADER_READ_WRITE)
        self._between = ctypes.addressof(between)
        self._keep: list[Any] = [between]

    def close(self) -> None:
        self._device.destroy("CommandPool", self._pool)

    def reset(self) -> None:
        """Forgets what was recorded, which nothing runs any more."""
        vk.check(self._device.fns.ResetCommandPool(self._device.handle, self._pool, 0), "vkResetCommandPool")

    def begin(self) -> None:
        """Starts recording; the first barrier orders everything after all earlier submissions of the queue."""
        info = s.CommandBufferBeginInfo(flags=_SIMULTANEOUS_USE)
        vk.check(self._device.fns.BeginCommandBuffer(self.handle, ctypes.byref(info)), "vkBeginCommandBuffer")
        self.in_order()

    def in_order(self) -> None:
        """What follows waits for everything before."""
        self.barrier(_STAGE_ALL, _MEMORY_WRITE, _STAGE_ALL, _MEMORY_READ | _MEMORY_WRITE)

    def end(self) -> None:
        vk.check(self._device.fns.EndCommandBuffer(self.handle), "vkEndCommandBuffer")

    def barrier(self, source: int, written: int, target: int, used: int) -> None:
        memory = s.MemoryBarrier(srcAccessMask=written, dstAccessMask=used)
        self._device.fns.CmdPipelineBarrier(self.handle, source, target, 0, 1, ctypes.byref(memory), 0, None, 0, None)

    def results_to_host(self) -> None:
        """Makes everything written so far readable by the host once the submission is done."""
        self.barrier(_STAGE_ALL, _MEMORY_WRITE, _STAGE_HOST, _HOST_READ)

    def dispatch(self, dispatches: Iterable[RawDispatch], barriers: Barriers) -> None:
        """Records dispatches in order. With "auto" a barrier goes before each one that would race with those since
        the last barrier; "all" puts one before each; "none" puts none. What only overwrites what others have read
        waits for them, and caches stay as they are: nothing written needs to be seen (Vulkan 1.3, 7.1)."""
        # One flat loop on local names: a call or an attribute more per dispatch is measurable (`dashi bench host`).
        handle, fns = self.handle, self._device.fns
        bind_pipeline, bind_sets = fns.CmdBindPipeline, fns.CmdBindDescriptorSets
        push, run, barrier = fns.CmdPushConstants, fns.CmdDispatch, fns.CmdPipelineBarrier
        between, bound, placed, count = self._between, self._bound, 0, 0
        read, written = self._read, self._written
        automatic, always = barriers == "auto", barriers == "all"
        for reads, writes, touches, pipeline, layout, sets, data, size, (x, y, z), pieces, _ in dispatches:
            if always or (automatic and not touches.isdisjoint(written)):
                barrier(handle, _STAGE_COMPUTE, _STAGE_COMPUTE, 0, 1, between, 0, None, 0, None)
                read, written = reads, writes
                placed += 1
            elif automatic and not writes.isdisjoint(read):
                barrier(handle, _STAGE_COMPUTE, _STAGE_COMPUTE, 0, 0, None, 0, None, 0, None)
                read, written = reads, written | writes
                placed += 1
            else:
                read, written = read | reads, written | writes
            if pipeline != bound:
                bound = pipeline
                bind_pipeline(handle, _COMPUTE_BIND, bound)
            bind_sets(handle, _COMPUTE_BIND, layout, 0, 1, sets, 0, None)
            if data is not None:
                push(handle, layout, COMPUTE_STAGE, 0, size, data)
            if pieces:
                for base, part in pieces:
                    fns.CmdDispatchBase(handle, *base, *part)
            else:
                run(handle, x, y, z)
            count += 1
        self._bound, self._read, self._written = bound, read, written
        self.barriers += placed
        self.dispatches += count

    def copy(self, source: tuple[int, int], target: tuple[int, int], size: int) -> None:
        """Copies `size` bytes from (buffer, offset) to (buffer, offset); Vulkan has no copies of nothing."""
        if not size:
            return
        region = s.BufferCopy(srcOffset=source[1], dstOffset=target[1], size=size)
        self._device.fns.CmdCopyBuffer(self.handle, source[0], target[0], 1, ctypes.byref(region))

    def timestamp(self, pool: int, index: int, *, end: bool) -> None:
        if not end:
            self._device.fns.CmdResetQueryPool(self.handle, pool, 0, 2)
        self._device.fns.CmdWriteTimestamp(self.handle, _STAGE_BOTTOM if end else _STAGE_TOP, pool, index)

    def label(self, name: str) -> None:
        """Opens a debug label, where debug utilities are loaded."""
        if "vkCmdBeginDebugUtilsLabelEXT" in self._device.fns.names:
            text = ctypes.create_string_buffer(name.encode())
            info = s.DebugUtilsLabelEXT(pLabelName=ctypes.addressof(text))
            self._device.fns.CmdBeginDebugUtilsLabelEXT(self.handle, ctypes.byref(info))

    def end_label(self) -> None:
        if "vkCmdEndDebugUtilsLabelEXT" in self._device.fns.names:
            self._device.fns.CmdEndDebugUtilsLabelEXT(self.handle)


class RawSubmission:
    """A submission of recorded command buffers, its structs built once; only the counters, and what it waits for,
    change. There is room for a few waits from the start, and for more once they were needed."""

    __slots__ = ("_at", "_count", "_info", "_keep", "_room", "_signal", "_stages", "_submit", "_timeline", "_values")

    def __init__(self, device: RawDevice, commands: Sequence[int], semaphore: int) -> None:
        buffers = (ctypes.c_void_p * len(commands))(*commands)
        signals = (ctypes.c_uint64 * 1)(semaphore)
        self._signal = (ctypes.c_uint64 * 1)()
        self._timeline = s.TimelineSemaphoreSubmitInfo(
            signalSemaphoreValueCount=1, pSignalSemaphoreValues=ctypes.addressof(self._signal)
        )
        self._info = s.SubmitInfo(
            pNext=ctypes.addressof(self._timeline),
            commandBufferCount=len(commands),
            pCommandBuffers=ctypes.addressof(buffers),
            signalSemaphoreCount=1,
            pSignalSemaphores=ctypes.addressof(signals),
        )
        self._keep = (buffers, signals)
        self._at = ctypes.addressof(self._info)
        self._submit = device.fns.QueueSubmit
        self._count = 0
        self._make_room(_ROOM)

    def _make_room(self, waits: int) -> None:
        self._room = (ctypes.c_uint64 * waits)()
        self._values = (ctypes.c_uint64 * waits)()
        self._stages = (ctypes.c_uint32 * waits)(*[_STAGE_ALL] * waits)
        self._info.pWaitSemaphores = ctypes.addressof(self._room)
        self._info.pWaitDstStageMask = ctypes.addressof(self._stages)
        self._timeline.pWaitSemaphoreValues = ctypes.addressof(self._values)

    def submit(self, queue: int, value: int, waits: Waits = ()) -> None:
        """Submits; the semaphore reaches `value` at the end, and nothing begins before the timelines that `waits`
        names have reached their values. Callers hold the queue's lock."""
        self._signal[0] = value
        if len(waits) != self._count:
            self._expect(len(waits))
        for i, (timeline, reached) in enumerate(waits):
            self._room[i] = timeline
            self._values[i] = reached
        result = self._submit(queue, 1, self._at, 0)
        if result < 0:
            raise vk.error(result, "vkQueueSubmit")

    def _expect(self, waits: int) -> None:
        if waits > len(self._room):
            self._make_room(waits)
        self._info.waitSemaphoreCount = self._timeline.waitSemaphoreValueCount = self._count = waits


class RawWait:
    """A wait on one timeline semaphore, its structs built once."""

    __slots__ = ("_address", "_device", "_keep", "_value", "_wait")

    def __init__(self, device: RawDevice, semaphore: int) -> None:
        semaphores = (ctypes.c_uint64 * 1)(semaphore)
        self._value = (ctypes.c_uint64 * 1)()
        info = s.SemaphoreWaitInfo(
            semaphoreCount=1, pSemaphores=ctypes.addressof(semaphores), pValues=ctypes.addressof(self._value)
        )
        self._keep = (semaphores, info)
        self._address = ctypes.addressof(info)
        self._device = device.handle
        self._wait = device.fns.WaitSemaphores

    def wait(self, value: int, nanoseconds: int) -> bool:
        """Whether the semaphore reached `value` in time."""
        self._value[0] = value
        result = self._wait(self._device, self._address, nanoseconds)
        if result < 0:
            raise vk.error(result, "vkWaitSemaphores")
        return result != vk.TIMEOUT
