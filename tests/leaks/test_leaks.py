"""Thousands of devices, pipelines and buffers made and freed: no growth in host or device memory."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dashi.runtime import open_device
from dashi.runtime._vulkan_device import VulkanDevice


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def grown(make_and_free: object, times: int, warm: int) -> float:
    """Bytes per cycle that the process grows by, after a warm-up."""
    assert callable(make_and_free)
    for _ in range(warm):
        make_and_free()
    gc.collect()
    before = resident_bytes()
    for _ in range(times):
        make_and_free()
    gc.collect()
    return (resident_bytes() - before) / times


def test_buffers_and_steps_and_programs_leave_nothing_behind(bare_vulkan: VulkanDevice) -> None:
    values = np.ones(10_000, np.float32)

    def cycle() -> None:
        x = bare_vulkan.array(values)
        step = bare_vulkan.bind("axpy", x, x, a=1.5)
        with bare_vulkan.program([step], timed=True) as program:
            program.run()

    # A cycle allocates 80 kB; growth of one per cent of that would be a leak.
    assert grown(cycle, 2000, 200) < 800
    stats = bare_vulkan.memory()
    assert stats.allocations <= 1  # the upload's staging buffer, where there is one
    assert len(bare_vulkan.graveyard._living) <= 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.long
def test_pipelines_leave_nothing_behind(bare_vulkan: VulkanDevice) -> None:
    x = bare_vulkan.array(np.ones(64, np.float32))

    def cycle() -> None:
        with bare_vulkan.program([bare_vulkan.bind("axpy", x, x, a=1.5)]) as program:
            program.run()
        # lavapipe destroys pipelines at the next submission only, so every cycle has one.
        bare_vulkan.pipelines.clear()

    # A pipeline of lavapipe holds about 250 kB; growth of one per cent of that would be a leak.
    assert grown(cycle, 2000, 100) < 2500


def test_forgotten_arrays_give_their_memory_back(bare_vulkan: VulkanDevice) -> None:
    arrays = [bare_vulkan.empty(1 << 20) for _ in range(8)]
    assert bare_vulkan.memory().used >= 8 << 22
    del arrays
    gc.collect()
    assert bare_vulkan.memory().allocations == 0
    assert bare_vulkan.memory().reserved == 0


@pytest.mark.validation
@pytest.mark.usefixtures("vulkan_session")
def test_a_forgotten_device_is_closed_with_all_that_hangs_off_it(monkeypatch: pytest.MonkeyPatch) -> None:
    device = open_device("vulkan:0", validation=True)
    assert isinstance(device, VulkanDevice)
    values = device.run("add", np.ones(3, np.float32), np.ones(3, np.float32))
    messages, closed, close = device.instance.messages, [], device.raw.close
    monkeypatch.setattr(device.raw, "close", lambda: (close(), closed.append(True)))
    del device, values
    gc.collect()
    assert closed == [True]
    assert messages == []  # the layers name every object that outlives its device


DEVICES = """
import gc
import numpy as np
from pathlib import Path
from dashi.runtime import open_device

values = np.ones(64, np.float32)

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def cycles(count):
    for _ in range(count):
        with open_device("vulkan:0", validation=False) as device:
            assert device.run("axpy", values, values, a=1.0).numpy()[0] == 2
    gc.collect()
    return resident()

before = cycles(600)
print((cycles(2000) - before) / 2000)
"""


@pytest.mark.long
@pytest.mark.usefixtures("vulkan_session")
def test_two_thousand_devices_leave_nothing_behind() -> None:
    # In a process of its own: the test runner's heap is fragmented, and grows by steps whatever the cycles do.
    done = subprocess.run([sys.executable, "-c", DEVICES], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    # A device is worth a megabyte; some pages are what the heap breathes by.
    assert float(done.stdout) < 2500
