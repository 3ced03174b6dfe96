"""Memory that Vulkan and CUDA share: tried in a child process before anybody uses it, refused where that failed."""

from __future__ import annotations

import ctypes
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Device
from dashi.runtime import _cuda as cuda
from dashi.runtime._vk_cuda import CudaContext
from dashi.runtime._vulkan_device import VulkanDevice


def test_a_device_that_is_no_gpu_of_nvidia_shares_nothing_with_cuda(device: Device) -> None:
    if device.info.is_hardware:
        pytest.skip("a GPU")
    assert cuda.cuda_problem(device.info) == "it is no GPU of NVIDIA's"
    with pytest.raises(errors.UnsupportedOperationError, match=r"shares no memory with CUDA: .*\. Fix: copy through"):
        cuda.cuda_array(device, 16)


def test_the_trial_says_what_is_missing(vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    if vulkan.info.is_hardware:
        pytest.skip("a GPU")
    # Software that passes for a GPU of NVIDIA's: CUDA has no such device, or there is no CUDA at all.
    info = replace(vulkan.info, type="discrete", driver="nvidia")
    cuda.ask.cache_clear()
    problem = cuda.cuda_problem(info)
    assert "CUDA" in problem or "cu" in problem or "exports no memory" in problem
    assert cuda.cuda_problem(info) == problem
    assert cuda.ask.cache_info().hits
    monkeypatch.setattr(vulkan, "info", info)
    with pytest.raises(errors.UnsupportedOperationError, match="shares no memory with CUDA"):
        cuda.cuda_array(vulkan, 16)
    cuda.ask.cache_clear()


def test_a_trial_that_hangs_or_crashes_is_a_problem(vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    info = replace(vulkan.info, type="discrete", driver="nvidia")
    for code, text in (("import os; os.abort()", "without an answer"), ("import time; time.sleep(9)", "did not end")):
        cuda.ask.cache_clear()
        monkeypatch.setattr(cuda, "_CHILD", code)
        monkeypatch.setattr(cuda, "_TIMEOUT", 0.5)
        assert text in cuda.cuda_problem(info)
    cuda.ask.cache_clear()


def test_without_its_library_cuda_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.runtime._vk_cuda._LIBRARY", "libcuda-that-nobody-has.so")
    with pytest.raises(errors.DeviceError, match=r"no CUDA driver library here .* Fix: install NVIDIA's driver"):
        CudaContext(bytes(16))


class ScriptedContext(CudaContext):
    """CUDA's calls by name, of which one may fail, without CUDA."""

    def __init__(self, failing: str) -> None:
        self.calls, self.failing = list[str](), failing
        self.descriptor = -1
        self._device, self._context = 0, ctypes.c_void_p()

    def _call(self, name: str, *_: Any) -> None:
        self.calls.append(name)
        if name == self.failing:
            raise errors.DeviceError(f"{name} gives error 1.", "nothing.")
        if name == "cuImportExternalMemory":
            os.close(self.descriptor)  # which CUDA uses up


LEAVE, RELEASE = "cuCtxPopCurrent_v2", "cuDevicePrimaryCtxRelease_v2"


def scripted(vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch, failing: str) -> ScriptedContext:
    """What `cuda_array` uses from now on, with memory that is not exported."""
    context = ScriptedContext(failing)
    monkeypatch.setattr(cuda, "cuda_problem", lambda _: "")
    monkeypatch.setattr(cuda, "CudaContext", lambda _: context)

    def export(device: VulkanDevice, nbytes: int) -> tuple[Any, int]:
        context.descriptor = os.open(os.devnull, os.O_RDONLY)
        return device.landing_memory(nbytes), context.descriptor

    monkeypatch.setattr(cuda, "export_buffer", export)
    return context


@pytest.mark.parametrize(
    "failing", ["cuCtxPushCurrent_v2", "cuImportExternalMemory", "cuExternalMemoryGetMappedBuffer", LEAVE]
)
def test_the_context_is_released_where_memory_cannot_be_shared(
    vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    context = scripted(vulkan, monkeypatch, failing)
    with pytest.raises(errors.DeviceError, match=failing):
        cuda.cuda_array(vulkan, 16)
    assert context.calls.count(RELEASE) == 1
    assert (LEAVE in context.calls) == (failing != "cuCtxPushCurrent_v2")


@pytest.mark.parametrize("failing", ["", "cuMemFree_v2", "cuDestroyExternalMemory", LEAVE])
def test_the_end_of_shared_memory_releases_the_context_whatever_fails(
    vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    context = scripted(vulkan, monkeypatch, "")
    shared = cuda.cuda_array(vulkan, 16)
    context.failing = failing
    context.calls.clear()
    shared.close()
    assert context.calls == ["cuCtxPushCurrent_v2", "cuMemFree_v2", "cuDestroyExternalMemory", LEAVE, RELEASE]


@pytest.mark.gpu
def test_cuda_reads_and_writes_an_array_of_the_gpu(vulkan: VulkanDevice) -> None:
    problem = cuda.cuda_problem(vulkan.info)
    if problem:
        pytest.skip(f"CUDA shares nothing here: {problem}")
    shared = cuda.cuda_array(vulkan, 1000, np.float32)
    shared.array.write(np.arange(1000, dtype=np.float32))
    vulkan.run("scale", shared.array, a=2.0, out=shared.array)
    context = CudaContext(vulkan.external.identity[:16])
    context.enter()
    address = shared.__cuda_array_interface__["data"][0]
    assert context.read(address, 4000) == (2 * np.arange(1000, dtype=np.float32)).tobytes()
    context.fill(address, 0, 1000)
    context.leave()
    context.close()
    assert not shared.array.numpy().any()
    shared.close()
