"""What the host pays: to bind and record a step, to resubmit a batch, to feed it, and to wait for other queues.

from dashi.bench import host
for what, cost in host.measure("vulkan:0").items():
    print(what, cost.ours, cost.ratio)
"""

from __future__ import annotations

import dashi
from dashi.errors import DeviceNotFoundError
from dashi.runtime import _hostcost as hostcost
from dashi.runtime._hostcost import HostCost
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

QUEUES = 3
"""Compute queues that the device is opened with: one that waits for two."""


def open_vulkan(device: str) -> VulkanDevice:
    """A Vulkan device without validation layers, which would be measured too. Raises DeviceNotFoundError for others."""
    opened = dashi.open(device, validation=False, queues=QUEUES)
    if not isinstance(opened, VulkanDevice):
        opened.close()
        raise _not_vulkan(opened)
    return opened


def measure(device: str | Device = "auto") -> dict[str, HostCost]:
    """Microseconds of our calls beside the bare ones that they need, by what is done; the best of several rounds. An
    open device needs three queues."""
    if not isinstance(device, Device):
        with open_vulkan(device) as opened:
            return measure(opened)
    if not isinstance(device, VulkanDevice):
        raise _not_vulkan(device)
    return {
        "record a step": hostcost.recording(device),
        "resubmit and wait": hostcost.resubmission(device),
        "bind a step": hostcost.binding(device),
        "feed, run, fetch 64 KiB": hostcost.feeding(device),
        "the same by copies": hostcost.feeding(device, direct=False),
        "resubmit after two queues": hostcost.waiting(device),
    }


def _not_vulkan(device: Device) -> DeviceNotFoundError:
    return DeviceNotFoundError(
        f"{device.info.name!r} is not a Vulkan device, and only those record and submit.",
        'install a driver (`dashi doctor` says how), or name one: `device="vulkan:0"`.',
    )
