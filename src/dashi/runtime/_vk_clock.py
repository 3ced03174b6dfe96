"""Raw calls for clocks: the driver's reading of its own clock and the host's at one moment."""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Final

from dashi.runtime import _vk as vk
from dashi.runtime import _vk_structs as s
from dashi.runtime._clock import Clock
from dashi.runtime._sync import Queue
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawCommands, RawSubmission

_DEVICE, _MONOTONIC = 0, 1
_READINGS: Final = 5


def can_calibrate(fns: vk.Functions, physical: int, extensions: frozenset[str]) -> bool:
    """Whether the driver reads its clock together with the one that Python's `perf_counter` reads on this system."""
    if "VK_EXT_calibrated_timestamps" not in extensions or not sys.platform.startswith("linux"):
        return False
    count = ctypes.c_uint32()
    fns.GetPhysicalDeviceCalibrateableTimeDomainsEXT(physical, ctypes.byref(count), None)
    domains = (ctypes.c_uint32 * count.value)()
    fns.GetPhysicalDeviceCalibrateableTimeDomainsEXT(physical, ctypes.byref(count), domains)
    return {_DEVICE, _MONOTONIC} <= set(domains)


def calibrated(raw: RawDevice, ns_per_tick: float) -> Clock:
    """Both clocks as the driver reads them together; the best of a few readings."""
    infos = (s.CalibratedTimestampInfoEXT * 2)(
        s.CalibratedTimestampInfoEXT(timeDomain=_DEVICE), s.CalibratedTimestampInfoEXT(timeDomain=_MONOTONIC)
    )
    stamps, deviation = (ctypes.c_uint64 * 2)(), ctypes.c_uint64()
    best: Clock | None = None
    for _ in range(_READINGS):
        call = raw.fns.GetCalibratedTimestampsEXT(raw.handle, 2, infos, stamps, ctypes.byref(deviation))
        vk.check(call, "vkGetCalibratedTimestampsEXT")
        if best is None or deviation.value < best.deviation_ns:
            best = Clock(stamps[1], stamps[0], ns_per_tick, deviation.value, calibrated=True)
    assert best is not None
    return best


def bracketed(raw: RawDevice, queue: Queue, ns_per_tick: float) -> Clock:
    """The device's clock between two readings of the host's; the narrowest of a few such brackets."""
    pool = raw.create_query_pool(1)
    commands = RawCommands(raw, queue.family)
    try:
        commands.begin()
        commands.reset_queries(pool, 1)
        commands.timestamp(pool, 0)
        commands.end()
        submission = RawSubmission(raw, [commands.handle], queue.timeline)
        best: Clock | None = None
        for _ in range(_READINGS):
            before = time.perf_counter_ns()
            queue.wait(queue.submit(submission))
            after = time.perf_counter_ns()
            half = (after - before) // 2
            if best is None or half < best.deviation_ns:
                best = Clock(before + half, raw.query_results(pool, 1)[0], ns_per_tick, half, calibrated=False)
        assert best is not None
        return best
    finally:
        commands.close()
        raw.destroy("QueryPool", pool)
