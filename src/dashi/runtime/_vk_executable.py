"""Raw calls for what a driver's compiler made of a pipeline (VK_KHR_pipeline_executable_properties)."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from dashi.errors import VulkanError
from dashi.runtime import _vk as vk
from dashi.runtime import _vk_instance as raw_instance
from dashi.runtime import _vk_structs as s
from dashi.runtime._vk_device import DISPATCH_BASE, RawDevice, RawPipeline

EXTENSION: Final = "VK_KHR_pipeline_executable_properties"
CAPTURE: Final = 0x80
_FUNCTIONS: Final = {
    "vkGetPipelineExecutablePropertiesKHR": "rpppp",
    "vkGetPipelineExecutableInternalRepresentationsKHR": "rpppp",
}

_Features = s.struct(
    "PhysicalDevicePipelineExecutablePropertiesFeaturesKHR",
    1000269000,
    """
    pipelineExecutableInfo:u32
""",
)
_PipelineInfo = s.struct(
    "PipelineInfoKHR",
    1000269001,
    """
    pipeline:u64
""",
)
_Properties = s.struct(
    "PipelineExecutablePropertiesKHR",
    1000269002,
    """
    stages:u32 name:char[256] description:char[256] subgroupSize:u32
""",
)
_ExecutableInfo = s.struct(
    "PipelineExecutableInfoKHR",
    1000269003,
    """
    pipeline:u64 executableIndex:u32
""",
)
_Representation = s.struct(
    "PipelineExecutableInternalRepresentationKHR",
    1000269005,
    """
    name:char[256] description:char[256] isText:u32 dataSize:size pData:p
""",
)


class InspectedDevice(RawDevice):
    """A VkDevice whose pipelines keep the text of what they were compiled to. It runs nothing."""

    pipeline_flags = DISPATCH_BASE | CAPTURE

    def representations(self, pipeline: RawPipeline) -> dict[str, str]:
        """Every text that the driver has of a pipeline, by the driver's name for it; the last is the machine code."""
        texts: dict[str, str] = {}
        info, count = _PipelineInfo(pipeline=pipeline.pipeline), ctypes.c_uint32()
        call = self.fns.GetPipelineExecutablePropertiesKHR
        vk.check(call(self.handle, ctypes.byref(info), ctypes.byref(count), None), "vkGetPipelineExecutableProperties")
        for index in range(count.value):
            texts |= self._texts(_ExecutableInfo(pipeline=pipeline.pipeline, executableIndex=index))
        return texts

    def _texts(self, info: Any) -> dict[str, str]:
        call, count = self.fns.GetPipelineExecutableInternalRepresentationsKHR, ctypes.c_uint32()

        def fetch(items: Any) -> None:
            result = call(self.handle, ctypes.byref(info), ctypes.byref(count), items)
            vk.check(result, "vkGetPipelineExecutableInternalRepresentations")

        fetch(None)
        items = (_Representation * count.value)(*(_Representation() for _ in range(count.value)))
        fetch(items)
        buffers = [ctypes.create_string_buffer(item.dataSize + 1) for item in items]
        for item, buffer in zip(items, buffers, strict=True):
            item.pData = ctypes.addressof(buffer)
        fetch(items)
        return {
            item.name.decode(errors="replace"): buffer.value.decode(errors="replace")
            for item, buffer in zip(items, buffers, strict=True)
            if item.isText
        }


def create_inspected_device(
    fns: vk.Functions, physical: int, extensions: frozenset[str], family: int
) -> InspectedDevice:
    """A VkDevice with every feature that dashi knows, one queue, and pipelines that can be looked into."""
    if EXTENSION not in extensions:
        raise VulkanError(f"this driver has no {EXTENSION}.", "choose another driver: Mesa's have it.")
    priority = (ctypes.c_float * 1)(1.0)
    queue = s.DeviceQueueCreateInfo(queueFamilyIndex=family, queueCount=1, pQueuePriorities=ctypes.addressof(priority))
    structs = raw_instance.feature_structs(fns, physical, extensions)
    structs["core"].features.robustBufferAccess = 0
    first = _Features(pNext=ctypes.addressof(structs["core"]), pipelineExecutableInfo=1)
    optional = ("VK_EXT_shader_atomic_float", "VK_KHR_cooperative_matrix")
    enabled = [EXTENSION, *(name for name in optional if name in extensions)]
    names = raw_instance.strings(enabled)
    info = s.DeviceCreateInfo(
        pNext=ctypes.addressof(first),
        queueCreateInfoCount=1,
        pQueueCreateInfos=ctypes.addressof(queue),
        enabledExtensionCount=len(enabled),
        ppEnabledExtensionNames=ctypes.addressof(names),
    )
    handle = ctypes.c_void_p()
    vk.check(fns.CreateDevice(physical, ctypes.byref(info), None, ctypes.byref(handle)), "vkCreateDevice")
    assert handle.value is not None
    device = vk.device_functions(fns, handle.value, debug=False)
    for name, signature in _FUNCTIONS.items():
        device.add(name, signature, fns.GetDeviceProcAddr(handle.value, name.encode()))
    return InspectedDevice(device, handle.value, [family])
