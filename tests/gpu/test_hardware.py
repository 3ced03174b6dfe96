"""What only a hardware GPU can show: `pytest -m gpu` on a machine that has one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from dashi.errors import LimitError, OutOfMemoryError, TimeoutError_
from dashi.runtime import Array, open_device, shared_memory
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime._waits import handover
from dashi.runtime.shared import modes

pytestmark = pytest.mark.gpu


@pytest.fixture
def gpu() -> Iterator[VulkanDevice]:
    with open_device("auto", queues=2) as device:
        assert isinstance(device, VulkanDevice)
        assert device.info.is_hardware, f"auto took {device.info.name}"
        yield device


def test_work_of_two_queues_is_ordered_by_timelines(gpu: VulkanDevice) -> None:
    x, y, z = (gpu.array(np.full(1 << 22, value, np.float32)) for value in (1, 2, 0))
    first = gpu.program([gpu.bind("add", x, y, out=z)] * 50, queue=0)
    second = gpu.program([gpu.bind("add", z, y, out=x)], queue=1)
    for _ in range(20):
        x.write(np.ones(1 << 22, np.float32))
        z.write(np.zeros(1 << 22, np.float32))
        second.submit(after=[first.submit()]).wait()
        assert (x.numpy() == 5).all()


def test_copies_have_a_queue_of_their_own(gpu: VulkanDevice) -> None:
    assert gpu.transfer is not gpu.queue
    assert not gpu.info.queues[gpu.transfer.family].compute
    x = gpu.array(np.arange(1 << 20, dtype=np.float32))
    y, z = gpu.empty(x.shape), gpu.empty(x.shape)
    program = gpu.program([gpu.bind("add", y, y, out=z)])
    program.submit(after=[gpu.copy(x, y)]).wait()
    assert np.array_equal(z.numpy(), 2 * np.arange(1 << 20, dtype=np.float32))


def test_a_gigabyte_goes_there_and_comes_back(gpu: VulkanDevice) -> None:
    values = np.arange(1 << 28, dtype=np.uint32)
    assert np.array_equal(gpu.array(values).numpy(), values)


def test_memory_that_runs_out_is_an_error_and_then_there_again(gpu: VulkanDevice) -> None:
    size = 3 << 28
    held: list[Array] = []

    def fill() -> None:
        while len(held) < 1000:
            held.append(gpu.empty(size))

    with pytest.raises(OutOfMemoryError, match="Fix: close arrays that are no longer needed"):
        fill()
    count = len(held)
    assert count > 10
    held.clear()
    again = [gpu.empty(size) for _ in range(count - 1)]
    assert np.array_equal(gpu.run("add", np.ones(3, np.float32), np.ones(3, np.float32)).numpy(), [2, 2, 2])
    assert len(again) == count - 1


def test_an_array_past_what_one_allocation_holds_is_refused(gpu: VulkanDevice) -> None:
    with pytest.raises(LimitError, match=r"is larger than .* Fix: split"):
        gpu.empty(1 << 31)


def test_an_nvidia_driver_without_a_driver_file_is_found(gpu: VulkanDevice) -> None:
    if "nvidia" not in gpu.info.name.lower():
        pytest.skip("not an NVIDIA GPU")
    environment = {k: v for k, v in os.environ.items() if k not in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")}
    code = "import dashi; print(dashi.open('auto').info.name)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == gpu.info.name, done.stderr


def test_work_of_another_logical_device_is_waited_for_by_the_driver(gpu: VulkanDevice) -> None:
    if not gpu.external.timelines:
        pytest.skip("this driver exports no timelines")
    x, y = (gpu.array(np.full(1 << 22, value, np.float32)) for value in (1, 2))
    slow = gpu.program([gpu.bind("add", x, y, out=x)] * 50)
    with open_device("auto") as other:
        assert isinstance(other, VulkanDevice)
        assert handover(gpu, other) == "exported timeline"
        for _ in range(20):
            first = slow.submit()
            other.program([]).submit(after=[first]).wait()
            assert first.done
        with pytest.raises(TimeoutError_, match="work of"):
            other.program([]).submit(after=[slow.submit(after=[gpu.event()])]).wait(timeout=0.2)


def test_two_logical_devices_share_memory_of_the_gpu(gpu: VulkanDevice) -> None:
    with open_device("auto") as other:
        memory = shared_memory(gpu, other, 1 << 20)
        assert memory.mode == ("exported" if gpu.external.memory else modes(gpu, other)[0])
        values = np.arange(1 << 18, dtype=np.uint32)
        memory.first.view(np.uint32).write(values)
        assert np.array_equal(memory.second.view(np.uint32).numpy(), values)
