"""Raw calls for logical devices and their objects: memory, buffers, pipelines, semaphores, queries.

`RawDevice` wraps one VkDevice: handles are ints, errors are typed, nothing here keeps state beyond the handles.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

from dashi.runtime import _vk as vk
from dashi.runtime import _vk_instance as raw_instance
from dashi.runtime import _vk_structs as s

STORAGE_BUFFER: Final = 7
PIPELINE_OBJECT: Final = 19
COMPUTE_STAGE: Final = 0x20
BUFFER_USAGE: Final = 0x1 | 0x2 | 0x20  # transfer source, transfer destination, storage
DISPATCH_BASE: Final = 0x10
FULL_SUBGROUPS: Final = 0x2
OPAQUE_FD: Final = 1
_OPTIONAL_EXTENSIONS: Final = (
    "VK_EXT_shader_atomic_float",
    "VK_KHR_cooperative_matrix",
    "VK_KHR_external_semaphore_fd",
    "VK_KHR_external_memory_fd",
    "VK_EXT_external_memory_host",
    "VK_EXT_calibrated_timestamps",
)


@dataclass(frozen=True)
class RawPipeline:
    """Handles of a compute pipeline and what it is made of."""

    pipeline: int
    layout: int
    set_layout: int


def create_device(
    fns: vk.Functions, physical: int, extensions: frozenset[str], families: Mapping[int, int], *, debug: bool
) -> RawDevice:
    """A VkDevice with every feature that dashi knows switched on; `families` says how many queues of each."""
    priorities = (ctypes.c_float * max(families.values()))(*[1.0] * max(families.values()))
    queues = (s.DeviceQueueCreateInfo * len(families))(
        *(
            s.DeviceQueueCreateInfo(queueFamilyIndex=f, queueCount=n, pQueuePriorities=ctypes.addressof(priorities))
            for f, n in families.items()
        )
    )
    structs = raw_instance.feature_structs(fns, physical, extensions)
    # Robust access costs speed and hides errors; the plans keep every access inside its buffer.
    structs["core"].features.robustBufferAccess = 0
    enabled = [e for e in _OPTIONAL_EXTENSIONS if e in extensions]
    if "VK_KHR_portability_subset" in extensions:
        enabled.append("VK_KHR_portability_subset")
    names = raw_instance.strings(enabled)
    info = s.DeviceCreateInfo(
        pNext=ctypes.addressof(structs["core"]),
        queueCreateInfoCount=len(families),
        pQueueCreateInfos=ctypes.addressof(queues),
        enabledExtensionCount=len(enabled),
        ppEnabledExtensionNames=ctypes.addressof(names),
    )
    handle = ctypes.c_void_p()
    vk.check(fns.CreateDevice(physical, ctypes.byref(info), None, ctypes.byref(handle)), "vkCreateDevice")
    assert handle.value is not None
    return RawDevice(vk.device_functions(fns, handle.value, debug=debug), handle.value, list(families), debug=debug)


class RawDevice:
    """One VkDevice: thin, typed calls on ints."""

    pipeline_flags = DISPATCH_BASE

    def __init__(self, fns: vk.Functions, handle: int, families: Sequence[int], *, debug: bool = False) -> None:
        self.fns = fns
        self.handle = handle
        self.one_waiter = threading.Lock() if debug else None
        """Held while a timeline is waited for or read, where layers watch: they lose track of one (and stall for ten
        seconds) that two threads ask for at the same time."""
        self._families = (ctypes.c_uint32 * len(families))(*families)

    def create(self, name: str, info: Any) -> int:
        out = ctypes.c_uint64()
        result = getattr(self.fns, name)(self.handle, ctypes.byref(info), None, ctypes.byref(out))
        vk.check(result, f"vk{name}")
        return out.value

    def destroy(self, kind: str, handle: int) -> None:
        """Destroys an object of this device ("Buffer", "Pipeline", ...)."""
        getattr(self.fns, f"Destroy{kind}")(self.handle, handle, None)

    def close(self) -> None:
        """Destroys the device; whoever calls one of its functions later gets a typed error and no dead handle."""
        self.fns.DestroyDevice(self.handle, None)
        self.fns.close()

    def wait_idle(self) -> None:
        vk.check(self.fns.DeviceWaitIdle(self.handle), "vkDeviceWaitIdle")

    def queue(self, family: int, index: int) -> int:
        out = ctypes.c_void_p()
        self.fns.GetDeviceQueue(self.handle, family, index, ctypes.byref(out))
        assert out.value is not None
        return out.value

    # Memory and buffers

    def allocate(self, size: int, memory_type: int) -> int:
        info = s.MemoryAllocateInfo(allocationSize=size, memoryTypeIndex=memory_type)
        return self.create("AllocateMemory", info)

    def free(self, memory: int) -> None:
        self.fns.FreeMemory(self.handle, memory, None)

    def map(self, memory: int, size: int) -> Any:
        """The whole allocation as a writable buffer of bytes."""
        out = ctypes.c_void_p()
        vk.check(self.fns.MapMemory(self.handle, memory, 0, size, 0, ctypes.byref(out)), "vkMapMemory")
        assert out.value is not None
        return (ctypes.c_uint8 * size).from_address(out.value)

    def synchronise_host(self, memory: int, offset: int, size: int, *, flush: bool) -> None:
        """Makes host writes visible to the device (flush), or device writes to the host, for non-coherent memory."""
        info = s.MappedMemoryRange(memory=memory, offset=offset, size=size)
        call = self.fns.FlushMappedMemoryRanges if flush else self.fns.InvalidateMappedMemoryRanges
        vk.check(call(self.handle, 1, ctypes.byref(info)), "vkFlushMappedMemoryRanges")

    def create_buffer(self, size: int, outside: int = 0) -> tuple[int, int, int, int]:
        """A storage buffer without memory: (handle, bytes needed, alignment, bits of allowed memory types). `outside`
        names the kinds of memory from elsewhere that it may get."""
        shared = len(self._families)
        external = s.ExternalMemoryBufferCreateInfo(handleTypes=outside)
        info = s.BufferCreateInfo(
            pNext=ctypes.addressof(external) if outside else None,
            size=size,
            usage=BUFFER_USAGE,
            sharingMode=1 if shared > 1 else 0,  # concurrent: queues of several families use it without handing over
            queueFamilyIndexCount=shared,
            pQueueFamilyIndices=ctypes.addressof(self._families),
        )
        handle = self.create("CreateBuffer", info)
        needs = s.MemoryRequirements()
        self.fns.GetBufferMemoryRequirements(self.handle, handle, ctypes.byref(needs))
        return handle, needs.size, needs.alignment, needs.memoryTypeBits

    def bind_memory(self, buffer: int, memory: int, offset: int) -> None:
        vk.check(self.fns.BindBufferMemory(self.handle, buffer, memory, offset), "vkBindBufferMemory")

    # Pipelines

    def create_pipeline_cache(self, data: bytes) -> int:
        held = ctypes.create_string_buffer(data, len(data)) if data else None
        address = ctypes.addressof(held) if held is not None else None
        return self.create(
            "CreatePipelineCache", s.PipelineCacheCreateInfo(initialDataSize=len(data), pInitialData=address)
        )

    def pipeline_cache_data(self, cache: int) -> bytes:
        size = ctypes.c_size_t()
        vk.check(self.fns.GetPipelineCacheData(self.handle, cache, ctypes.byref(size), None), "vkGetPipelineCacheData")
        data = ctypes.create_string_buffer(size.value)
        self.fns.GetPipelineCacheData(self.handle, cache, ctypes.byref(size), data)
        return data.raw[: size.value]

    def create_pipeline(
        self, code: bytes, buffers: int, push_bytes: int, spec: Sequence[int], cache: int, *, full_subgroups: bool
    ) -> RawPipeline:
        """A compute pipeline with `buffers` storage buffers in set 0 and u32 specialisation constants.

        `full_subgroups` makes every subgroup whole, for shaders that count on their neighbours.
        """
        bindings = (s.DescriptorSetLayoutBinding * buffers)(
            *(
                s.DescriptorSetLayoutBinding(
                    binding=i, descriptorType=STORAGE_BUFFER, descriptorCount=1, stageFlags=COMPUTE_STAGE
                )
                for i in range(buffers)
            )
        )
        set_layout = self.create(
            "CreateDescriptorSetLayout",
            s.DescriptorSetLayoutCreateInfo(bindingCount=buffers, pBindings=ctypes.addressof(bindings)),
        )
        handles: list[tuple[str, int]] = [("DescriptorSetLayout", set_layout)]
        try:
            layout = self._pipeline_layout(set_layout, push_bytes)
            handles.append(("PipelineLayout", layout))
            return RawPipeline(self._compute_pipeline(code, layout, spec, cache, full_subgroups), layout, set_layout)
        except BaseException:
            for kind, handle in reversed(handles):
                self.destroy(kind, handle)
            raise

    def _pipeline_layout(self, set_layout: int, push_bytes: int) -> int:
        sets = (ctypes.c_uint64 * 1)(set_layout)
        push = s.PushConstantRange(stageFlags=COMPUTE_STAGE, offset=0, size=push_bytes)
        info = s.PipelineLayoutCreateInfo(
            setLayoutCount=1,
            pSetLayouts=ctypes.addressof(sets),
            pushConstantRangeCount=1 if push_bytes else 0,
            pPushConstantRanges=ctypes.addressof(push),
        )
        return self.create("CreatePipelineLayout", info)

    def _compute_pipeline(self, code: bytes, layout: int, spec: Sequence[int], cache: int, full: bool) -> int:
        text = ctypes.create_string_buffer(code, len(code))
        module = self.create(
            "CreateShaderModule", s.ShaderModuleCreateInfo(codeSize=len(code), pCode=ctypes.addressof(text))
        )
        values = (ctypes.c_uint32 * max(1, len(spec)))(*spec)
        entries = (s.SpecializationMapEntry * max(1, len(spec)))(
            *(s.SpecializationMapEntry(constantID=i, offset=4 * i, size=4) for i in range(len(spec)))
        )
        special = s.SpecializationInfo(
            mapEntryCount=len(spec),
            pMapEntries=ctypes.addressof(entries),
            dataSize=4 * len(spec),
            pData=ctypes.addressof(values),
        )
        name = ctypes.create_string_buffer(b"main")
        stage = s.PipelineShaderStageCreateInfo(
            flags=FULL_SUBGROUPS if full else 0,
            stage=COMPUTE_STAGE,
            module=module,
            pName=ctypes.addressof(name),
            pSpecializationInfo=ctypes.addressof(special) if spec else None,
        )
        info = s.ComputePipelineCreateInfo(flags=self.pipeline_flags, stage=stage, layout=layout, basePipelineIndex=-1)
        out = ctypes.c_uint64()
        result = self.fns.CreateComputePipelines(self.handle, cache, 1, ctypes.byref(info), None, ctypes.byref(out))
        self.destroy("ShaderModule", module)
        vk.check(result, "vkCreateComputePipelines")
        return out.value

    def create_descriptor_pool(self, sets: int, buffers: int) -> int:
        size = s.DescriptorPoolSize(type=STORAGE_BUFFER, descriptorCount=buffers)
        info = s.DescriptorPoolCreateInfo(
            flags=1,
            maxSets=sets,
            poolSizeCount=1,
            pPoolSizes=ctypes.addressof(size),  # flag 1: sets can be freed
        )
        return self.create("CreateDescriptorPool", info)

    def free_set(self, pool: int, descriptor_set: int) -> None:
        sets = (ctypes.c_uint64 * 1)(descriptor_set)
        self.fns.FreeDescriptorSets(self.handle, pool, 1, sets)

    # Synchronisation and queries

    def create_timeline(self, *, export: bool = False) -> int:
        """A timeline semaphore at 0; with `export`, one that other logical devices of the GPU can be handed."""
        outside = s.ExportSemaphoreCreateInfo(handleTypes=OPAQUE_FD)
        kind = s.SemaphoreTypeCreateInfo(semaphoreType=1, pNext=ctypes.addressof(outside) if export else None)
        return self.create("CreateSemaphore", s.SemaphoreCreateInfo(pNext=ctypes.addressof(kind)))

    def timeline_value(self, semaphore: int) -> int:
        out = ctypes.c_uint64()
        with self.one_waiter or nullcontext():
            call = self.fns.GetSemaphoreCounterValue(self.handle, semaphore, ctypes.byref(out))
        vk.check(call, "vkGetSemaphoreCounterValue")
        return out.value

    def signal_timeline(self, semaphore: int, value: int) -> None:
        """The host's signal: the timeline has `value` from now on."""
        info = s.SemaphoreSignalInfo(semaphore=semaphore, value=value)
        with self.one_waiter or nullcontext():
            vk.check(self.fns.SignalSemaphore(self.handle, ctypes.byref(info)), "vkSignalSemaphore")

    def create_query_pool(self, count: int) -> int:
        return self.create("CreateQueryPool", s.QueryPoolCreateInfo(queryType=2, queryCount=count))

    def query_results(self, pool: int, count: int) -> list[int]:
        """Timestamps, waiting for them to be there."""
        out = (ctypes.c_uint64 * count)()
        result = self.fns.GetQueryPoolResults(self.handle, pool, 0, count, 8 * count, out, 8, 0x3)
        vk.check(result, "vkGetQueryPoolResults")
        return list(out)

    def set_name(self, object_type: int, handle: int, name: str) -> None:
        """A debug name, shown by validation layers and profilers, where debug utilities are loaded."""
        if "vkSetDebugUtilsObjectNameEXT" in self.fns.names:
            text = ctypes.create_string_buffer(name.encode())
            info = s.DebugUtilsObjectNameInfoEXT(
                objectType=object_type, objectHandle=handle, pObjectName=ctypes.addressof(text)
            )
            self.fns.SetDebugUtilsObjectNameEXT(self.handle, ctypes.byref(info))
