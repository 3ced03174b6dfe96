"""The Vulkan structs that dashi uses, as ctypes: each is one line of `field:type` pairs in the order of the registry.

Written as text because it is shorter, diffs well, and leaves one place (`struct`) that knows ctypes. Structs with an
`sType` get it, and `pNext`, by themselves.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any, Final

_SCALARS: Final[dict[str, Any]] = {
    "u8": ctypes.c_uint8,
    "u32": ctypes.c_uint32,
    "i32": ctypes.c_int32,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "p": ctypes.c_void_p,
    "size": ctypes.c_size_t,
    "char": ctypes.c_char,
}
_KNOWN: Final[dict[str, Any]] = dict(_SCALARS)


class _Struct(ctypes.Structure):
    """A ctypes struct that fills in its own `sType`."""

    STYPE: int | None = None

    def __init__(self, **fields: Any) -> None:
        if self.STYPE is not None:
            fields.setdefault("sType", self.STYPE)
        super().__init__(**fields)


def _field(text: str) -> tuple[str, Any]:
    name, kind = text.split(":")
    member = _KNOWN[kind.partition("[")[0]]
    for length in reversed(re.findall(r"\[(\d+)\]", kind)):
        member = member * int(length)
    return name, member


def struct(name: str, stype: int | None, fields: str) -> Any:
    """A ctypes struct class from its field list."""
    head = ["sType:u32", "pNext:p"] if stype is not None else []
    members = [_field(text) for text in (*head, *fields.split())]
    struct_type = type(name, (_Struct,), {"_fields_": members, "STYPE": stype})
    _KNOWN[name] = struct_type
    return struct_type


ExtensionProperties = struct("ExtensionProperties", None, """
    extensionName:char[256] specVersion:u32
""")
LayerProperties = struct("LayerProperties", None, """
    layerName:char[256] specVersion:u32 implementationVersion:u32 description:char[256]
""")
ApplicationInfo = struct("ApplicationInfo", 0, """
    pApplicationName:p applicationVersion:u32 pEngineName:p engineVersion:u32 apiVersion:u32
""")
InstanceCreateInfo = struct("InstanceCreateInfo", 1, """
    flags:u32 pApplicationInfo:p enabledLayerCount:u32 ppEnabledLayerNames:p enabledExtensionCount:u32
    ppEnabledExtensionNames:p
""")
ValidationFeaturesEXT = struct("ValidationFeaturesEXT", 1000247000, """
    enabledValidationFeatureCount:u32 pEnabledValidationFeatures:p disabledValidationFeatureCount:u32
    pDisabledValidationFeatures:p
""")
DebugUtilsMessengerCreateInfoEXT = struct("DebugUtilsMessengerCreateInfoEXT", 1000128004, """
    flags:u32 messageSeverity:u32 messageType:u32 pfnUserCallback:p pUserData:p
""")
DebugUtilsMessengerCallbackDataEXT = struct("DebugUtilsMessengerCallbackDataEXT", 1000128003, """
    flags:u32 pMessageIdName:p messageIdNumber:i32 pMessage:p queueLabelCount:u32 pQueueLabels:p
    cmdBufLabelCount:u32 pCmdBufLabels:p objectCount:u32 pObjects:p
""")
DebugUtilsObjectNameInfoEXT = struct("DebugUtilsObjectNameInfoEXT", 1000128000, """
    objectType:u32 objectHandle:u64 pObjectName:p
""")
DebugUtilsLabelEXT = struct("DebugUtilsLabelEXT", 1000128002, """
    pLabelName:p color:f32[4]
