"""Raw calls of the hot path: recording and submitting. Everything that can be built once is built once."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from dashi.runtime import _vk as vk
from dashi.runtime import _vk_structs as s
from dashi.runtime._hazards import Range
from dashi.runtime._vk_device import COMPUTE_STAGE, RawDevice, RawPipeline

_COMPUTE_BIND: Final = 1
_STAGE_COMPUTE: Final = 0x800
_STAGE_TRANSFER: Final = 0x1000
_STAGE_HOST: Final = 0x4000
_STAGE_ALL: Final = 0x10000
_STAGE_BOTTOM: Final = 0x2000
_SHADER_READ_WRITE: Final = 0x20 | 0x40
_TRANSFER_READ_WRITE: Final = 0x800 | 0x1000
_HOST_READ: Final = 0x2000
_MEMORY_READ: Final = 0x8000
_MEMORY_WRITE: Final = 0x10000
_SIMULTANEOUS_USE: Final = 0x4
_TURN_NS: Final = 500_000
_PAUSE: Final = 50e-6
_ONE: Final = ctypes.c_uint64 * 1
_ROOM: Final = 4

Waits = Sequence[tuple[int, int]]
"""Timelines and the values that they must have reached."""


class RawDispatch(NamedTuple):
    """One command, ready to be recorded: handles and addresses only. `reads` and `writes` are ranges of bytes. With a
    pipeline of 0 it is no dispatch, and `keep` records it: a function of the command buffer.

    A tuple, because unpacking one is the cheapest way to get at ten values in a loop.
    """

    reads: tuple[Range, ...]
    writes: tuple[Range, ...]
    pipeline: int
    layout: int
    set: int
    push: int | None
    push_size: int
    groups: tuple[int, int, int]
    pieces: Sequence[tuple[tuple[int, int, int], tuple[int, int, int]]]
    keep: Any


def push_buffer(push: bytes) -> Any:
    """Push constants where the driver can read them."""
    return ctypes.create_string_buffer(push, len(push))


class _Ready(Protocol):
    """A dispatch of whole `groups`, or of (base, count) `pieces` of them, without its arrays."""

    @property
    def pipeline(self) -> RawPipeline: ...
    @property
    def push(self) -> Any: ...
    @property
    def push_size(self) -> int: ...
    @property
    def groups(self) -> tuple[int, int, int]: ...
    @property
    def pieces(self) -> Sequence[tuple[tuple[int, int, int], tuple[int, int, int]]]: ...


def raw_dispatch(
    ready: _Ready, descriptor_set: int, reads: tuple[Range, ...], writes: tuple[Range, ...]
) -> RawDispatch:
    """A dispatch on the arrays of a descriptor set."""
    sets, push, pipeline = _ONE(descriptor_set), ready.push, ready.pipeline
    return RawDispatch(
        reads,
        writes,
        pipeline.pipeline,
        pipeline.layout,
        ctypes.addressof(sets),
        None if push is None else ctypes.addressof(push),
        ready.push_size,
        ready.groups,
        ready.pieces,
        (sets, push),
    )


def raw_transfer(
    reads: tuple[Range, ...], writes: tuple[Range, ...], record: Callable[[RawCommands], None]
) -> RawDispatch:
    """A copy or a fill, which `record` puts into a command buffer."""
    return RawDispatch(reads, writes, 0, 0, 0, None, 0, (0, 0, 0), (), record)


class RawCommands:
    """One command buffer, recorded once."""

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
        self.dispatches = 0
        self._bound = -1

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

    def record(self, commands: Sequence[RawDispatch], barriers: Sequence[int], *, transfers: bool = False) -> None:
        """Records commands in order, each after what stands before it: nothing (0), a wait for all before it (1), or
        one that also makes visible what they wrote (2). With `transfers` there may be copies and fills among them."""
        # One flat loop on local names: a call or an attribute more per dispatch is measurable (`dashi bench host`).
        handle, fns = self.handle, self._device.fns
        bind_pipeline, bind_sets = fns.CmdBindPipeline, fns.CmdBindDescriptorSets
        push, run, barrier = fns.CmdPushConstants, fns.CmdDispatch, fns.CmdPipelineBarrier
        stages = _STAGE_COMPUTE | _STAGE_TRANSFER if transfers else _STAGE_COMPUTE
        access = _SHADER_READ_WRITE | _TRANSFER_READ_WRITE if transfers else _SHADER_READ_WRITE
        memory = s.MemoryBarrier(srcAccessMask=access, dstAccessMask=access)
        between, bound, others = ctypes.addressof(memory), self._bound, 0
        for before, (_, _, pipeline, layout, sets, data, size, (x, y, z), pieces, keep) in zip(
            barriers, commands, strict=True
        ):
            if before:
                if before > 1:
                    barrier(handle, stages, stages, 0, 1, between, 0, None, 0, None)
                else:
                    barrier(handle, stages, stages, 0, 0, None, 0, None, 0, None)
            if pipeline != bound:
                if not pipeline:
                    keep(self)
                    others += 1
                    continue
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
        self._bound = bound
        self.dispatches += len(commands) - others

    def copy(self, source: tuple[int, int], target: tuple[int, int], size: int) -> None:
        """Copies `size` bytes from (buffer, offset) to (buffer, offset); Vulkan has no copies of nothing."""
        if not size:
            return
        region = s.BufferCopy(srcOffset=source[1], dstOffset=target[1], size=size)
        self._device.fns.CmdCopyBuffer(self.handle, source[0], target[0], 1, ctypes.byref(region))

    def copy_regions(self, source: int, target: int, regions: Sequence[tuple[int, int, int]]) -> None:
        """Copies ranges of bytes, each from an offset to an offset, between two buffers; none may overlap another."""
        if regions:
            structs = [s.BufferCopy(srcOffset=start, dstOffset=to, size=size) for start, to, size in regions]
            listed = (s.BufferCopy * len(regions))(*structs)
            self._device.fns.CmdCopyBuffer(self.handle, source, target, len(regions), ctypes.addressof(listed))

    def fill(self, target: tuple[int, int], size: int, word: int) -> None:
        """Repeats a word of 4 bytes over `size` bytes from (buffer, offset) on, both multiples of 4."""
        if size:
            self._device.fns.CmdFillBuffer(self.handle, target[0], target[1], size, word)

    def reset_queries(self, pool: int, count: int) -> None:
        """Makes the timestamps of a pool ready to be written."""
        self._device.fns.CmdResetQueryPool(self.handle, pool, 0, count)

    def timestamp(self, pool: int, index: int) -> None:
        """Writes the time at which all that was recorded before, and submitted before to the queue, has ended."""
        self._device.fns.CmdWriteTimestamp(self.handle, _STAGE_BOTTOM, pool, index)

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
        self.prepare(value, waits)
        result = self._submit(queue, 1, self._at, 0)
        if result < 0:
            raise vk.error(result, "vkQueueSubmit")

    def prepare(self, value: int, waits: Waits = ()) -> None:
        """Readies the next submission, which whoever has the structs submits."""
        self._signal[0] = value
        if len(waits) != self._count:
            self._expect(len(waits))
        for i, (timeline, reached) in enumerate(waits):
            self._room[i] = timeline
            self._values[i] = reached

    def together(self, queue: int, others: Sequence[RawSubmission]) -> None:
        """Submits this one and others behind it in one call, each as it was readied."""
        infos = (s.SubmitInfo * (1 + len(others)))(self._info, *(other._info for other in others))
        result = self._submit(queue, len(infos), ctypes.addressof(infos), 0)
        if result < 0:
            raise vk.error(result, "vkQueueSubmit")

    def _expect(self, waits: int) -> None:
        if waits > len(self._room):
            self._make_room(waits)
        self._info.waitSemaphoreCount = self._timeline.waitSemaphoreValueCount = self._count = waits


class RawWait:
    """A wait on one timeline semaphore, its structs built once."""

    __slots__ = ("_address", "_device", "_keep", "_one_waiter", "_value", "_wait")

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
        self._one_waiter = device.one_waiter

    def wait(self, value: int, nanoseconds: int) -> bool:
        """Whether the semaphore reached `value` in time."""
        self._value[0] = value
        result = (
            self._wait(self._device, self._address, nanoseconds) if not self._one_waiter else self._turns(nanoseconds)
        )
        if result < 0:
            raise vk.error(result, "vkWaitSemaphores")
        return result != vk.TIMEOUT

    def _turns(self, nanoseconds: int) -> int:
        """Waits for a moment at a time, so that other threads get their turn."""
        assert self._one_waiter is not None
        deadline = time.monotonic_ns() + nanoseconds
        while True:
            with self._one_waiter:
                result = self._wait(self._device, self._address, min(nanoseconds, _TURN_NS))
            if result != vk.TIMEOUT or time.monotonic_ns() >= deadline:
                return result
            time.sleep(_PAUSE)
