"""Raw calls for instances and physical devices: ints and plain data in and out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from dashi.kernels.abi import Limits
from dashi.kernels.spirv._float_controls import FloatControls, Independence
from dashi.runtime import _vk as vk
from dashi.runtime import _vk_structs as s
from dashi.runtime.info import DeviceInfo, DeviceType, Heap, MemoryType, QueueFamily

_NEWEST: Final = (1 << 22) | (3 << 12)  # the newest Vulkan whose structs we pass
VALIDATION_LAYER: Final = "VK_LAYER_KHRONOS_validation"
_SYNC_VALIDATION: Final = 4
_TYPES: Final[dict[int, DeviceType]] = {0: "other", 1: "integrated", 2: "discrete", 3: "virtual", 4: "software"}
_INDEPENDENCE: Final[dict[int, Independence]] = {0: "32", 1: "all", 2: "none"}
_MESSENGER: Final = ctypes.CFUNCTYPE(
    ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p
)


def version_text(version: int) -> str:
    """A packed Vulkan version as "1.3.239"."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"


def _listed(call: Callable[..., int], kind: Any, *before: Any) -> Any:
    """The two-call idiom: ask how many, then fetch."""
    count = ctypes.c_uint32()
    while True:
        call(*before, ctypes.byref(count), None)
        items = (kind * count.value)()
        if call(*before, ctypes.byref(count), items) != vk.INCOMPLETE:
            return items[: count.value]


def strings(texts: Sequence[str]) -> Any:
    """A C array of C strings."""
    return (ctypes.c_char_p * len(texts))(*[t.encode() for t in texts])


def loader_version(base: vk.Functions) -> int:
    version = ctypes.c_uint32()
    base.EnumerateInstanceVersion(ctypes.byref(version))
    return version.value


def layer_names(base: vk.Functions) -> list[str]:
    return [p.layerName.decode() for p in _listed(base.EnumerateInstanceLayerProperties, s.LayerProperties)]


def extension_names(base: vk.Functions, layer: str | None = None) -> list[str]:
    properties = _listed(base.EnumerateInstanceExtensionProperties, s.ExtensionProperties, layer and layer.encode())
    return [p.extensionName.decode() for p in properties]


def create_instance(base: vk.Functions, extensions: Sequence[str], layers: Sequence[str], flags: int) -> int:
    """A VkInstance for Vulkan up to 1.3; with the validation layer, synchronisation validation is on."""
    engine = ctypes.create_string_buffer(b"dashi")
    version = min(loader_version(base), _NEWEST)
    app = s.ApplicationInfo(pEngineName=ctypes.addressof(engine), apiVersion=version)
    wanted = (ctypes.c_uint32 * 1)(_SYNC_VALIDATION)
    validation = s.ValidationFeaturesEXT(
        enabledValidationFeatureCount=1, pEnabledValidationFeatures=ctypes.addressof(wanted)
    )
    names, layer_list = strings(extensions), strings(layers)
    info = s.InstanceCreateInfo(
        pNext=ctypes.addressof(validation) if VALIDATION_LAYER in layers else None,
        flags=flags,
        pApplicationInfo=ctypes.addressof(app),
        enabledLayerCount=len(layers),
        ppEnabledLayerNames=ctypes.addressof(layer_list),
        enabledExtensionCount=len(extensions),
        ppEnabledExtensionNames=ctypes.addressof(names),
    )
    handle = ctypes.c_void_p()
    vk.check(base.CreateInstance(ctypes.byref(info), None, ctypes.byref(handle)), "vkCreateInstance")
    assert handle.value is not None
    return handle.value


def create_messenger(fns: vk.Functions, instance: int, receive: Callable[[str], None]) -> tuple[int, Any]:
    """Sends warnings and errors of the validation layers to `receive`. Keep the second value alive."""

    def relay(_severity: int, _kind: int, data: int, _user: int) -> int:
        text: int = s.DebugUtilsMessengerCallbackDataEXT.from_address(data).pMessage
        receive(ctypes.string_at(text).decode(errors="replace"))
        return 0

    callback = _MESSENGER(relay)
    info = s.DebugUtilsMessengerCreateInfoEXT(
        messageSeverity=0x1100, messageType=0x7, pfnUserCallback=ctypes.cast(callback, ctypes.c_void_p)
    )
    handle = ctypes.c_uint64()
    result = fns.CreateDebugUtilsMessengerEXT(instance, ctypes.byref(info), None, ctypes.byref(handle))
    vk.check(result, "vkCreateDebugUtilsMessengerEXT")
    return handle.value, callback


