"""What a driver does not say is tried at defined moments: loops when a device is opened, workgroups that run at the
same time when a kernel needs to know. Properties tell what is known, and do nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from dashi import kernels
from dashi.runtime import _vulkan_device as vulkan_device
from dashi.runtime import open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.info import DeviceInfo


def refuse(*words: Any, **named: Any) -> Any:
    raise AssertionError(f"work was done: {words}")


@pytest.fixture
def untried(fresh_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> VulkanDevice:
    """A device whose workgroups nobody has tried to count, as a GPU is on the first day."""
    monkeypatch.setattr(fresh_vulkan, "_resident", None)
    return fresh_vulkan


def test_limits_features_and_resident_do_no_work(untried: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted = [queue.submitted for queue in untried.queues]
    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(vulkan_device, "resident_groups", refuse)
    monkeypatch.setattr(vulkan_device, "loop_limit", refuse)
    monkeypatch.setattr(untried, "run", refuse)
    for _ in range(2):
        assert untried.limits.loop_trips >= 65000
        assert untried.features == untried.info.features
        assert untried.resident == 0
    assert [queue.submitted for queue in untried.queues] == submitted


def test_a_probe_is_made_once_and_its_facts_stay(untried: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[DeviceInfo] = []

    def count(info: DeviceInfo) -> int:
        tried.append(info)
        return 64 // len(tried)

    monkeypatch.setattr(vulkan_device, "resident_groups", count)
    limits = untried.limits
    untried.probe()
    untried.probe()
    assert (untried.resident, tried) == (64, [untried.info])
    assert untried.features == untried.info.features | {"rendezvous"}
    assert untried.limits == limits


def test_a_kernel_whose_workgroups_wait_has_them_tried_and_no_other(
    untried: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vulkan_device, "resident_groups", refuse)
    untried.run("axpy", untried.empty(3), untried.empty(3), a=1.0)
    assert untried.limits_for(kernels.get("axpy")).resident == 0
    monkeypatch.setattr(vulkan_device, "resident_groups", lambda _: 48)
    assert untried.limits_for(kernels.get("rollout_tagged")).resident == 48


def test_loops_are_tried_when_a_device_is_opened_for_the_first_time_and_then_remembered(
    vulkan: VulkanDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path))
    with open_device(vulkan.info.spec) as first:
        assert (tmp_path / "probes" / f"{first.info.uuid}-loops.bin").is_file()
        assert first.limits == vulkan.limits
    with open_device(vulkan.info.spec) as second:
        assert isinstance(second, VulkanDevice)
        assert [queue.submitted for queue in second.queues] == [0] * len(second.queues)
        assert second.limits == vulkan.limits


def test_a_device_whose_loops_cannot_be_tried_is_closed_again(
    vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: VulkanDevice) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(vulkan_device, "loop_limit", lost)
    with pytest.raises(KeyboardInterrupt):
        open_device(vulkan.info.spec)


def test_devices_that_know_all_of_themselves_have_nothing_to_try() -> None:
    for device in (CpuDevice(), NullDevice()):
        with device:
            before = device.limits, device.features
            device.probe()
            assert (device.limits, device.features) == before