""")
PhysicalDeviceLimits = struct("PhysicalDeviceLimits", None, """
    maxImageDimension1D:u32 maxImageDimension2D:u32 maxImageDimension3D:u32 maxImageDimensionCube:u32
    maxImageArrayLayers:u32 maxTexelBufferElements:u32 maxUniformBufferRange:u32 maxStorageBufferRange:u32
    maxPushConstantsSize:u32 maxMemoryAllocationCount:u32 maxSamplerAllocationCount:u32 bufferImageGranularity:u64
    sparseAddressSpaceSize:u64 maxBoundDescriptorSets:u32 maxPerStageDescriptorSamplers:u32
    maxPerStageDescriptorUniformBuffers:u32 maxPerStageDescriptorStorageBuffers:u32
    maxPerStageDescriptorSampledImages:u32 maxPerStageDescriptorStorageImages:u32
    maxPerStageDescriptorInputAttachments:u32 maxPerStageResources:u32 maxDescriptorSetSamplers:u32
    maxDescriptorSetUniformBuffers:u32 maxDescriptorSetUniformBuffersDynamic:u32 maxDescriptorSetStorageBuffers:u32
    maxDescriptorSetStorageBuffersDynamic:u32 maxDescriptorSetSampledImages:u32 maxDescriptorSetStorageImages:u32
    maxDescriptorSetInputAttachments:u32 maxVertexInputAttributes:u32 maxVertexInputBindings:u32
    maxVertexInputAttributeOffset:u32 maxVertexInputBindingStride:u32 maxVertexOutputComponents:u32
    maxTessellationGenerationLevel:u32 maxTessellationPatchSize:u32
    maxTessellationControlPerVertexInputComponents:u32 maxTessellationControlPerVertexOutputComponents:u32
    maxTessellationControlPerPatchOutputComponents:u32 maxTessellationControlTotalOutputComponents:u32
    maxTessellationEvaluationInputComponents:u32 maxTessellationEvaluationOutputComponents:u32
    maxGeometryShaderInvocations:u32 maxGeometryInputComponents:u32 maxGeometryOutputComponents:u32
    maxGeometryOutputVertices:u32 maxGeometryTotalOutputComponents:u32 maxFragmentInputComponents:u32
    maxFragmentOutputAttachments:u32 maxFragmentDualSrcAttachments:u32 maxFragmentCombinedOutputResources:u32
    maxComputeSharedMemorySize:u32 maxComputeWorkGroupCount:u32[3] maxComputeWorkGroupInvocations:u32
    maxComputeWorkGroupSize:u32[3] subPixelPrecisionBits:u32 subTexelPrecisionBits:u32 mipmapPrecisionBits:u32
    maxDrawIndexedIndexValue:u32 maxDrawIndirectCount:u32 maxSamplerLodBias:f32 maxSamplerAnisotropy:f32
    maxViewports:u32 maxViewportDimensions:u32[2] viewportBoundsRange:f32[2] viewportSubPixelBits:u32
    minMemoryMapAlignment:size minTexelBufferOffsetAlignment:u64 minUniformBufferOffsetAlignment:u64
    minStorageBufferOffsetAlignment:u64 minTexelOffset:i32 maxTexelOffset:u32 minTexelGatherOffset:i32
    maxTexelGatherOffset:u32 minInterpolationOffset:f32 maxInterpolationOffset:f32
    subPixelInterpolationOffsetBits:u32 maxFramebufferWidth:u32 maxFramebufferHeight:u32 maxFramebufferLayers:u32
    framebufferColorSampleCounts:u32 framebufferDepthSampleCounts:u32 framebufferStencilSampleCounts:u32
    framebufferNoAttachmentsSampleCounts:u32 maxColorAttachments:u32 sampledImageColorSampleCounts:u32
    sampledImageIntegerSampleCounts:u32 sampledImageDepthSampleCounts:u32 sampledImageStencilSampleCounts:u32
    storageImageSampleCounts:u32 maxSampleMaskWords:u32 timestampComputeAndGraphics:u32 timestampPeriod:f32
    maxClipDistances:u32 maxCullDistances:u32 maxCombinedClipAndCullDistances:u32 discreteQueuePriorities:u32
    pointSizeRange:f32[2] lineWidthRange:f32[2] pointSizeGranularity:f32 lineWidthGranularity:f32 strictLines:u32
    standardSampleLocations:u32 optimalBufferCopyOffsetAlignment:u64 optimalBufferCopyRowPitchAlignment:u64
    nonCoherentAtomSize:u64
