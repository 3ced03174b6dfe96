"""Sub-allocated device memory: few large blocks per memory type, a free list in each, the right heap for each use."""

from __future__ import annotations

import threading
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dashi.errors import LimitError, OutOfMemoryError
from dashi.runtime._vk_device import RawDevice
from dashi.runtime.info import DeviceInfo, MemoryType

Use = Literal["device", "upload", "readback", "feed"]
"""What memory is for: the device alone; what the host writes, and what it reads, for copies; what the host writes and
kernels read as fast as any memory of the device's."""
# Blocks grow from the first to the second size: some drivers touch every byte of what they allocate.
_FIRST_BLOCK: Final = 1 << 20
_BLOCK: Final = 64 << 20


@dataclass
class DeviceMemory:
    """One VkDeviceMemory. `free` holds (offset, size) in order of offset; a dedicated block serves one buffer."""

    memory: int
    size: int
    kind: int
    dedicated: bool
    view: Any
    free: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def take(self, size: int, alignment: int) -> int | None:
        """The offset of the first hole that fits, or None."""
        for i, (offset, room) in enumerate(self.free):
            start = -(-offset // alignment) * alignment
            if start + size <= offset + room:
                rest = [(offset, start - offset), (start + size, offset + room - start - size)]
                self.free[i : i + 1] = [hole for hole in rest if hole[1]]
                return start
        return None

    def give(self, offset: int, size: int) -> None:
        """Puts a range back and joins it with its neighbours."""
        insort(self.free, (offset, size))
        joined: list[tuple[int, int]] = []
        for start, room in self.free:
            if joined and sum(joined[-1]) == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + room)
            else:
                joined.append((start, room))
        self.free = joined


@dataclass(frozen=True)
class Allocation:
    """A range of a block. `view` is the host's view of it, if it is mapped."""

    block: DeviceMemory
    offset: int
    size: int
    coherent: bool

    @property
    def view(self) -> memoryview | None:
        if self.block.view is None:
            return None
        return memoryview(self.block.view).cast("B")[self.offset : self.offset + self.size]


@dataclass(frozen=True)
class MemoryStats:
    """Bytes reserved from the driver, bytes in use, blocks and allocations; the most that was ever reserved at once."""

    reserved: int
    used: int
    blocks: int
    allocations: int
    peak: int


def _wishes(use: Use, kind: MemoryType) -> tuple[bool, ...] | None:
    """How well a memory type suits a use: a tuple that sorts best last, or None if it cannot serve."""
    if use == "device":
        return (kind.device_local, not kind.host_visible)
    if not kind.host_visible:
        return None
    if use == "feed":
        return (not kind.host_cached,) if kind.device_local and kind.host_coherent else None
    if use == "upload":
        return (kind.host_coherent, not kind.device_local, not kind.host_cached)
    return (kind.host_cached, kind.host_coherent, not kind.device_local)


def suits(types: Sequence[MemoryType], use: Use) -> bool:
    """Whether a device has memory fit for a use: for "readback", memory that the host caches."""
    wishes = [wish for kind in types if (wish := _wishes(use, kind)) is not None]
    return bool(wishes) and (use != "readback" or max(wishes)[0])


def choose_type(types: tuple[MemoryType, ...], allowed: int, use: Use) -> int:
    """The index of the memory type that suits the use best, among the allowed bits."""
    scored = [(_wishes(use, kind), -i) for i, kind in enumerate(types) if allowed >> i & 1]
    ranked = [(wish, i) for wish, i in scored if wish is not None]
    if not ranked:
        raise OutOfMemoryError(f"this device has no memory for {use}.", "run `dashi doctor` and choose another device.")
    return -max(ranked)[1]


class Allocator:
    """Hands out ranges of device memory; thread-safe."""

    def __init__(self, raw: RawDevice, info: DeviceInfo) -> None:
        self._raw = raw
        self._info = info
        self._lock = threading.Lock()
        self._blocks: list[DeviceMemory] = []
        self._used = 0
        self._allocations = 0
        self._peak = 0

    def allocate(self, size: int, alignment: int, allowed: int, use: Use) -> Allocation:
        """A range of at least `size` bytes of memory fit for `use`."""
        if self._info.max_allocation and size > self._info.max_allocation:
            raise LimitError(
                f"an allocation of {size} bytes is larger than this device allows ({self._info.max_allocation}).",
                "split the array into smaller ones.",
            )
        index = choose_type(self._info.memory_types, allowed, use)
        kind = self._info.memory_types[index]
        if kind.host_visible and not kind.host_coherent:
            alignment = max(alignment, self._info.non_coherent_atom)
            size = -(-size // alignment) * alignment
        with self._lock:
            block, offset = self._place(size, alignment, index)
            self._used += size
            self._allocations += 1
        return Allocation(block, offset, size, kind.host_coherent)

    def _place(self, size: int, alignment: int, index: int) -> tuple[DeviceMemory, int]:
        largest = min(_BLOCK, self._info.heaps[self._info.memory_types[index].heap].size // 8)
        if size > largest // 2:
            return self._new_block(size, index, dedicated=True), 0
        shared = [block for block in self._blocks if block.kind == index and not block.dedicated]
        for block in shared:
            offset = block.take(size, alignment)
            if offset is not None:
                return block, offset
        wanted = max(_FIRST_BLOCK, 2 * size, 2 * max((block.size for block in shared), default=0))
        block = self._new_block(min(largest, wanted), index, dedicated=False)
        offset = block.take(size, alignment)
        assert offset is not None  # an empty block holds at least twice the size
        return block, offset

    def _new_block(self, size: int, index: int, *, dedicated: bool) -> DeviceMemory:
        heap = self._info.heaps[self._info.memory_types[index].heap]
        if size > heap.size:
            raise OutOfMemoryError(
                f"{size} bytes do not fit the device's memory of {heap.size} bytes.",
                "use smaller arrays, or choose a device with more memory.",
            )
        memory = self._raw.allocate(size, index)
        visible = self._info.memory_types[index].host_visible
        try:
            view = self._raw.map(memory, size) if visible else None
        except BaseException:
            self._raw.free(memory)
            raise
        block = DeviceMemory(memory, size, index, dedicated, view, [] if dedicated else [(0, size)])
        self._blocks.append(block)
        self._peak = max(self._peak, self._reserved())
        return block

    def _reserved(self) -> int:
        return sum(block.size for block in self._blocks)

    def free(self, allocation: Allocation) -> None:
        """Gives a range back; a block that is empty goes back to the driver."""
        block = allocation.block
        with self._lock:
            if not block.dedicated:
                block.give(allocation.offset, allocation.size)
            self._used -= allocation.size
            self._allocations -= 1
            if block.dedicated or block.free == [(0, block.size)]:
                self._blocks.remove(block)
                self._free(block)

    def stats(self) -> MemoryStats:
        with self._lock:
            return MemoryStats(self._reserved(), self._used, len(self._blocks), self._allocations, self._peak)

    def close(self) -> None:
        """Frees every block, in use or not."""
        with self._lock:
            for block in self._blocks:
                self._free(block)
            self._blocks.clear()
            self._used = self._allocations = 0

    def _free(self, block: DeviceMemory) -> None:
        block.view = None  # the mapping ends with the memory
        self._raw.free(block.memory)
