"""What runs in a child process: how many workgroups of a device wait for each other and are all there."""

from __future__ import annotations

import sys

import numpy as np

from dashi.runtime._residence import MOST, TIMEOUT
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.select import open_device


def child() -> None:
    """Writes the most workgroups that met, halved, since a multiprocessor may hold two."""
    with open_device(sys.argv[1], timeout=TIMEOUT, validation=False) as device:
        assert isinstance(device, VulkanDevice)
        sys.stdout.write(f"{max_coresident_groups(device) // 2}\n")


def max_coresident_groups(device: VulkanDevice) -> int:
    """The largest number of workgroups that wait for each other and are all there."""
    device.assume_resident(MOST)
    good, bad = 0, 8
    while bad <= MOST and _meet(device, bad):
        good, bad = bad, 2 * bad
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if _meet(device, middle) else (good, middle)
    return good


def _meet(device: VulkanDevice, groups: int) -> bool:
    return bool(np.all(device.run("rendezvous", np.zeros(groups, np.uint32)).numpy() == 1))