""")
PhysicalDeviceSparseProperties = struct("PhysicalDeviceSparseProperties", None, """
    residencyStandard2DBlockShape:u32 residencyStandard2DMultisampleBlockShape:u32 residencyStandard3DBlockShape:u32
    residencyAlignedMipSize:u32 residencyNonResidentStrict:u32
""")
PhysicalDeviceProperties = struct("PhysicalDeviceProperties", None, """
    apiVersion:u32 driverVersion:u32 vendorID:u32 deviceID:u32 deviceType:u32 deviceName:char[256]
    pipelineCacheUUID:u8[16] limits:PhysicalDeviceLimits sparseProperties:PhysicalDeviceSparseProperties
""")
PhysicalDeviceProperties2 = struct("PhysicalDeviceProperties2", 1000059001, """
    properties:PhysicalDeviceProperties
""")
ConformanceVersion = struct("ConformanceVersion", None, """
    major:u8 minor:u8 subminor:u8 patch:u8
""")
PhysicalDeviceDriverProperties = struct("PhysicalDeviceDriverProperties", 1000196000, """
    driverID:u32 driverName:char[256] driverInfo:char[256] conformanceVersion:ConformanceVersion
""")
PhysicalDeviceIDProperties = struct("PhysicalDeviceIDProperties", 1000071004, """
    deviceUUID:u8[16] driverUUID:u8[16] deviceLUID:u8[8] deviceNodeMask:u32 deviceLUIDValid:u32
""")
PhysicalDeviceSubgroupProperties = struct("PhysicalDeviceSubgroupProperties", 1000094000, """
    subgroupSize:u32 supportedStages:u32 supportedOperations:u32 quadOperationsInAllStages:u32
""")
PhysicalDeviceFloatControlsProperties = struct("PhysicalDeviceFloatControlsProperties", 1000197000, """
    denormBehaviorIndependence:u32 roundingModeIndependence:u32 shaderSignedZeroInfNanPreserveFloat16:u32
    shaderSignedZeroInfNanPreserveFloat32:u32 shaderSignedZeroInfNanPreserveFloat64:u32
    shaderDenormPreserveFloat16:u32 shaderDenormPreserveFloat32:u32 shaderDenormPreserveFloat64:u32
    shaderDenormFlushToZeroFloat16:u32 shaderDenormFlushToZeroFloat32:u32 shaderDenormFlushToZeroFloat64:u32
    shaderRoundingModeRTEFloat16:u32 shaderRoundingModeRTEFloat32:u32 shaderRoundingModeRTEFloat64:u32
    shaderRoundingModeRTZFloat16:u32 shaderRoundingModeRTZFloat32:u32 shaderRoundingModeRTZFloat64:u32
""")
PhysicalDeviceMaintenance3Properties = struct("PhysicalDeviceMaintenance3Properties", 1000168000, """
    maxPerSetDescriptors:u32 maxMemoryAllocationSize:u64
""")
PhysicalDeviceExternalMemoryHostPropertiesEXT = struct("PhysicalDeviceExternalMemoryHostPropertiesEXT", 1000178002, """
    minImportedHostPointerAlignment:u64