def physical_devices(fns: vk.Functions, instance: int) -> list[int]:
    """Handles of all physical devices."""
    return [int(h) for h in _listed(fns.EnumeratePhysicalDevices, ctypes.c_void_p, instance) if h]


def _chain(*structs: Any) -> Any:
    """Links structs through pNext; returns the first."""
    for this, following in pairwise(structs):
        this.pNext = ctypes.addressof(following)
    return structs[0]


def _api_version(fns: vk.Functions, physical: int) -> int:
    properties = s.PhysicalDeviceProperties2()
    fns.GetPhysicalDeviceProperties2(physical, ctypes.byref(properties))
    return properties.properties.apiVersion


def feature_structs(fns: vk.Functions, physical: int, extensions: frozenset[str]) -> dict[str, Any]:
    """The feature structs of this device, linked; passing the first to vkCreateDevice enables what they hold."""
    structs: dict[str, Any] = {
        "core": s.PhysicalDeviceFeatures2(),
        "v11": s.PhysicalDeviceVulkan11Features(),
        "v12": s.PhysicalDeviceVulkan12Features(),
    }
    if _api_version(fns, physical) >= _NEWEST:
        structs["v13"] = s.PhysicalDeviceVulkan13Features()
    if "VK_EXT_shader_atomic_float" in extensions:
        structs["atomic_float"] = s.PhysicalDeviceShaderAtomicFloatFeaturesEXT()
    if "VK_KHR_cooperative_matrix" in extensions:
        structs["coop"] = s.PhysicalDeviceCooperativeMatrixFeaturesKHR()
    fns.GetPhysicalDeviceFeatures2(physical, ctypes.byref(_chain(*structs.values())))
    return structs


def feature_names(structs: dict[str, Any], extensions: frozenset[str], subgroup: Any) -> frozenset[str]:
    """dashi's names of the features that a device offers; `subgroup` holds its subgroup properties."""
    in_compute = bool(subgroup.supportedStages & 0x20)
    core, v11, v12 = structs["core"].features, structs["v11"], structs["v12"]
    v13, atomic, coop = (structs.get(name) for name in ("v13", "atomic_float", "coop"))
    offered = {
        "fp64": core.shaderFloat64,
        "int64": core.shaderInt64,
        "int16": core.shaderInt16,
        "fp16": v12.shaderFloat16 and v11.storageBuffer16BitAccess,
        "int8": v12.shaderInt8 and v12.storageBuffer8BitAccess,
        "atomics_int64": v12.shaderBufferInt64Atomics,
        "atomics_float": atomic is not None and atomic.shaderBufferFloat32AtomicAdd,
        "memory_model": v12.vulkanMemoryModel and v12.vulkanMemoryModelDeviceScope,
        "timeline": v12.timelineSemaphore,
        "subgroup": in_compute,
        # Quads are worth nothing to us unless subgroups are whole.
        "subgroup_quad": in_compute
        and subgroup.supportedOperations & 0x80
        and v13 is not None
        and v13.computeFullSubgroups,
        "subgroup_size_control": v13 is not None and v13.subgroupSizeControl,
        "coop_matrix": coop is not None and coop.cooperativeMatrix,
        "host_import": "VK_EXT_external_memory_host" in extensions,
        "external_fd": "VK_KHR_external_memory_fd" in extensions,
    }
    return frozenset(name for name, there in offered.items() if there)


def _memory(fns: vk.Functions, physical: int) -> tuple[tuple[Heap, ...], tuple[MemoryType, ...]]:
    properties = s.PhysicalDeviceMemoryProperties2()
    fns.GetPhysicalDeviceMemoryProperties2(physical, ctypes.byref(properties))
    memory = properties.memoryProperties
    heaps = tuple(Heap(h.size, bool(h.flags & 1)) for h in memory.memoryHeaps[: memory.memoryHeapCount])
    types = tuple(
        MemoryType(t.heapIndex, *(bool(t.propertyFlags & bit) for bit in (1, 2, 4, 8)))
        for t in memory.memoryTypes[: memory.memoryTypeCount]
    )
    return heaps, types


