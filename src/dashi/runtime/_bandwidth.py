"""How fast a device copies its own memory: the yardstick of everything that moves data."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime._vk_record import RawCommands, RawSubmission
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program

_HARDWARE_BYTES: Final = 1 << 30
_SOFTWARE_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class Bandwidth:
    """Bytes per second, those read and those written counted both: by the driver's own copy, by the kernel `scale`."""

    copy: float
    scale: float
    nbytes: int

    @property
    def best(self) -> float:
        """The faster of the two: what the memory can do."""
        return max(self.copy, self.scale)


def effort_for(device: Device) -> stopwatch.Effort:
    """How long to measure on this device."""
    return stopwatch.HARDWARE if device.info.is_hardware else stopwatch.SOFTWARE


class TimedProgram:
    """A recorded program as a batch, timed on the device's own clock where it has one."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def run(self) -> int:
        timing = self._program.run_timed()
        return timing.wall if timing.device is None else timing.device

    def close(self) -> None:
        self._program.close()


def measure(device: Device) -> Bandwidth:
    """Copies an array that is larger than any cache, on the device, both ways."""
    source, target = _large_arrays(device)
    step = device.bind("scale", source, out=target, a=2.0)
    copied = stopwatch.measure(lambda n: _copies(device, source, target, n), effort_for(device))
    scaled = stopwatch.measure(lambda n: TimedProgram(device.program([step] * n, timed=True)), effort_for(device))
    moved = 2 * source.nbytes
    return Bandwidth(moved / copied.median, moved / scaled.median, source.nbytes)


def measure_copy(device: Device) -> float:
    """Bytes per second of the driver's own copy alone, those read and those written counted both."""
    source, target = _large_arrays(device)
    copied = stopwatch.measure(lambda n: _copies(device, source, target, n), effort_for(device))
    return 2 * source.nbytes / copied.median


def _large_arrays(device: Device) -> tuple[Array, Array]:
    wanted = _HARDWARE_BYTES if device.info.is_hardware else _SOFTWARE_BYTES
    count = min(wanted, device.limits.storage_range) // 4
    return device.array(np.ones(count, np.float32)), device.empty(count)


def _copies(device: Device, source: Array, target: Array, times: int) -> stopwatch.TimedCalls:
    if isinstance(device, VulkanDevice):
        return _RecordedCopies(device, source, target, times)
    return _HostCopies(device, source, target, times)


class _RecordedCopies:
    """vkCmdCopyBuffer, several times in order, on the compute queue: a transfer queue may be slower than the memory."""

    def __init__(self, device: VulkanDevice, source: Array, target: Array, times: int) -> None:
        self._device = device
        self._arrays = (source, target)
        self._stamps = device.raw.create_query_pool(2)
        self._commands = commands = RawCommands(device.raw, device.queue.family)
        commands.begin()
        commands.reset_queries(self._stamps, 2)
        commands.timestamp(self._stamps, 0)
        for _ in range(times):
            commands.in_order()
            commands.copy((source.storage.handle, 0), (target.storage.handle, 0), source.nbytes)
        commands.timestamp(self._stamps, 1)
        commands.end()
        self._submission = RawSubmission(device.raw, [commands.handle], device.queue.timeline)

    def run(self) -> int:
        self._device.queue.wait(self._device.queue.submit(self._submission))
        start, end = self._device.raw.query_results(self._stamps, 2)
        return round((end - start) * self._device.info.timestamp_ns)

    def close(self) -> None:
        self._commands.close()
        self._device.raw.destroy("QueryPool", self._stamps)


class _HostCopies:
    """Copies by a device that works as soon as it is told."""

    def __init__(self, device: Device, source: Array, target: Array, times: int) -> None:
        self._device, self._source, self._target, self._times = device, source, target, times

    def run(self) -> int:
        start = time.perf_counter_ns()
        for _ in range(self._times):
            self._device.copy(self._source, self._target).wait()
        return time.perf_counter_ns() - start

    def close(self) -> None:
        """Nothing to free."""