""")
PhysicalDeviceFeatures = struct("PhysicalDeviceFeatures", None, """
    robustBufferAccess:u32 fullDrawIndexUint32:u32 imageCubeArray:u32 independentBlend:u32 geometryShader:u32
    tessellationShader:u32 sampleRateShading:u32 dualSrcBlend:u32 logicOp:u32 multiDrawIndirect:u32
    drawIndirectFirstInstance:u32 depthClamp:u32 depthBiasClamp:u32 fillModeNonSolid:u32 depthBounds:u32
    wideLines:u32 largePoints:u32 alphaToOne:u32 multiViewport:u32 samplerAnisotropy:u32 textureCompressionETC2:u32
    textureCompressionASTC_LDR:u32 textureCompressionBC:u32 occlusionQueryPrecise:u32 pipelineStatisticsQuery:u32
    vertexPipelineStoresAndAtomics:u32 fragmentStoresAndAtomics:u32 shaderTessellationAndGeometryPointSize:u32
    shaderImageGatherExtended:u32 shaderStorageImageExtendedFormats:u32 shaderStorageImageMultisample:u32
    shaderStorageImageReadWithoutFormat:u32 shaderStorageImageWriteWithoutFormat:u32
    shaderUniformBufferArrayDynamicIndexing:u32 shaderSampledImageArrayDynamicIndexing:u32
    shaderStorageBufferArrayDynamicIndexing:u32 shaderStorageImageArrayDynamicIndexing:u32 shaderClipDistance:u32
    shaderCullDistance:u32 shaderFloat64:u32 shaderInt64:u32 shaderInt16:u32 shaderResourceResidency:u32
    shaderResourceMinLod:u32 sparseBinding:u32 sparseResidencyBuffer:u32 sparseResidencyImage2D:u32
    sparseResidencyImage3D:u32 sparseResidency2Samples:u32 sparseResidency4Samples:u32 sparseResidency8Samples:u32
    sparseResidency16Samples:u32 sparseResidencyAliased:u32 variableMultisampleRate:u32 inheritedQueries:u32
""")
PhysicalDeviceFeatures2 = struct("PhysicalDeviceFeatures2", 1000059000, """
    features:PhysicalDeviceFeatures
""")
PhysicalDeviceVulkan11Features = struct("PhysicalDeviceVulkan11Features", 49, """
    storageBuffer16BitAccess:u32 uniformAndStorageBuffer16BitAccess:u32 storagePushConstant16:u32
    storageInputOutput16:u32 multiview:u32 multiviewGeometryShader:u32 multiviewTessellationShader:u32
    variablePointersStorageBuffer:u32 variablePointers:u32 protectedMemory:u32 samplerYcbcrConversion:u32
    shaderDrawParameters:u32
""")
PhysicalDeviceVulkan12Features = struct("PhysicalDeviceVulkan12Features", 51, """
    samplerMirrorClampToEdge:u32 drawIndirectCount:u32 storageBuffer8BitAccess:u32
    uniformAndStorageBuffer8BitAccess:u32 storagePushConstant8:u32 shaderBufferInt64Atomics:u32
    shaderSharedInt64Atomics:u32 shaderFloat16:u32 shaderInt8:u32 descriptorIndexing:u32
    shaderInputAttachmentArrayDynamicIndexing:u32 shaderUniformTexelBufferArrayDynamicIndexing:u32
    shaderStorageTexelBufferArrayDynamicIndexing:u32 shaderUniformBufferArrayNonUniformIndexing:u32
    shaderSampledImageArrayNonUniformIndexing:u32 shaderStorageBufferArrayNonUniformIndexing:u32
    shaderStorageImageArrayNonUniformIndexing:u32 shaderInputAttachmentArrayNonUniformIndexing:u32
    shaderUniformTexelBufferArrayNonUniformIndexing:u32 shaderStorageTexelBufferArrayNonUniformIndexing:u32
    descriptorBindingUniformBufferUpdateAfterBind:u32 descriptorBindingSampledImageUpdateAfterBind:u32
    descriptorBindingStorageImageUpdateAfterBind:u32 descriptorBindingStorageBufferUpdateAfterBind:u32
    descriptorBindingUniformTexelBufferUpdateAfterBind:u32 descriptorBindingStorageTexelBufferUpdateAfterBind:u32
    descriptorBindingUpdateUnusedWhilePending:u32 descriptorBindingPartiallyBound:u32
    descriptorBindingVariableDescriptorCount:u32 runtimeDescriptorArray:u32 samplerFilterMinmax:u32
    scalarBlockLayout:u32 imagelessFramebuffer:u32 uniformBufferStandardLayout:u32 shaderSubgroupExtendedTypes:u32
    separateDepthStencilLayouts:u32 hostQueryReset:u32 timelineSemaphore:u32 bufferDeviceAddress:u32
    bufferDeviceAddressCaptureReplay:u32 bufferDeviceAddressMultiDevice:u32 vulkanMemoryModel:u32
    vulkanMemoryModelDeviceScope:u32 vulkanMemoryModelAvailabilityVisibilityChains:u32 shaderOutputViewportIndex:u32
    shaderOutputLayer:u32 subgroupBroadcastDynamicId:u32
