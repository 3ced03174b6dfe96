"""The Vulkan loader and its functions, through ctypes. Only files named `_vk*` touch Vulkan.

Ours rather than a package: the one on PyPI costs four times more per recorded call and lacks what is newer than 1.3.
Functions are typed by short signatures: p pointer or dispatchable handle, u uint32, U uint64 or other handle,
i int32, z size_t, s C string; the first letter is the result (v none, r VkResult, p pointer).
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Final

from dashi.errors import (
    ClosedError,
    DashiError,
    DeviceLostError,
    LoaderNotFoundError,
    OutOfMemoryError,
    VulkanError,
)

_LETTERS: Final[dict[str, Any]] = {
    "p": ctypes.c_void_p,
    "u": ctypes.c_uint32,
    "U": ctypes.c_uint64,
    "i": ctypes.c_int32,
    "z": ctypes.c_size_t,
    "s": ctypes.c_char_p,
    "r": ctypes.c_int32,
    "v": None,
}

GLOBAL: Final = {
    "vkEnumerateInstanceVersion": "rp",
    "vkEnumerateInstanceExtensionProperties": "rspp",
    "vkEnumerateInstanceLayerProperties": "rpp",
    "vkCreateInstance": "rppp",
}
INSTANCE: Final = {
    "vkDestroyInstance": "vpp",
    "vkEnumeratePhysicalDevices": "rppp",
    "vkGetPhysicalDeviceProperties2": "vpp",
    "vkGetPhysicalDeviceFeatures2": "vpp",
    "vkGetPhysicalDeviceMemoryProperties2": "vpp",
    "vkGetPhysicalDeviceQueueFamilyProperties": "vppp",
    "vkGetPhysicalDeviceExternalSemaphoreProperties": "vppp",
    "vkGetPhysicalDeviceExternalBufferProperties": "vppp",
    "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT": "rppp",
    "vkEnumerateDeviceExtensionProperties": "rpspp",
    "vkCreateDevice": "rpppp",
    "vkGetDeviceProcAddr": "pps",
}
DEBUG_UTILS: Final = {
    "vkCreateDebugUtilsMessengerEXT": "rpppp",
    "vkDestroyDebugUtilsMessengerEXT": "vpUp",
}
DEVICE: Final = {
    "vkDestroyDevice": "vpp",
    "vkGetDeviceQueue": "vpuup",
    "vkDeviceWaitIdle": "rp",
    "vkAllocateMemory": "rpppp",
    "vkFreeMemory": "vpUp",
    "vkMapMemory": "rpUUUup",
    "vkFlushMappedMemoryRanges": "rpup",
    "vkInvalidateMappedMemoryRanges": "rpup",
    "vkCreateBuffer": "rpppp",
    "vkDestroyBuffer": "vpUp",
    "vkGetBufferMemoryRequirements": "vpUp",
    "vkBindBufferMemory": "rpUUU",
    "vkCreateShaderModule": "rpppp",
    "vkDestroyShaderModule": "vpUp",
    "vkCreatePipelineCache": "rpppp",
    "vkGetPipelineCacheData": "rpUpp",
    "vkDestroyPipelineCache": "vpUp",
    "vkCreateDescriptorSetLayout": "rpppp",
    "vkDestroyDescriptorSetLayout": "vpUp",
    "vkCreatePipelineLayout": "rpppp",
    "vkDestroyPipelineLayout": "vpUp",
    "vkCreateComputePipelines": "rpUuppp",
    "vkDestroyPipeline": "vpUp",
    "vkCreateDescriptorPool": "rpppp",
    "vkDestroyDescriptorPool": "vpUp",
    "vkAllocateDescriptorSets": "rppp",
    "vkFreeDescriptorSets": "rpUup",
    "vkUpdateDescriptorSets": "vpupup",
    "vkCreateCommandPool": "rpppp",
    "vkDestroyCommandPool": "vpUp",
    "vkResetCommandPool": "rpUu",
    "vkAllocateCommandBuffers": "rppp",
    "vkBeginCommandBuffer": "rpp",
    "vkEndCommandBuffer": "rp",
    "vkCreateQueryPool": "rpppp",
    "vkDestroyQueryPool": "vpUp",
    "vkGetQueryPoolResults": "rpUuuzpUu",
    "vkCreateSemaphore": "rpppp",
    "vkDestroySemaphore": "vpUp",
    "vkGetSemaphoreCounterValue": "rpUp",
    "vkWaitSemaphores": "rppU",
    "vkSignalSemaphore": "rpp",
    "vkGetSemaphoreFdKHR": "rppp",
    "vkImportSemaphoreFdKHR": "rpp",
    "vkGetMemoryFdKHR": "rppp",
    "vkGetMemoryHostPointerPropertiesEXT": "rpupp",
    "vkGetCalibratedTimestampsEXT": "rpuppp",
    "vkQueueSubmit": "rpupU",
}
RECORD: Final = {
    "vkCmdBindPipeline": "vpuU",
    "vkCmdBindDescriptorSets": "vpuUuupup",
    "vkCmdPushConstants": "vpUuuup",
    "vkCmdDispatch": "vpuuu",
    "vkCmdDispatchBase": "vpuuuuuu",
    "vkCmdPipelineBarrier": "vpuuuupupup",
    "vkCmdCopyBuffer": "vpUUup",
    "vkCmdFillBuffer": "vpUUUu",
    "vkCmdResetQueryPool": "vpUuu",
    "vkCmdWriteTimestamp": "vpuUu",
}
DEBUG_DEVICE: Final = {
    "vkSetDebugUtilsObjectNameEXT": "rpp",
    "vkCmdBeginDebugUtilsLabelEXT": "vpp",
    "vkCmdEndDebugUtilsLabelEXT": "vp",
}

_RESULTS: Final = {
    -3: "VK_ERROR_INITIALIZATION_FAILED",
    -5: "VK_ERROR_MEMORY_MAP_FAILED",
    -6: "VK_ERROR_LAYER_NOT_PRESENT",
    -7: "VK_ERROR_EXTENSION_NOT_PRESENT",
    -8: "VK_ERROR_FEATURE_NOT_PRESENT",
    -9: "VK_ERROR_INCOMPATIBLE_DRIVER",
    -10: "VK_ERROR_TOO_MANY_OBJECTS",
    -12: "VK_ERROR_FRAGMENTED_POOL",
    -13: "VK_ERROR_UNKNOWN",
    -1000069000: "VK_ERROR_OUT_OF_POOL_MEMORY",
}
TIMEOUT: Final = 2
INCOMPLETE: Final = 5
OUT_OF_HOST_MEMORY: Final = -1
OUT_OF_DEVICE_MEMORY: Final = -2


def error(result: int, call: str) -> DashiError:
    """The typed error for a negative VkResult."""
    if result in (OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY):
        where = "host" if result == OUT_OF_HOST_MEMORY else "device"
        return OutOfMemoryError(
            f"{call} found no {where} memory left.",
            "close arrays that are no longer needed, use smaller ones, or choose a device with more memory.",
        )
    if result == -4:
        return DeviceLostError(
            f"{call} reports that the device was lost; every array and program on it is gone.",
            "close the device and open it again; if it recurs, submit less work at a time or update the driver.",
        )
    return VulkanError(
        f"{call} failed with {_RESULTS.get(result, f'VkResult {result}')}.",
        "run `dashi doctor` to see what the driver offers.",
    )


def check(result: int, call: str) -> int:
    """The result itself, or a typed error if it is negative."""
    if result < 0:
        raise error(result, call)
    return result


class Functions:
    """Vulkan functions as attributes without the `vk` prefix (`fns.CmdDispatch`)."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.closed = False

    def close(self) -> None:
        """Forgets all functions: what they would be called with is gone."""
        for name in self.names:
            delattr(self, name.removeprefix("vk"))
        self.names.clear()
        self.closed = True

    def add(self, name: str, signature: str, address: int | None, *, keep_gil: bool = False) -> None:
        """Make `address` callable; a missing function stays absent."""
        if not address:
            return
        # Recording calls are short: giving up the interpreter lock for them costs more than they do.
        factory: Any = ctypes.PYFUNCTYPE if keep_gil else ctypes.CFUNCTYPE
        kinds = [_LETTERS[letter] for letter in signature]
        setattr(self, name.removeprefix("vk"), factory(kinds[0], *kinds[1:])(address))
        self.names.add(name)

    def __getattr__(self, name: str) -> Any:
        if self.closed:
            raise ClosedError(f"vk{name} cannot be called: the device is closed.", "close the device later.")
        raise VulkanError(f"this driver has no vk{name}.", "run `dashi doctor` to see what the driver offers.")