def _queues(fns: vk.Functions, physical: int) -> tuple[QueueFamily, ...]:
    families = _listed(fns.GetPhysicalDeviceQueueFamilyProperties, s.QueueFamilyProperties, physical)
    # Compute and graphics families can always transfer, whether they say so or not (Vulkan 1.3, 6.1).
    return tuple(
        QueueFamily(
            f.queueCount, bool(f.queueFlags & 2), bool(f.queueFlags & 7), bool(f.queueFlags & 1), f.timestampValidBits
        )
        for f in families
    )


def _float_controls(properties: Any) -> FloatControls:
    def widths(name: str) -> tuple[int, ...]:
        return tuple(width for width in (16, 32, 64) if getattr(properties, f"{name}Float{width}"))

    independence = _INDEPENDENCE.get(properties.roundingModeIndependence, "none")
    return FloatControls(widths("shaderRoundingModeRTE"), widths("shaderSignedZeroInfNanPreserve"), independence)


def describe(fns: vk.Functions, physical: int, index: int) -> DeviceInfo:
    """Everything that dashi wants to know of a physical device."""
    names = _listed(fns.EnumerateDeviceExtensionProperties, s.ExtensionProperties, physical, None)
    extensions = frozenset(p.extensionName.decode() for p in names)
    driver, ids, subgroup = (
        s.PhysicalDeviceDriverProperties(),
        s.PhysicalDeviceIDProperties(),
        s.PhysicalDeviceSubgroupProperties(),
    )
    floats, allocation = s.PhysicalDeviceFloatControlsProperties(), s.PhysicalDeviceMaintenance3Properties()
    query = _chain(s.PhysicalDeviceProperties2(), driver, ids, subgroup, floats, allocation)
    fns.GetPhysicalDeviceProperties2(physical, ctypes.byref(query))
    properties, limits = query.properties, query.properties.limits
    heaps, memory_types = _memory(fns, physical)
    structs = feature_structs(fns, physical, extensions)
    return DeviceInfo(
        spec=f"vulkan:{index}",
        name=properties.deviceName.decode(errors="replace"),
        type=_TYPES.get(properties.deviceType, "other"),
        driver=driver.driverName.decode(errors="replace"),
        driver_info=driver.driverInfo.decode(errors="replace"),
        driver_version=version_text(properties.driverVersion),
        api_version=version_text(properties.apiVersion),
        vendor_id=properties.vendorID,
        device_id=properties.deviceID,
        uuid=bytes(properties.pipelineCacheUUID).hex(),
        features=feature_names(structs, extensions, subgroup),
        extensions=extensions,
        limits=Limits(
            groups=limits.maxComputeWorkGroupCount[0],
            invocations=limits.maxComputeWorkGroupInvocations,
            shared_bytes=limits.maxComputeSharedMemorySize,
            storage_range=limits.maxStorageBufferRange,
            storage_buffers=min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers),
            push_bytes=limits.maxPushConstantsSize,
            offset_alignment=limits.minStorageBufferOffsetAlignment,
            software=_TYPES.get(properties.deviceType) == "software",
        ),
        subgroup_size=subgroup.subgroupSize,
        timestamp_ns=limits.timestampPeriod,
        max_allocation=allocation.maxMemoryAllocationSize,
        non_coherent_atom=limits.nonCoherentAtomSize,
        heaps=heaps,
        memory_types=memory_types,
        queues=_queues(fns, physical),
        denormals={
            "preserve_fp32": bool(floats.shaderDenormPreserveFloat32),
            "flush_fp32": bool(floats.shaderDenormFlushToZeroFloat32),
            "preserve_fp64": bool(floats.shaderDenormPreserveFloat64),
            "flush_fp64": bool(floats.shaderDenormFlushToZeroFloat64),
        },
        float_controls=_float_controls(floats),
    )
