"""Memory that two devices have in common, or as good as that: an array on each, and one way to hand over."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, SupportsIndex, get_args

import numpy as np

from dashi.errors import InputError, LimitError, UnsupportedOperationError
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._events import Event
from dashi.runtime._outside_memory import aligned_bytes, export_buffer, import_buffer, import_host
from dashi.runtime._shapes import whole_number
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.landing import Download, Ticket, require_tickets
from dashi.types import dtype as dtype_of

Mode = Literal["exported", "host", "staging"]
_MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class SharedMemory:
    """Bytes that two devices use. `mode` says how: "exported", memory of the GPU that both are on; "host", memory of
    the host that both have imported; "staging", memory of each, and copies through the host."""

    first: Array
    second: Array
    mode: Mode

    def hand_over(self, after: Iterable[Ticket] = (), *, back: bool = False) -> Event:
        """Makes what the first device wrote available to the second (or back), after the work that `after` names, and
        returns at once: work of the other device that is submitted after the event sees it. By then the other device
        must be done with what was there before."""
        source, target = (self.second, self.first) if back else (self.first, self.second)
        tickets = require_tickets(after) if after else []
        event = target.device.event(f"memory from {source.device.info.spec}")
        if self.mode != "staging":
            event.signal(after=tickets)
            return event
        download = source.device.download(source, after=tickets)

        def upload(error: BaseException | None) -> None:
            _send(download, target, event, error)

        download.when_done(upload)
        return event


def _send(download: Download, target: Array, event: Event, error: BaseException | None) -> None:
    try:
        if error is not None:
            raise error
        # Not after all that was submitted: that is what waits for this.
        target.device.upload(target, download.result(), after=[]).when_done(event.finish)
    except Exception as failure:
        event.finish(failure)


def shared_memory(first: Device, second: Device, nbytes: SupportsIndex, mode: Mode | None = None) -> SharedMemory:
    """Memory of so many bytes for two devices, as an array of bytes on each (`view` and `reshape` give them a form).
    Unless a mode is asked for it is the best that the two can have; one that is asked for and cannot be had is an
    error. Which device may touch it when is the caller's business: `hand_over`, or tickets."""
    for device in (first, second):
        if not isinstance(device, Device):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"{device!r} is no device.", "pass two devices that dashi.open gave.")
        device.require_open()
    size = whole_number(nbytes, "the number of bytes")
    if size < 1:
        raise InputError(f"{size} bytes cannot be shared.", "ask for 1 or more.")
    if mode is not None and mode not in _MODES:
        raise InputError(
            f"mode={mode!r} is none of {', '.join(map(repr, _MODES))}.", "leave it away: the best is taken."
        )
    for device in (first, second):
        if size > device.limits.storage_range:
            raise LimitError(
                f"{size} bytes are more than {device.info.name!r} can bind ({device.limits.storage_range}).",
                "share several smaller pieces.",
            )
    offered = modes(first, second)
    if mode is not None and mode not in offered:
        raise UnsupportedOperationError(
            f"{first.info.name!r} and {second.info.name!r} cannot share memory by mode={mode!r}.",
            f"leave `mode` away, or pass one of {', '.join(map(repr, offered))}.",
        )
    chosen = mode or offered[0]
    if chosen == "exported":
        return _exported(first, second, size)
    if chosen == "host":
        return _host(first, second, size)
    return SharedMemory(first.zeros(size, np.uint8), second.zeros(size, np.uint8), "staging")


def modes(first: Device, second: Device) -> tuple[Mode, ...]:
    """How two devices can share memory, the best first."""
    offered: list[Mode] = []
    if isinstance(first, VulkanDevice) and isinstance(second, VulkanDevice):
        ours, theirs = first.external, second.external
        if ours.memory and theirs.memory and ours.identity == theirs.identity:
            offered.append("exported")
    if all(_alignment(device) for device in (first, second)):
        offered.append("host")
    return (*offered, "staging")


def _alignment(device: Device) -> int:
    """Bytes that host memory must be aligned to for the device to use it; 0 where it cannot."""
    if isinstance(device, CpuDevice):
        return 1
    return device.external.host_alignment if isinstance(device, VulkanDevice) else 0


def _exported(first: Device, second: Device, nbytes: int) -> SharedMemory:
    assert isinstance(first, VulkanDevice)
    assert isinstance(second, VulkanDevice)
    buffer, descriptor = export_buffer(first, nbytes)
    other = import_buffer(second, descriptor, buffer)
    u8 = dtype_of(np.uint8)
    return SharedMemory(Array(first, (nbytes,), u8, buffer), Array(second, (nbytes,), u8, other), "exported")


def _host(first: Device, second: Device, nbytes: int) -> SharedMemory:
    memory = aligned_bytes(nbytes, math.lcm(64, *(_alignment(device) for device in (first, second))))
    arrays = [
        Array(
            device,
            (nbytes,),
            dtype_of(np.uint8),
            import_host(device, memory, nbytes) if isinstance(device, VulkanDevice) else memory[:nbytes],
        )
        for device in (first, second)
    ]
    return SharedMemory(arrays[0], arrays[1], "host")