def _candidates() -> list[str]:
    chosen = os.environ.get("DASHI_VULKAN_LOADER")
    if chosen:
        return [chosen]
    if sys.platform == "darwin":
        return ["libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib", "/opt/homebrew/lib/libvulkan.1.dylib"]
    if sys.platform == "win32":
        return ["vulkan-1.dll"]
    return ["libvulkan.so.1", "libvulkan.so"]


def load_loader() -> tuple[Any, str]:
    """The Vulkan loader library and the name it was found under."""
    tried = _candidates()
    for name in tried:
        try:
            return ctypes.CDLL(name), name
        except OSError:
            continue
    raise LoaderNotFoundError(
        f"no Vulkan loader was found (tried {', '.join(tried)}).",
        'install one (Debian: apt-get install libvulkan1 mesa-vulkan-drivers), or use `device="cpu"`.',
    )


def skip_exit_handlers() -> None:
    """From now on this process ends, with the status that it was to end with, before the handlers that drivers
    registered until now: in a forked child those join threads that only its parent has, and crash or wait for ever. C
    libraries other than glibc do not offer it."""
    try:
        libc = ctypes.CDLL(None)
        # on_exit calls its handler with the status first, which is all that _exit takes.
        libc.on_exit(libc._exit, None)
    except (OSError, AttributeError, TypeError):  # TypeError: Windows, which does not fork
        return


def global_functions(library: Any) -> Functions:
    """Functions that need no instance."""
    fns = Functions()
    get = library.vkGetInstanceProcAddr
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
    fns.add("vkGetInstanceProcAddr", "pps", ctypes.cast(get, ctypes.c_void_p).value)
    for name, signature in GLOBAL.items():
        fns.add(name, signature, get(None, name.encode()))
    return fns


def instance_functions(base: Functions, instance: int, *, debug: bool) -> Functions:
    """Functions of one instance."""
    fns = Functions()
    for name, signature in {**INSTANCE, **(DEBUG_UTILS if debug else {})}.items():
        fns.add(name, signature, base.GetInstanceProcAddr(instance, name.encode()))
    return fns


def device_functions(base: Functions, device: int, *, debug: bool) -> Functions:
    """Functions of one logical device, resolved past the loader's trampolines."""
    fns = Functions()
    for name, signature in {**DEVICE, **(DEBUG_DEVICE if debug else {})}.items():
        fns.add(name, signature, base.GetDeviceProcAddr(device, name.encode()))
    for name, signature in RECORD.items():
        fns.add(name, signature, base.GetDeviceProcAddr(device, name.encode()), keep_gil=True)
    return fns
