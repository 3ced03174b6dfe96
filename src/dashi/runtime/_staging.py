"""Copies between host and device: straight through mapped memory, or in pieces through a staging buffer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

import numpy as np

from dashi.runtime._buffer import Buffer, Graveyard
from dashi.runtime._memory import Allocator, Use
from dashi.runtime._sync import Queue
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawCommands, RawSubmission
from dashi.types import HostArray

_PIECE: Final = 16 << 20


class Staging:
    """One upload and one readback buffer, made when first needed; thread-safe."""

    def __init__(self, raw: RawDevice, allocator: Allocator, graveyard: Graveyard, queues: Sequence[Queue]) -> None:
        self._raw = raw
        self._allocator = allocator
        self._graveyard = graveyard
        self._queues = queues
        self._queue = queues[0]
        self._lock = threading.Lock()
        self._buffers: dict[Use, Buffer] = {}

    def write(self, target: Buffer, values: HostArray) -> None:
        """Copies the array's bytes into the buffer, after all work submitted so far."""
        data = values.reshape(-1).view(np.uint8)
        with self._lock:
            self._settle()
            direct = target.view
            if direct is not None:
                direct[:] = data.data
                self._to_device(target)
                return
            for start in range(0, data.nbytes, _PIECE):
                piece = data[start : start + _PIECE]
                through = self._buffer("upload", data.nbytes)
                _view(through)[: piece.nbytes] = piece.data
                self._to_device(through)
                self._copy((through.handle, 0), (target.handle, target.offset + start), piece.nbytes)

    def read(self, source: Buffer) -> HostArray:
        """A copy of the buffer's bytes, after all work submitted so far."""
        out = np.empty(source.nbytes, np.uint8)
        with self._lock:
            self._settle()
            direct = source.view
            if direct is not None:
                self._from_device(source)
                out[:] = direct
                return out
            for start in range(0, source.nbytes, _PIECE):
                size = min(_PIECE, source.nbytes - start)
                through = self._buffer("readback", source.nbytes)
                self._copy((source.handle, source.offset + start), (through.handle, 0), size)
                self._from_device(through)
                out[start : start + size] = _view(through)[:size]
        return out

    def _settle(self) -> None:
        """Waits for the work submitted so far: the host is about to touch what it may be using."""
        for queue in self._queues:
            queue.wait(queue.horizon)

    def _buffer(self, use: Use, wanted: int) -> Buffer:
        size = min(_PIECE, 1 << max(16, (wanted - 1).bit_length()))
        held = self._buffers.get(use)
        if held is None or held.nbytes < size:
            held = self._buffers[use] = Buffer(self._raw, self._allocator, self._graveyard, size, use)
        return held

    def _copy(self, source: tuple[int, int], target: tuple[int, int], size: int) -> None:
        commands = RawCommands(self._raw, self._queue.family)
        try:
            commands.begin()
            commands.copy(source, target, size)
            commands.results_to_host()
            commands.end()
            submission = RawSubmission(self._raw, [commands.handle], self._queue.timeline)
            self._queue.wait(self._queue.submit(submission))
        finally:
            commands.close()

    def _to_device(self, buffer: Buffer) -> None:
        synchronise(self._raw, buffer, flush=True)

    def _from_device(self, buffer: Buffer) -> None:
        synchronise(self._raw, buffer, flush=False)


def synchronise(raw: RawDevice, buffer: Buffer, *, flush: bool) -> None:
    """Makes what the host wrote visible to the device (flush), or what the device wrote visible to the host."""
    part = buffer.allocation
    if not part.coherent:
        raw.synchronise_host(part.block.memory, part.offset, part.size, flush=flush)


def _view(buffer: Buffer) -> memoryview:
    view = buffer.view
    assert view is not None  # staging memory is always host-visible
    return view