""")
PhysicalDeviceVulkan13Features = struct("PhysicalDeviceVulkan13Features", 53, """
    robustImageAccess:u32 inlineUniformBlock:u32 descriptorBindingInlineUniformBlockUpdateAfterBind:u32
    pipelineCreationCacheControl:u32 privateData:u32 shaderDemoteToHelperInvocation:u32
    shaderTerminateInvocation:u32 subgroupSizeControl:u32 computeFullSubgroups:u32 synchronization2:u32
    textureCompressionASTC_HDR:u32 shaderZeroInitializeWorkgroupMemory:u32 dynamicRendering:u32
    shaderIntegerDotProduct:u32 maintenance4:u32
""")
PhysicalDeviceShaderAtomicFloatFeaturesEXT = struct("PhysicalDeviceShaderAtomicFloatFeaturesEXT", 1000260000, """
    shaderBufferFloat32Atomics:u32 shaderBufferFloat32AtomicAdd:u32 shaderBufferFloat64Atomics:u32
    shaderBufferFloat64AtomicAdd:u32 shaderSharedFloat32Atomics:u32 shaderSharedFloat32AtomicAdd:u32
    shaderSharedFloat64Atomics:u32 shaderSharedFloat64AtomicAdd:u32 shaderImageFloat32Atomics:u32
    shaderImageFloat32AtomicAdd:u32 sparseImageFloat32Atomics:u32 sparseImageFloat32AtomicAdd:u32
""")
MemoryType = struct("MemoryType", None, """
    propertyFlags:u32 heapIndex:u32
""")
MemoryHeap = struct("MemoryHeap", None, """
    size:u64 flags:u32
""")
PhysicalDeviceMemoryProperties = struct("PhysicalDeviceMemoryProperties", None, """
    memoryTypeCount:u32 memoryTypes:MemoryType[32] memoryHeapCount:u32 memoryHeaps:MemoryHeap[16]
""")
PhysicalDeviceMemoryProperties2 = struct("PhysicalDeviceMemoryProperties2", 1000059006, """
    memoryProperties:PhysicalDeviceMemoryProperties
""")
PhysicalDeviceMemoryBudgetPropertiesEXT = struct("PhysicalDeviceMemoryBudgetPropertiesEXT", 1000237000, """
    heapBudget:u64[16] heapUsage:u64[16]
""")
Extent3D = struct("Extent3D", None, """
    width:u32 height:u32 depth:u32
""")
QueueFamilyProperties = struct("QueueFamilyProperties", None, """
    queueFlags:u32 queueCount:u32 timestampValidBits:u32 minImageTransferGranularity:Extent3D
""")
DeviceQueueCreateInfo = struct("DeviceQueueCreateInfo", 2, """
    flags:u32 queueFamilyIndex:u32 queueCount:u32 pQueuePriorities:p
""")
DeviceCreateInfo = struct("DeviceCreateInfo", 3, """
    flags:u32 queueCreateInfoCount:u32 pQueueCreateInfos:p enabledLayerCount:u32 ppEnabledLayerNames:p
    enabledExtensionCount:u32 ppEnabledExtensionNames:p pEnabledFeatures:p
""")
MemoryAllocateInfo = struct("MemoryAllocateInfo", 5, """
    allocationSize:u64 memoryTypeIndex:u32
