"""The bare calls that recording and submitting need, in the tightest loops: what our layer is measured against."""

from __future__ import annotations

import ctypes
import importlib
import time
from collections.abc import Sequence
from typing import Any

from dashi.runtime import _vk_structs as s
from dashi.runtime._vk_device import COMPUTE_STAGE
from dashi.runtime._vk_record import RawCommands, RawDispatch
from dashi.runtime._vulkan_device import VulkanDevice

_COMPUTE = 0x800


def record_bare(device: VulkanDevice, dispatches: Sequence[RawDispatch], times: int) -> float:
    """Seconds per dispatch to record it with its barrier: bind set, push, dispatch, barrier; nothing else."""
    commands = RawCommands(device.raw, device.queue.family)
    commands.begin()
    fns, handle = device.raw.fns, commands.handle
    bind, push, dispatch, barrier = (
        fns.CmdBindDescriptorSets,
        fns.CmdPushConstants,
        fns.CmdDispatch,
        fns.CmdPipelineBarrier,
    )
    memory = s.MemoryBarrier(srcAccessMask=0x60, dstAccessMask=0x60)
    address = ctypes.addressof(memory)
    ready = [(d.layout, d.set, d.push_size, d.push, *d.groups) for d in dispatches]
    fns.CmdBindPipeline(handle, 1, dispatches[0].pipeline)
    start = time.perf_counter()
    for _ in range(times):
        for layout, descriptor_set, size, data, x, y, z in ready:
            barrier(handle, _COMPUTE, _COMPUTE, 0, 1, address, 0, None, 0, None)
            bind(handle, 1, layout, 0, 1, descriptor_set, 0, None)
            push(handle, layout, COMPUTE_STAGE, 0, size, data)
            dispatch(handle, x, y, z)
    took = time.perf_counter() - start
    commands.end()
    commands.close()
    return took / (times * len(ready))


def submit_bare(device: VulkanDevice, times: int) -> float:
    """Seconds per submission and wait of a recorded, empty command buffer, all structs built once."""
    raw = device.raw
    commands = RawCommands(raw, device.queue.family)
    commands.begin()
    commands.end()
    semaphore = raw.create_timeline()
    queue = raw.queue(device.queue.family, 0)
    buffers, semaphores = (ctypes.c_void_p * 1)(commands.handle), (ctypes.c_uint64 * 1)(semaphore)
    value = (ctypes.c_uint64 * 1)()
    timeline = s.TimelineSemaphoreSubmitInfo(
        signalSemaphoreValueCount=1, pSignalSemaphoreValues=ctypes.addressof(value)
    )
    info = s.SubmitInfo(
        pNext=ctypes.addressof(timeline),
        commandBufferCount=1,
        pCommandBuffers=ctypes.addressof(buffers),
        signalSemaphoreCount=1,
        pSignalSemaphores=ctypes.addressof(semaphores),
    )
    waiting = s.SemaphoreWaitInfo(
        semaphoreCount=1, pSemaphores=ctypes.addressof(semaphores), pValues=ctypes.addressof(value)
    )
    submit, wait, handle = raw.fns.QueueSubmit, raw.fns.WaitSemaphores, raw.handle
    at_info, at_wait = ctypes.addressof(info), ctypes.addressof(waiting)
    start = time.perf_counter()
    for i in range(1, times + 1):
        value[0] = i
        submit(queue, 1, at_info, 0)
        wait(handle, at_wait, 1_000_000_000)
    took = time.perf_counter() - start
    raw.destroy("Semaphore", semaphore)
    commands.close()
    return took / times


def record_wrappers(device: VulkanDevice, dispatches: Sequence[RawDispatch], times: int) -> float | None:
    """Time of one recording of the dispatches through the `vulkan` package of PyPI; None where it is not installed."""
    try:
        peer: Any = importlib.import_module("vulkan")
    except (ImportError, OSError):
        return None
    commands = RawCommands(device.raw, device.queue.family)
    commands.begin()
    handle = peer.ffi.cast("VkCommandBuffer", commands.handle)
    ready = [
        (
            peer.ffi.cast("VkPipelineLayout", d.layout),
            [peer.ffi.cast("VkDescriptorSet", ctypes.c_uint64.from_address(d.set).value)],
            d.push_size,
            peer.ffi.cast("void*", d.push or 0),
            *d.groups,
        )
        for d in dispatches
    ]
    peer.vkCmdBindPipeline(handle, 1, peer.ffi.cast("VkPipeline", dispatches[0].pipeline))
    start = time.perf_counter()
    for _ in range(times):
        for layout, sets, size, data, x, y, z in ready:
            memory = peer.VkMemoryBarrier(srcAccessMask=0x60, dstAccessMask=0x60)
            peer.vkCmdPipelineBarrier(handle, _COMPUTE, _COMPUTE, 0, 1, [memory], 0, None, 0, None)
            peer.vkCmdBindDescriptorSets(handle, 1, layout, 0, 1, sets, 0, None)
            peer.vkCmdPushConstants(handle, layout, COMPUTE_STAGE, 0, size, data)
            peer.vkCmdDispatch(handle, x, y, z)
    took = time.perf_counter() - start
    commands.end()
    commands.close()
    return took / (times * len(ready))


def submit_wrappers(device: VulkanDevice, times: int) -> float | None:
    """Time of one submission through the `vulkan` package of PyPI; None where it is not installed."""
    try:
        peer: Any = importlib.import_module("vulkan")
    except (ImportError, OSError):
        return None
    raw = device.raw
    commands = RawCommands(raw, device.queue.family)
    commands.begin()
    commands.end()
    semaphore = raw.create_timeline()
    queue = peer.ffi.cast("VkQueue", raw.queue(device.queue.family, 0))
    logical = peer.ffi.cast("VkDevice", raw.handle)
    buffers = [peer.ffi.cast("VkCommandBuffer", commands.handle)]
    semaphores = [peer.ffi.cast("VkSemaphore", semaphore)]
    start = time.perf_counter()
    for i in range(1, times + 1):
        timeline = peer.VkTimelineSemaphoreSubmitInfo(signalSemaphoreValueCount=1, pSignalSemaphoreValues=[i])
        info = peer.VkSubmitInfo(pNext=timeline, pCommandBuffers=buffers, pSignalSemaphores=semaphores)
        peer.vkQueueSubmit(queue, 1, [info], None)
        peer.vkWaitSemaphores(logical, peer.VkSemaphoreWaitInfo(pSemaphores=semaphores, pValues=[i]), 1_000_000_000)
    took = time.perf_counter() - start
    raw.destroy("Semaphore", semaphore)
    commands.close()
    return took / times
