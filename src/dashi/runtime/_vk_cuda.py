"""Raw calls of the CUDA driver library, through ctypes: memory that Vulkan exported, as an address of CUDA's."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from dashi.errors import DeviceError

_LIBRARY: Final = "libcuda.so.1"
_OPAQUE_FD: Final = 1
_DEDICATED: Final = 1


class _Handle(ctypes.Union):
    _fields_ = (("fd", ctypes.c_int32), ("win32", ctypes.c_void_p * 2))


class _ExternalMemoryHandleDesc(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int32),
        ("handle", _Handle),
        ("size", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 16),
    )


class _ExternalMemoryBufferDesc(ctypes.Structure):
    _fields_ = (
        ("offset", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 16),
    )


class CudaContext:
    """The primary context of the CUDA device that is the GPU of a UUID; the one that PyTorch and CuPy use."""

    def __init__(self, uuid: bytes) -> None:
        try:
            self._library: Any = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise DeviceError(
                f"there is no CUDA driver library here ({_LIBRARY}).", "install NVIDIA's driver."
            ) from error
        self._call("cuInit", 0)
        self._device = self._find(uuid)
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._context = context

    def _call(self, name: str, *values: Any) -> None:
        function = getattr(self._library, name, None)
        result = -1 if function is None else function(*values)
        if result:
            raise DeviceError(
                f"{name} gives error {result}." if function is not None else f"{_LIBRARY} has no {name}.",
                "copy through the host: device.array(tensor.cpu()).",
            )

    def _find(self, uuid: bytes) -> int:
        count = ctypes.c_int32()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        for i in range(count.value):
            device, identity = ctypes.c_int32(), (ctypes.c_uint8 * 16)()
            self._call("cuDeviceGet", ctypes.byref(device), i)
            self._call("cuDeviceGetUuid", identity, device)
            if bytes(identity) == uuid:
                return device.value
        raise DeviceError("none of CUDA's devices is this GPU.", "look at CUDA_VISIBLE_DEVICES.")

    def enter(self) -> None:
        """Makes the context that of the calling thread, until `leave`."""
        self._call("cuCtxPushCurrent_v2", self._context)

    def leave(self) -> None:
        before = ctypes.c_void_p()
        self._call("cuCtxPopCurrent_v2", ctypes.byref(before))

    @contextmanager
    def current(self) -> Generator[None]:
        """While it lasts, the context is that of the calling thread."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def import_memory(self, descriptor: int, size: int, nbytes: int) -> tuple[int, int]:
        """The memory behind a descriptor of a dedicated allocation of `size` bytes, which is used up: its handle, and
        the address of its first `nbytes` bytes."""
        memory, address = ctypes.c_void_p(), ctypes.c_uint64()
        handle = _ExternalMemoryHandleDesc(type=_OPAQUE_FD, handle=_Handle(fd=descriptor), size=size, flags=_DEDICATED)
        try:
            self._call("cuImportExternalMemory", ctypes.byref(memory), ctypes.byref(handle))
        except BaseException:
            os.close(descriptor)
            raise
        buffer = _ExternalMemoryBufferDesc(offset=0, size=nbytes)
        try:
            self._call("cuExternalMemoryGetMappedBuffer", ctypes.byref(address), memory, ctypes.byref(buffer))
        except BaseException:
            self._call("cuDestroyExternalMemory", memory)
            raise
        return memory.value or 0, address.value

    def free_memory(self, memory: int, address: int) -> None:
        try:
            self._call("cuMemFree_v2", ctypes.c_uint64(address))
        finally:
            self._call("cuDestroyExternalMemory", ctypes.c_void_p(memory))

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes of CUDA's memory."""
        out = (ctypes.c_uint8 * nbytes)()
        self._call("cuMemcpyDtoH_v2", out, ctypes.c_uint64(address), ctypes.c_size_t(nbytes))
        return bytes(out)

    def fill(self, address: int, word: int, count: int) -> None:
        """Writes a word of 4 bytes over and over, and waits for it."""
        self._call("cuMemsetD32_v2", ctypes.c_uint64(address), ctypes.c_uint32(word), ctypes.c_size_t(count))
        self._call("cuCtxSynchronize")

    def close(self) -> None:
        self._call("cuDevicePrimaryCtxRelease_v2", self._device)
