"""Choosing a device: `auto`, `cpu`, `null`, `vulkan:0` or `vulkan:part-of-name`, everywhere the same."""

from __future__ import annotations

import logging
from typing import Any, Final

from dashi.errors import DashiError, DeviceNotFoundError, InputError
from dashi.runtime._cpu_device import CpuDevice, cpu_info
from dashi.runtime._instance import Instance, find
from dashi.runtime._null_device import NullDevice
from dashi.runtime._probe import safe_drivers
from dashi.runtime._shapes import whole_number
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo, DeviceList

_ORDER: Final = ("discrete", "virtual", "integrated", "other", "software")
_TIMEOUT: Final = 600.0
_log = logging.getLogger("dashi")


def open_device(
    device: str = "auto", *, timeout: float = _TIMEOUT, validation: bool | None = None, queues: int = 1
) -> Device:
    """Opens a device. `auto` takes the best there is and says which; nothing else ever falls back.

    `timeout` is the longest that one wait may last, in seconds; `validation` switches Vulkan's validation layers on
    (default: the environment variable DASHI_VALIDATION); `queues` is how many compute queues to open.
    """
    _require(device, timeout, queues)
    if device == "cpu":
        return CpuDevice(timeout)
    if device == "null":
        return NullDevice()
    if device == "auto":
        return _best(timeout, validation, queues)
    if not device.startswith("vulkan:") or device == "vulkan:":
        raise DeviceNotFoundError(
            f"{device!r} is not a device.", "write auto, cpu, null, vulkan:0 or vulkan:part-of-name."
        )
    instance = Instance(validation, safe_drivers())
    try:
        handle, info = find(instance, device.removeprefix("vulkan:"))
        return VulkanDevice(instance, handle, info, timeout, queues)
    except BaseException:
        instance.close()
        raise


def _require(device: Any, timeout: Any, queues: Any) -> None:
    """What a device is opened with must be of the right kind, whichever device it is."""
    if not isinstance(device, str):
        number = f'"vulkan:{device}"' if isinstance(device, int) else '"auto", "cpu", "null" or "vulkan:0"'
        raise DeviceNotFoundError(f"{device!r} is not a device: devices are opened by name.", f"pass {number}.")
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise InputError(f"timeout={timeout!r} is no time to wait.", "pass a number of seconds above 0.")
    if whole_number(queues, "the number of queues") < 1:
        raise InputError(f"a device cannot be opened with {queues} queues.", "ask for 1 or more.")


def open_instead(asked: str, queues: int = 1) -> Device:
    """The best device there is, where the one asked for cannot be opened: what is told begins with that one."""
    return _best(_TIMEOUT, None, queues, prefix=f"{asked} cannot be opened, so instead")


def _best(timeout: float, validation: bool | None, queues: int, prefix: str = "auto") -> Device:
    try:
        instance = Instance(validation, safe_drivers())
    except DashiError as error:
        _log.warning("%s: no Vulkan here (%s), so NumPy computes", prefix, error.what)
        return CpuDevice(timeout)
    try:
        devices = sorted(instance.devices(), key=lambda pair: _ORDER.index(rank(pair[1])))
        if devices:
            chosen = VulkanDevice(instance, *devices[0], timeout, queues)
            _log.info("%s: %s (%s)", prefix, chosen.info.name, chosen.info.type)
            return chosen
    except BaseException:
        instance.close()
        raise
    instance.close()
    _log.warning("%s: no Vulkan device here, so NumPy computes", prefix)
    return CpuDevice(timeout)


def list_devices() -> DeviceList:
    """Every device of this machine: Vulkan's in the order of their numbers, then `cpu` and `null`."""
    devices: list[DeviceInfo] = []
    try:
        instance = Instance(validation=False, drivers=safe_drivers())
    except DashiError as error:
        _log.warning("no Vulkan here: %s `dashi doctor` says more", error.what)
    else:
        try:
            devices = [info for _, info in instance.devices()]
        finally:
            instance.close()
    return DeviceList([*devices, cpu_info(), NullDevice().info])


def rank(info: DeviceInfo) -> str:
    """The class by which `auto` prefers devices."""
    return info.type if info.type in _ORDER else "other"
