"""Memory of an NVIDIA GPU that Vulkan and CUDA use alike: arrays here, tensors of PyTorch and CuPy there, no copy.

Whether a driver does it is tried in a child process first (`cuda_problem`); without that, nothing is shared.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import weakref
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final, SupportsIndex

import numpy as np
import numpy.typing as npt

from dashi.errors import UnsupportedOperationError
from dashi.runtime._outside_memory import export_buffer
from dashi.runtime._shapes import sizes_of
from dashi.runtime._vk_cuda import CudaContext
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo
from dashi.types import DType
from dashi.types import dtype as dtype_of

_CHILD: Final = "from dashi.runtime._cuda_trial import child; child()"
_TIMEOUT: Final = 20.0


def cuda_problem(info: DeviceInfo) -> str:
    """Why CUDA and a Vulkan device cannot share memory; nothing where a trial in a child process has shown that they
    do. The trial takes 20 seconds at most, once for each GPU in a process."""
    if not info.is_hardware or "nvidia" not in f"{info.driver} {info.name}".lower():
        return "it is no GPU of NVIDIA's"
    return ask(info.spec, info.uuid, info.driver_version)


@cache
def ask(spec: str, _uuid: str, _driver_version: str) -> str:
    """What the child says of a device, by its GPU and driver; a crash and a hang are problems too."""
    if not sys.executable or getattr(sys, "frozen", False):
        return "no child process can be started to try it"
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "DASHI_VALIDATION": "0"}
    command = [sys.executable, "-c", _CHILD, spec]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TIMEOUT, check=False
        )
        answer: Any = json.loads(done.stdout)
        return str(answer["problem"])
    except subprocess.TimeoutExpired:
        return f"the trial did not end within {_TIMEOUT:g} s"
    except (OSError, ValueError, KeyError, TypeError):
        return "the trial ended without an answer"


class CudaArray:
    """An array of a Vulkan device, `array`, whose memory CUDA has too: `torch.as_tensor(shared, device="cuda")` and
    `cupy.asarray(shared)` take it without a copy. Nothing orders the two: wait for the one before the other begins.
    `close` ends CUDA's use of it; tensors in it must be gone by then."""

    def __init__(self, array: Array, context: CudaContext, memory: int, address: int) -> None:
        self.array = array
        self._address = address
        self.close = weakref.finalize(self, _end, context, memory, address)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.array.shape,
            "typestr": self.array.dtype.numpy.str,
            "data": (self._address, False),
            "strides": None,
            "version": 3,
        }


def cuda_array(
    device: Device, shape: SupportsIndex | Iterable[SupportsIndex], dtype: npt.DTypeLike | DType = np.float32
) -> CudaArray:
    """A new array in memory that Vulkan and CUDA share; its contents are undefined. Raises where a trial has not shown
    that the two see the same bytes."""
    problem = cuda_problem(device.info)
    if problem or not isinstance(device, VulkanDevice):
        raise UnsupportedOperationError(
            f"{device.info.name!r} shares no memory with CUDA: {problem}.",
            "copy through the host: device.array(tensor.cpu()), torch.from_dlpack(array).",
        )
    sizes, element = sizes_of(shape), dtype_of(dtype)
    nbytes = max(16, math.prod(sizes) * element.size)
    context = CudaContext(device.external.identity[:16])
    try:
        with context.current():
            buffer, descriptor = export_buffer(device, nbytes)
            memory, address = context.import_memory(descriptor, buffer.allocation.block.size, nbytes)
    except BaseException:
        with contextlib.suppress(Exception):  # what went wrong first is what is raised
            context.close()
        raise
    return CudaArray(Array(device, sizes, element, buffer), context, memory, address)


def _end(context: CudaContext, memory: int, address: int) -> None:
    # At the interpreter's end the driver may be gone.
    with contextlib.suppress(Exception), contextlib.closing(context), context.current():
        context.free_memory(memory, address)