""")
MemoryRequirements = struct("MemoryRequirements", None, """
    size:u64 alignment:u64 memoryTypeBits:u32
""")
MappedMemoryRange = struct("MappedMemoryRange", 6, """
    memory:u64 offset:u64 size:u64
""")
BufferCreateInfo = struct("BufferCreateInfo", 12, """
    flags:u32 size:u64 usage:u32 sharingMode:u32 queueFamilyIndexCount:u32 pQueueFamilyIndices:p
""")
ShaderModuleCreateInfo = struct("ShaderModuleCreateInfo", 16, """
    flags:u32 codeSize:size pCode:p
""")
PipelineCacheCreateInfo = struct("PipelineCacheCreateInfo", 17, """
    flags:u32 initialDataSize:size pInitialData:p
""")
DescriptorSetLayoutBinding = struct("DescriptorSetLayoutBinding", None, """
    binding:u32 descriptorType:u32 descriptorCount:u32 stageFlags:u32 pImmutableSamplers:p
""")
DescriptorSetLayoutCreateInfo = struct("DescriptorSetLayoutCreateInfo", 32, """
    flags:u32 bindingCount:u32 pBindings:p
""")
PushConstantRange = struct("PushConstantRange", None, """
    stageFlags:u32 offset:u32 size:u32
""")
PipelineLayoutCreateInfo = struct("PipelineLayoutCreateInfo", 30, """
    flags:u32 setLayoutCount:u32 pSetLayouts:p pushConstantRangeCount:u32 pPushConstantRanges:p
""")
SpecializationMapEntry = struct("SpecializationMapEntry", None, """
    constantID:u32 offset:u32 size:size
""")
SpecializationInfo = struct("SpecializationInfo", None, """
    mapEntryCount:u32 pMapEntries:p dataSize:size pData:p
""")
PipelineShaderStageCreateInfo = struct("PipelineShaderStageCreateInfo", 18, """
    flags:u32 stage:u32 module:u64 pName:p pSpecializationInfo:p
""")
ComputePipelineCreateInfo = struct("ComputePipelineCreateInfo", 29, """
    flags:u32 stage:PipelineShaderStageCreateInfo layout:u64 basePipelineHandle:u64 basePipelineIndex:i32
""")
DescriptorPoolSize = struct("DescriptorPoolSize", None, """
    type:u32 descriptorCount:u32
""")
DescriptorPoolCreateInfo = struct("DescriptorPoolCreateInfo", 33, """
    flags:u32 maxSets:u32 poolSizeCount:u32 pPoolSizes:p
""")
DescriptorSetAllocateInfo = struct("DescriptorSetAllocateInfo", 34, """
    descriptorPool:u64 descriptorSetCount:u32 pSetLayouts:p
""")
DescriptorBufferInfo = struct("DescriptorBufferInfo", None, """
    buffer:u64 offset:u64 range:u64
""")
WriteDescriptorSet = struct("WriteDescriptorSet", 35, """
    dstSet:u64 dstBinding:u32 dstArrayElement:u32 descriptorCount:u32 descriptorType:u32 pImageInfo:p pBufferInfo:p
    pTexelBufferView:p
""")
CommandPoolCreateInfo = struct("CommandPoolCreateInfo", 39, """
    flags:u32 queueFamilyIndex:u32
""")
CommandBufferAllocateInfo = struct("CommandBufferAllocateInfo", 40, """
    commandPool:u64 level:u32 commandBufferCount:u32
""")
CommandBufferBeginInfo = struct("CommandBufferBeginInfo", 42, """
    flags:u32 pInheritanceInfo:p
""")
MemoryBarrier = struct("MemoryBarrier", 46, """
    srcAccessMask:u32 dstAccessMask:u32
""")
BufferCopy = struct("BufferCopy", None, """
    srcOffset:u64 dstOffset:u64 size:u64
""")
QueryPoolCreateInfo = struct("QueryPoolCreateInfo", 11, """
    flags:u32 queryType:u32 queryCount:u32 pipelineStatistics:u32
