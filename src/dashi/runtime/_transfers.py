"""Copies and fills as commands of a Vulkan program, and the memory through which functions of the host see arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.runtime._buffer import Buffer
from dashi.runtime._staging import synchronise
from dashi.runtime._steps import HostStep
from dashi.runtime._vk_record import RawCommands, RawDispatch, raw_transfer
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import VulkanDevice

_PATTERN: Final = 1 << 16
"""Bytes of a pattern that is copied over and over, where the device's own fill cannot write it."""
_WORD: Final = 4


def copy_command(source: Buffer, target: Buffer) -> RawDispatch:
    """A copy of all bytes of a buffer."""
    size = source.nbytes

    def record(commands: RawCommands) -> None:
        commands.copy(source.range[:2], target.range[:2], size)

    return raw_transfer((source.bytes,), (target.bytes,), record)


def fill_command(device: VulkanDevice, target: Buffer, element: HostArray) -> tuple[RawDispatch, Buffer | None]:
    """A fill of a buffer with an element's bytes, and the buffer that it needs, if any. Devices fill whole words with a
    word; for what is none, or does not lie at words, a pattern is copied."""
    pattern = element.tobytes()
    repeated = pattern * max(1, _WORD // len(pattern))
    words = {repeated[i : i + _WORD] for i in range(0, len(repeated), _WORD)}
    if len(words) == 1 and not target.offset % _WORD and not target.nbytes % _WORD:
        word = int.from_bytes(words.pop(), "little")

        def fill(commands: RawCommands) -> None:
            commands.fill(target.range[:2], target.nbytes, word)

        return raw_transfer((), (target.bytes,), fill), None
    source = device.upload_memory(min(_PATTERN, max(target.nbytes, len(pattern))))
    host_view(source)[...] = np.frombuffer(pattern * (source.nbytes // len(pattern)), np.uint8)
    synchronise(device.raw, source, flush=True)
    starts = range(0, target.nbytes, source.nbytes)
    regions = [(0, target.offset + start, min(source.nbytes, target.nbytes - start)) for start in starts]

    def repeat(commands: RawCommands) -> None:
        commands.copy_regions(source.handle, target.handle, regions)

    return raw_transfer((), (target.bytes,), repeat), source


def host_view(buffer: Buffer) -> HostArray:
    """The bytes of a buffer that the host sees."""
    view = buffer.view
    assert view is not None  # memory for the host is always mapped
    return np.frombuffer(view, np.uint8, buffer.nbytes)


class HostCall:
    """A host step of a program, with memory that its inputs come to and its outputs go from."""

    def __init__(self, device: VulkanDevice, step: HostStep) -> None:
        self.step = step
        self._raw, self._exports = device.raw, device.exports
        self._came = [device.landing_memory(array.nbytes) for array in step.inputs]
        self._go = [device.upload_memory(array.nbytes) for array in step.outputs]
        self._outputs = [
            host_view(buffer).view(array.dtype.stored).reshape(array.shape)
            for buffer, array in zip(self._go, step.outputs, strict=True)
        ]
        sources, targets = step.lowered
        self.fetches = [copy_command(*pair) for pair in zip(sources, self._came, strict=True)]
        self.feeds = [copy_command(*pair) for pair in zip(self._go, targets, strict=True)]

    def run(self) -> None:
        """Calls the function; what it takes has come, and what it returns will go."""
        for buffer in self._came:
            synchronise(self._raw, buffer, flush=False)
        values = [
            self._exports.show(buffer, array.shape, array.dtype, writeable=False)
            for array, buffer in zip(self.step.inputs, self._came, strict=True)
        ]
        self.step.call(values, self._outputs)
        for buffer in self._go:
            synchronise(self._raw, buffer, flush=True)
