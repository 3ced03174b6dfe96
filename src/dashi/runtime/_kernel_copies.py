"""Copies within a device by a kernel instead of the driver's own command: which, and from what size on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.runtime._binding import Step
from dashi.runtime.array import Array

if TYPE_CHECKING:
    from dashi.runtime.device import Device

KERNEL_COPY_BYTES: Final = 16 << 20
"""From here on GPUs copy by a kernel, in `device.copy` and in `device.copy_step`. On an H200 `vkCmdCopyBuffer` moves
0.85 TB/s and a kernel 4.25: 64 MiB take 908 us and 294, from the call to the end, and below 16 MiB the driver is
faster (`benchmarks/copies.py`)."""


def kernel_can_copy(device: Device, source: Array, target: Array) -> bool:
    """Whether a kernel can copy the one to the other: whole words, from and to where shaders can start."""
    whole_words = bool(source.nbytes) and not source.nbytes % 4
    return whole_words and not any(array.offset % device.part_alignment for array in (source, target))


def kernel_copies_faster(device: Device, source: Array, target: Array) -> bool:
    """Whether a kernel is to copy where nobody says otherwise."""
    large = device.info.is_hardware and source.nbytes >= KERNEL_COPY_BYTES
    return large and kernel_can_copy(device, source, target)


def kernel_copy(device: Device, source: Array, target: Array) -> Step:
    """The copy as a step of a kernel. It moves words: whatever their type, these are the bytes."""
    x, y = (array.reshape(-1).view(np.uint32) for array in (source, target))
    return device.bind("copy", x, out=y)
