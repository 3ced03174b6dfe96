"""Buffers in device memory, and the graveyard that frees them when the device is done with them."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from operator import le
from typing import Final

from dashi.runtime._hazards import Range
from dashi.runtime._memory import Allocation, Allocator, Use
from dashi.runtime._sync import Queue
from dashi.runtime._vk_device import RawDevice

_MINIMUM: Final = 16  # Vulkan has no empty buffers, and descriptors want at least one word

HOST_MEMORY: Final = 0
"""The key of memory of the host that buffers were imported from: they begin at their address."""


def _whole(nbytes: int) -> int:
    """Rounded up to vectors of 16 bytes, in which shaders may read a buffer to its end."""
    return -(-nbytes // 16) * 16


class Graveyard:
    """Destroys what hangs off a device: never before the work submitted until then is done, always before the device.

    Burying is one atomic append, so that garbage collection may do it at any moment, on any thread.
    """

    def __init__(self, queues: Sequence[Queue]) -> None:
        self._queues = queues
        self._tokens = itertools.count()
        self._living: dict[int, Callable[[], None]] = {}
        self._dead: deque[tuple[list[int], Callable[[], None]]] = deque()
        self._lock = threading.Lock()

    def watch(self, thing: object, destroy: Callable[[], None]) -> Callable[[], object]:
        """Buries `destroy` when `thing` is forgotten, or when the function returned is called."""
        token = next(self._tokens)
        finalizer = weakref.finalize(thing, self._bury, token, destroy)
        finalizer.atexit = False
        self._living[token] = destroy
        return finalizer

    def _bury(self, token: int, destroy: Callable[[], None]) -> None:
        if self._living.pop(token, None) is not None:  # else it went with the device
            self._dead.append(([queue.submitted for queue in self._queues], destroy))

    def drain(self, *, everything: bool = False) -> None:
        """Destroys what no running work can use any more."""
        if not self._dead or not self._lock.acquire(blocking=everything):
            return
        try:
            reached = [] if everything else [queue.reached() for queue in self._queues]
            for _ in range(len(self._dead)):
                values, destroy = self._dead.popleft()
                if everything or all(map(le, values, reached)):
                    destroy()
                else:
                    self._dead.append((values, destroy))
        finally:
            self._lock.release()

    def close(self) -> None:
        """Destroys everything; the device is idle or lost."""
        # Not by the finalizers, which do nothing any more while the interpreter ends.
        for token, destroy in list(self._living.items()):
            self._bury(token, destroy)
        self.drain(everything=True)


class Buffer:
    """A storage buffer with its memory, freed when it is forgotten. `key` identifies the memory in hazard tracking,
    where the buffer begins at byte `origin`: that of the host is one memory, of which buffers may have bytes in
    common."""

    __slots__ = ("__weakref__", "allocation", "handle", "key", "nbytes", "offset", "origin", "whole")
    _keys = itertools.count(1)

    def __init__(self, raw: RawDevice, allocator: Allocator, graveyard: Graveyard, nbytes: int, use: Use) -> None:
        size = max(nbytes, _MINIMUM)
        handle, needed, alignment, allowed = raw.create_buffer(_whole(size))
        try:
            allocation = allocator.allocate(needed, alignment, allowed, use)
        except BaseException:
            raw.destroy("Buffer", handle)
            raise
        raw.bind_memory(handle, allocation.block.memory, allocation.offset)
        self.handle = handle
        self.allocation: Allocation = allocation
        self.nbytes = nbytes
        self.offset = self.origin = 0
        self.whole: Buffer | None = None
        self.key = next(Buffer._keys)

        def destroy() -> None:
            raw.destroy("Buffer", handle)
            allocator.free(allocation)

        graveyard.watch(self, destroy)

    @classmethod
    def of(
        cls, handle: int, allocation: Allocation, nbytes: int, graveyard: Graveyard, destroy: Callable[[], None]
    ) -> Buffer:
        """A buffer whose memory comes from elsewhere: `destroy` ends it."""
        buffer = object.__new__(cls)
        buffer.handle, buffer.allocation, buffer.nbytes = handle, allocation, nbytes
        buffer.offset, buffer.origin, buffer.whole = 0, 0, None
        buffer.key = next(cls._keys)
        graveyard.watch(buffer, destroy)
        return buffer

    @property
    def range(self) -> tuple[int, int, int]:
        """(buffer, offset, bytes) for a descriptor."""
        return (self.handle, self.offset, _whole(max(self.nbytes, _MINIMUM)))

    @property
    def bound_bytes(self) -> Range:
        """What a shader may touch through a descriptor of it, in hazard tracking."""
        start = self.origin + self.offset
        return (self.key, start, start + _whole(max(self.nbytes, _MINIMUM)))

    @property
    def bytes(self) -> Range:
        """What a copy of all of it touches, in hazard tracking."""
        start = self.origin + self.offset
        return (self.key, start, start + self.nbytes)

    @property
    def view(self) -> memoryview | None:
        """The host's view of the bytes, where the memory is mapped."""
        view = self.allocation.view
        return None if view is None else view[self.offset : self.offset + self.nbytes]

    def part(self, offset: int, nbytes: int) -> Buffer:
        """Bytes of this buffer from an offset on, which descriptors can start at. The buffer lives as long as it."""
        part = object.__new__(Buffer)
        part.handle, part.allocation, part.key, part.origin = self.handle, self.allocation, self.key, self.origin
        part.nbytes, part.offset, part.whole = nbytes, self.offset + offset, self.whole or self
        return part
