"""Buffers of a Vulkan device in memory from elsewhere: the host's, or another logical device's of the same GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dashi.runtime._buffer import Buffer
from dashi.runtime._memory import Allocation, DeviceMemory, choose_type
from dashi.runtime._vk_device import OPAQUE_FD
from dashi.runtime._vk_external import (
    HOST_ALLOCATION,
    allocate_exportable,
    export_memory,
    host_memory_types,
    import_host_memory,
    import_memory,
)
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import VulkanDevice


def aligned_bytes(nbytes: int, alignment: int) -> HostArray:
    """Zeroed memory of the host that begins at a multiple of the alignment, and of a size that is one."""
    size = max(1, -(-nbytes // alignment)) * alignment
    room = np.zeros(size + alignment, np.uint8)
    start = -room.ctypes.data % alignment
    return room[start : start + size]


def import_host(device: VulkanDevice, host: HostArray, nbytes: int) -> Buffer:
    """A buffer in memory of the host, which lives as long as the buffer."""
    raw, address = device.raw, host.ctypes.data

    def allocate(_buffer: int, _needed: int, allowed: int) -> tuple[int, int, int]:
        kind = choose_type(device.info.memory_types, allowed & host_memory_types(raw, address), "upload")
        return import_host_memory(raw, address, host.nbytes, kind), kind, host.nbytes

    return _buffer(device, host.nbytes, nbytes, HOST_ALLOCATION, allocate, host)


def export_buffer(device: VulkanDevice, nbytes: int) -> tuple[Buffer, int]:
    """A buffer in memory that other logical devices of the GPU can use, and a descriptor of it."""

    def allocate(buffer: int, needed: int, allowed: int) -> tuple[int, int, int]:
        kind = choose_type(device.info.memory_types, allowed, "device")
        return allocate_exportable(device.raw, needed, kind, buffer), kind, needed

    buffer = _buffer(device, nbytes, nbytes, OPAQUE_FD, allocate, None)
    return buffer, export_memory(device.raw, buffer.allocation.block.memory)


def import_buffer(device: VulkanDevice, descriptor: int, like: Buffer) -> Buffer:
    """A buffer in the memory of another device's, by a descriptor, which is used up."""
    block = like.allocation.block

    def allocate(buffer: int, _needed: int, _allowed: int) -> tuple[int, int, int]:
        return import_memory(device.raw, descriptor, block.size, block.kind, buffer), block.kind, block.size

    return _buffer(device, like.nbytes, like.nbytes, OPAQUE_FD, allocate, None)


def _buffer(
    device: VulkanDevice,
    size: int,
    nbytes: int,
    outside: int,
    allocate: Callable[[int, int, int], tuple[int, int, int]],
    host: HostArray | None,
) -> Buffer:
    raw = device.raw
    whole = -(-max(size, 16) // 16) * 16
    handle, needed, _, allowed = raw.create_buffer(whole, outside)
    memory = 0
    try:
        memory, kind, allocated = allocate(handle, needed, allowed)
        raw.bind_memory(handle, memory, 0)
        visible = device.info.memory_types[kind].host_visible
        view = host if host is not None else raw.map(memory, allocated) if visible else None
    except BaseException:
        raw.destroy("Buffer", handle)
        if memory:
            raw.free(memory)
        raise
    block = DeviceMemory(memory, allocated, kind, True, view)
    coherent = device.info.memory_types[kind].host_coherent

    def destroy() -> None:
        block.view = None  # the host's memory, or the mapping, is needed to here
        raw.destroy("Buffer", handle)
        raw.free(memory)

    return Buffer.of(handle, Allocation(block, 0, allocated, coherent), nbytes, device.graveyard, destroy)