""")
SemaphoreTypeCreateInfo = struct("SemaphoreTypeCreateInfo", 1000207002, """
    semaphoreType:u32 initialValue:u64
""")
SemaphoreCreateInfo = struct("SemaphoreCreateInfo", 9, """
    flags:u32
""")
SemaphoreWaitInfo = struct("SemaphoreWaitInfo", 1000207004, """
    flags:u32 semaphoreCount:u32 pSemaphores:p pValues:p
""")
SemaphoreSignalInfo = struct("SemaphoreSignalInfo", 1000207005, """
    semaphore:u64 value:u64
""")
TimelineSemaphoreSubmitInfo = struct("TimelineSemaphoreSubmitInfo", 1000207003, """
    waitSemaphoreValueCount:u32 pWaitSemaphoreValues:p signalSemaphoreValueCount:u32 pSignalSemaphoreValues:p
""")
SubmitInfo = struct("SubmitInfo", 4, """
    waitSemaphoreCount:u32 pWaitSemaphores:p pWaitDstStageMask:p commandBufferCount:u32 pCommandBuffers:p
    signalSemaphoreCount:u32 pSignalSemaphores:p
""")
ExportSemaphoreCreateInfo = struct("ExportSemaphoreCreateInfo", 1000077000, """
    handleTypes:u32
""")
PhysicalDeviceExternalSemaphoreInfo = struct("PhysicalDeviceExternalSemaphoreInfo", 1000076000, """
    handleType:u32
""")
ExternalSemaphoreProperties = struct("ExternalSemaphoreProperties", 1000076001, """
    exportFromImportedHandleTypes:u32 compatibleHandleTypes:u32 externalSemaphoreFeatures:u32
""")
SemaphoreGetFdInfoKHR = struct("SemaphoreGetFdInfoKHR", 1000079001, """
    semaphore:u64 handleType:u32
""")
ImportSemaphoreFdInfoKHR = struct("ImportSemaphoreFdInfoKHR", 1000079000, """
    semaphore:u64 flags:u32 handleType:u32 fd:i32
""")
ExportMemoryAllocateInfo = struct("ExportMemoryAllocateInfo", 1000072002, """
    handleTypes:u32
""")
MemoryDedicatedAllocateInfo = struct("MemoryDedicatedAllocateInfo", 1000127001, """
    image:u64 buffer:u64
""")
MemoryGetFdInfoKHR = struct("MemoryGetFdInfoKHR", 1000074002, """
    memory:u64 handleType:u32
""")
ImportMemoryFdInfoKHR = struct("ImportMemoryFdInfoKHR", 1000074000, """
    handleType:u32 fd:i32
""")
PhysicalDeviceExternalBufferInfo = struct("PhysicalDeviceExternalBufferInfo", 1000071002, """
    flags:u32 usage:u32 handleType:u32
""")
ExternalBufferProperties = struct("ExternalBufferProperties", 1000071003, """
    externalMemoryFeatures:u32 exportFromImportedHandleTypes:u32 compatibleHandleTypes:u32
""")
CalibratedTimestampInfoEXT = struct("CalibratedTimestampInfoEXT", 1000184000, """
    timeDomain:u32
""")
ImportMemoryHostPointerInfoEXT = struct("ImportMemoryHostPointerInfoEXT", 1000178000, """
    handleType:u32 pHostPointer:p
""")
MemoryHostPointerPropertiesEXT = struct("MemoryHostPointerPropertiesEXT", 1000178001, """
    memoryTypeBits:u32
""")
ExternalMemoryBufferCreateInfo = struct("ExternalMemoryBufferCreateInfo", 1000072000, """
    handleTypes:u32
""")
PhysicalDeviceCooperativeMatrixFeaturesKHR = struct("PhysicalDeviceCooperativeMatrixFeaturesKHR", 1000506000, """
    cooperativeMatrix:u32 cooperativeMatrixRobustBufferAccess:u32
""")
