"""Raw calls for what logical devices share: timelines and memory that one exports and another imports."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

from dashi.runtime import _vk as vk
from dashi.runtime import _vk_structs as s
from dashi.runtime._vk_device import BUFFER_USAGE, OPAQUE_FD, RawDevice

HOST_ALLOCATION = 0x80
_BOTH_WAYS = 0x3


@dataclass(frozen=True)
class ExternalFacts:
    """What a GPU can share. `identity` is that of the GPU and its driver: descriptors are understood by the same alone.
    `host_alignment` is that of host memory that it can import, 0 where it cannot."""

    identity: bytes
    timelines: bool
    memory: bool
    host_alignment: int


def external_facts(fns: vk.Functions, physical: int, extensions: frozenset[str]) -> ExternalFacts:
    """What a physical device can share with others."""
    ids, host = s.PhysicalDeviceIDProperties(), s.PhysicalDeviceExternalMemoryHostPropertiesEXT()
    imports = "VK_EXT_external_memory_host" in extensions
    if imports:
        ids.pNext = ctypes.addressof(host)
    query = s.PhysicalDeviceProperties2(pNext=ctypes.addressof(ids))
    fns.GetPhysicalDeviceProperties2(physical, ctypes.byref(query))
    return ExternalFacts(
        bytes(ids.deviceUUID) + bytes(ids.driverUUID),
        "VK_KHR_external_semaphore_fd" in extensions and _timelines(fns, physical),
        "VK_KHR_external_memory_fd" in extensions and _memory(fns, physical),
        host.minImportedHostPointerAlignment if imports else 0,
    )


def _timelines(fns: vk.Functions, physical: int) -> bool:
    kind = s.SemaphoreTypeCreateInfo(semaphoreType=1)
    info = s.PhysicalDeviceExternalSemaphoreInfo(pNext=ctypes.addressof(kind), handleType=OPAQUE_FD)
    offered = s.ExternalSemaphoreProperties()
    fns.GetPhysicalDeviceExternalSemaphoreProperties(physical, ctypes.byref(info), ctypes.byref(offered))
    return offered.externalSemaphoreFeatures & _BOTH_WAYS == _BOTH_WAYS


def _memory(fns: vk.Functions, physical: int) -> bool:
    info = s.PhysicalDeviceExternalBufferInfo(usage=BUFFER_USAGE, handleType=OPAQUE_FD)
    offered = s.ExternalBufferProperties()
    fns.GetPhysicalDeviceExternalBufferProperties(physical, ctypes.byref(info), ctypes.byref(offered))
    return offered.externalMemoryFeatures >> 1 & _BOTH_WAYS == _BOTH_WAYS


def export_timeline(raw: RawDevice, timeline: int) -> int:
    """A file descriptor of a timeline that was made to be exported."""
    info, out = s.SemaphoreGetFdInfoKHR(semaphore=timeline, handleType=OPAQUE_FD), ctypes.c_int32(-1)
    call = raw.fns.GetSemaphoreFdKHR(raw.handle, ctypes.byref(info), ctypes.byref(out))
    vk.check(call, "vkGetSemaphoreFdKHR")
    return out.value


def import_timeline(raw: RawDevice, descriptor: int) -> int:
    """The timeline behind a descriptor, which is used up."""
    timeline = raw.create_timeline()
    info = s.ImportSemaphoreFdInfoKHR(semaphore=timeline, handleType=OPAQUE_FD, fd=descriptor)
    try:
        vk.check(raw.fns.ImportSemaphoreFdKHR(raw.handle, ctypes.byref(info)), "vkImportSemaphoreFdKHR")
    except BaseException:
        os.close(descriptor)
        raw.destroy("Semaphore", timeline)
        raise
    return timeline


def bytes_at(address: int, size: int, owner: object = None) -> memoryview:
    """Memory of the host by its address. Its owner lives as long as any view of it; without one, somebody else keeps
    it."""
    memory: Any = (ctypes.c_uint8 * size).from_address(address)
    memory.owner = owner
    return memoryview(memory)


def host_memory_types(raw: RawDevice, address: int) -> int:
    """Bits of the memory types that host memory can be imported as."""
    offered = s.MemoryHostPointerPropertiesEXT()
    call = raw.fns.GetMemoryHostPointerPropertiesEXT(raw.handle, HOST_ALLOCATION, address, ctypes.byref(offered))
    vk.check(call, "vkGetMemoryHostPointerPropertiesEXT")
    return offered.memoryTypeBits


def import_host_memory(raw: RawDevice, address: int, size: int, kind: int) -> int:
    """Memory of the host as memory of the device; both must begin and end at multiples of the device's alignment."""
    outside = s.ImportMemoryHostPointerInfoEXT(handleType=HOST_ALLOCATION, pHostPointer=address)
    info = s.MemoryAllocateInfo(pNext=ctypes.addressof(outside), allocationSize=size, memoryTypeIndex=kind)
    return raw.create("AllocateMemory", info)


def allocate_exportable(raw: RawDevice, size: int, kind: int, buffer: int) -> int:
    """Memory for one buffer, of which a descriptor can be had."""
    alone = s.MemoryDedicatedAllocateInfo(buffer=buffer)
    outside = s.ExportMemoryAllocateInfo(pNext=ctypes.addressof(alone), handleTypes=OPAQUE_FD)
    info = s.MemoryAllocateInfo(pNext=ctypes.addressof(outside), allocationSize=size, memoryTypeIndex=kind)
    return raw.create("AllocateMemory", info)


def export_memory(raw: RawDevice, memory: int) -> int:
    """A file descriptor of memory that was made to be exported."""
    info, out = s.MemoryGetFdInfoKHR(memory=memory, handleType=OPAQUE_FD), ctypes.c_int32(-1)
    vk.check(raw.fns.GetMemoryFdKHR(raw.handle, ctypes.byref(info), ctypes.byref(out)), "vkGetMemoryFdKHR")
    return out.value


def import_memory(raw: RawDevice, descriptor: int, size: int, kind: int, buffer: int) -> int:
    """The memory behind a descriptor, which is used up."""
    alone = s.MemoryDedicatedAllocateInfo(buffer=buffer)
    outside = s.ImportMemoryFdInfoKHR(pNext=ctypes.addressof(alone), handleType=OPAQUE_FD, fd=descriptor)
    info = s.MemoryAllocateInfo(pNext=ctypes.addressof(outside), allocationSize=size, memoryTypeIndex=kind)
    try:
        return raw.create("AllocateMemory", info)
    except BaseException:
        os.close(descriptor)
        raise
