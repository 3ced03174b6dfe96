"""Raw calls that make descriptor sets: the structs are built once, and only handles change. Callers hold a lock."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from dashi.runtime import _vk as vk
from dashi.runtime import _vk_structs as s
from dashi.runtime._vk_device import STORAGE_BUFFER, RawDevice


class SetAllocation:
    """Descriptor sets of any layout, one at a time."""

    def __init__(self, device: RawDevice) -> None:
        self._device = device.handle
        self._allocate = device.fns.AllocateDescriptorSets
        self._layout = (ctypes.c_uint64 * 1)()
        self._out = (ctypes.c_uint64 * 1)()
        self._info = s.DescriptorSetAllocateInfo(descriptorSetCount=1, pSetLayouts=ctypes.addressof(self._layout))
        self._addresses = ctypes.addressof(self._info), ctypes.addressof(self._out)

    def allocate(self, pool: int, layout: int) -> int:
        self._info.descriptorPool, self._layout[0] = pool, layout
        vk.check(self._allocate(self._device, *self._addresses), "vkAllocateDescriptorSets")
        return self._out[0]


class SetWriter:
    """Points the bindings of a set of so many storage buffers at ranges of bytes."""

    def __init__(self, device: RawDevice, buffers: int) -> None:
        self._device = device.handle
        self._update = device.fns.UpdateDescriptorSets
        self._count = buffers
        # A buffer's handle, its offset and its range, three words of 64 bits, for each binding.
        self._infos = (ctypes.c_uint64 * (3 * buffers))()
        self._writes = (s.WriteDescriptorSet * buffers)()
        for i, write in enumerate(self._writes):
            write.sType = s.WriteDescriptorSet.STYPE
            write.dstBinding, write.descriptorCount, write.descriptorType = i, 1, STORAGE_BUFFER
            write.pBufferInfo = ctypes.addressof(self._infos) + i * ctypes.sizeof(s.DescriptorBufferInfo)
        self._listed = list(self._writes)

    def write(self, descriptor_set: int, ranges: Sequence[tuple[int, int, int]]) -> None:
        """Points binding i at ranges[i] = (buffer, offset, bytes)."""
        self._infos[:] = [number for place in ranges for number in place]
        for write in self._listed:
            write.dstSet = descriptor_set
        self._update(self._device, self._count, self._writes, 0, None)
