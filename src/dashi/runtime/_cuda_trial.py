"""What runs in a child process: whether CUDA and a Vulkan device see the same bytes in memory that Vulkan exported."""

from __future__ import annotations

import json
import os
import sys

import numpy as np

from dashi.errors import DashiError
from dashi.runtime._outside_memory import export_buffer
from dashi.runtime._vk_cuda import CudaContext
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.array import Array
from dashi.runtime.select import open_device
from dashi.types import dtype as dtype_of

_WORDS = 1 << 16


def child() -> None:
    """Tries, and answers on stdout: nothing where it works, otherwise what went wrong."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # drivers write there as they like
    try:
        with open_device(sys.argv[1], validation=False, timeout=10) as device:
            problem = _try(device) if isinstance(device, VulkanDevice) else "it is no Vulkan device"
    except DashiError as error:
        problem = error.what
    answer.write(json.dumps({"problem": problem}))
    answer.close()


def _try(device: VulkanDevice) -> str:
    if not device.external.memory:
        return "its driver exports no memory"
    context = CudaContext(device.external.identity[:16])
    context.enter()
    buffer, descriptor = export_buffer(device, 4 * _WORDS)
    memory, address = context.import_memory(descriptor, buffer.allocation.block.size, 4 * _WORDS)
    try:
        array = Array(device, (_WORDS,), dtype_of(np.uint32), buffer)
        words = np.arange(_WORDS, dtype=np.uint32) * np.uint32(2654435761)
        array.write(words)
        if context.read(address, 4 * _WORDS) != words.tobytes():
            return "CUDA reads other bytes than Vulkan wrote"
        context.fill(address, 0xC0FFEE, _WORDS)
        return "" if (array.numpy() == 0xC0FFEE).all() else "Vulkan reads other bytes than CUDA wrote"
    finally:
        context.free_memory(memory, address)
        context.leave()
        context.close()
