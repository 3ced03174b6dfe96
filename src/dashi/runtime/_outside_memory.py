"""Buffers of a Vulkan device in memory from elsewhere: the host's, or another logical device's of the same GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dashi.errors import AlignmentError, LimitError, OutOfMemoryError, UnsupportedOperationError, VulkanError
from dashi.runtime._buffer import HOST_MEMORY, Buffer
from dashi.runtime._memory import Allocation, DeviceMemory, choose_type
from dashi.runtime._vk_device import OPAQUE_FD, RawDevice
from dashi.runtime._vk_external import (
    HOST_ALLOCATION,
    allocate_exportable,
    bytes_at,
    export_memory,
    host_memory_types,
    import_host_memory,
    import_memory,
)
from dashi.runtime.array import Array
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import VulkanDevice


def aligned_bytes(nbytes: int, alignment: int) -> HostArray:
    """Zeroed memory of the host that begins at a multiple of the alignment, and of a size that is one."""
    size = max(1, -(-nbytes // alignment)) * alignment
    room = np.zeros(size + alignment, np.uint8)
    start = -room.ctypes.data % alignment
    return room[start : start + size]


def import_host(device: VulkanDevice, host: HostArray, nbytes: int, owner: object = None) -> Buffer:
    """A buffer in memory of the host, which lives as long as the buffer, and so does its owner."""
    raw, address = device.raw, host.ctypes.data

    def allocate(_buffer: int, _needed: int, allowed: int) -> tuple[int, int, int]:
        kind = choose_type(device.info.memory_types, allowed & host_memory_types(raw, address), "upload")
        return import_host_memory(raw, address, host.nbytes, kind), kind, host.nbytes

    return _buffer(device, host.nbytes, nbytes, HOST_ALLOCATION, allocate, host, owner)


def borrowed_array(device: VulkanDevice, host: HostArray) -> Array:
    """An array in memory of the host; raises where the driver cannot import it, or no shader could start there."""
    page, alignment = device.external.host_alignment, device.part_alignment
    if not page:
        raise UnsupportedOperationError(
            f"the driver of {device.info.name!r} imports no memory of the host.",
            "copy the values: device.array(values).",
        )
    if not host.nbytes:
        return device.empty(host.shape, host.dtype)
    if host.ctypes.data % alignment:
        raise AlignmentError(
            f"memory at address {host.ctypes.data:#x} cannot be used by {device.info.name!r} without a copy.",
            f"make an array that begins at a multiple of {alignment} bytes, or copy the values: device.array(values).",
        )
    if host.nbytes > device.limits.storage_range:
        raise LimitError(
            f"an array of {host.nbytes} bytes is larger than {device.info.name!r} can bind "
            f"({device.limits.storage_range}).",
            "borrow parts of it.",
        )
    try:
        buffer = _borrow_pages(device, host)
    except (VulkanError, OutOfMemoryError) as error:
        raise UnsupportedOperationError(
            f"the driver of {device.info.name!r} does not import this memory of the host: {error.what}",
            "copy the values: device.array(values).",
        ) from error
    return Array(device, host.shape, dtype_of(host.dtype), buffer, host.ctypes.data % page)


def _borrow_pages(device: VulkanDevice, host: HostArray) -> Buffer:
    """A buffer in the memory of an array of the host, which lives as long as the buffer. Drivers import whole pages:
    those that the array begins and ends in too, of which nothing but the array's bytes is used."""
    page = device.external.host_alignment
    address = host.ctypes.data
    start = address // page * page
    size = -(-(address + host.nbytes) // page) * page - start
    pages: HostArray = np.frombuffer(bytes_at(start, size, host), np.uint8)
    whole = import_host(device, pages, size, host)
    whole.key, whole.origin = HOST_MEMORY, start
    if not whole.allocation.coherent:
        raise UnsupportedOperationError(
            f"{device.info.name!r} sees what the host writes there only when it is told.",
            "copy the values: device.array(values).",
        )
    return whole.part(address - start, host.nbytes)


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
    owner: object = None,
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

    destroy = partial(_destroy, raw, handle, block, owner)
    return Buffer.of(handle, Allocation(block, 0, allocated, coherent), nbytes, device.graveyard, destroy)


def _destroy(raw: RawDevice, handle: int, block: DeviceMemory, _owner: object) -> None:
    block.view = None  # the host's memory, or the mapping, is needed to here
    raw.destroy("Buffer", handle)
    raw.free(block.memory)
