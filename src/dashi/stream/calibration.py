"""How fast devices compute, move their memory and begin a dispatch, and how fast states go from one to another.

    for speed in calibrate(["vulkan:0", "cpu"]).devices.values():
        print(speed)

Measured in about a second for each device, and kept in the cache folder; what is read from there is never believed
unless it makes sense. A configuration may say other numbers.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from dashi._cache import cache_folder, read_cache, write_cache
from dashi.errors import InputError
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime._bandwidth import TimedProgram
from dashi.runtime._notebook import html_table
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo
from dashi.runtime.select import open_device

MeasureLink = Callable[[Device, Device, int], float]
"""Seconds that so many bytes take from one device to another."""

_QUICK: Final = stopwatch.Effort(batch=5_000_000, warm=0, total=100_000_000, runs=5)
_WARM: Final = stopwatch.Effort(batch=10_000_000, warm=300_000_000, total=200_000_000, runs=5)
_LARGEST: Final = 1e18
_BYTES: Final = 16 << 20
_FEW: Final = 64


@dataclass(frozen=True)
class DeviceSpeed:
    """What a device does: 10^9 fp32 operations a second in a matrix product, 10^9 bytes a second, those read and those
    written counted both, and the seconds of a dispatch that does next to nothing."""

    spec: str
    name: str
    fp32_gflops: float
    mem_bw_gbs: float
    launch_s: float


@dataclass(frozen=True)
class LinkSpeed:
    """The way from one device to another: bytes a second, and the seconds of a few bytes."""

    source: str
    target: str
    bandwidth: float
    latency: float


@dataclass(frozen=True)
class Calibration:
    """What was measured, by what opens the devices; links by (source, target)."""

    devices: Mapping[str, DeviceSpeed] = field(default_factory=dict[str, DeviceSpeed])
    links: Mapping[tuple[str, str], LinkSpeed] = field(default_factory=dict[tuple[str, str], LinkSpeed])
    unwritten: str = ""
    """Why the cache folder could not keep it; empty where it did."""

    HEAD = ("device", "name", "fp32 GFLOP/s", "memory GB/s", "dispatch µs")

    def rows(self) -> list[tuple[str, ...]]:
        """The table of devices."""
        return [
            (d.spec, d.name, f"{d.fp32_gflops:.3g}", f"{d.mem_bw_gbs:.3g}", f"{d.launch_s * 1e6:.3g}")
            for d in self.devices.values()
        ]

    LINK_HEAD = ("from", "to", "GB/s", "latency µs")

    def link_rows(self) -> list[tuple[str, ...]]:
        """The table of links."""
        return [
            (one.source, one.target, f"{one.bandwidth * 1e-9:.3g}", f"{one.latency * 1e6:.3g}")
            for one in self.links.values()
        ]

    def as_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "devices": [asdict(one) for one in self.devices.values()],
            "links": [asdict(one) for one in self.links.values()],
        }

    def _repr_html_(self) -> str:
        ways = html_table(self.LINK_HEAD, self.link_rows()) if self.links else ""
        return html_table(self.HEAD, self.rows()) + ways


def calibrate(
    devices: Iterable[str], *, fresh: bool = False, links: bool = False, measure_link: MeasureLink | None = None
) -> Calibration:
    """The speeds of devices, by what opens them ("cpu", "vulkan:0"): measured where the cache has none, or `fresh`.
    With `links` also the ways between each two, measured by `measure_link`, else by copies through the host, as the
    links of HOST_STAGING do at worst."""
    names = list(dict.fromkeys(devices))
    if "null" in names:
        raise InputError("the null device computes nothing, so it has no speed.", "leave null away.")
    speeds: dict[str, DeviceSpeed] = {}
    ways: dict[tuple[str, str], LinkSpeed] = {}
    unwritten = ""
    with ExitStack() as stack:
        opened = {name: stack.enter_context(open_device(name)) for name in names}
        for name, device in opened.items():
            speed = None if fresh else _kept_device(name, device.info)
            if speed is None:
                speed = measure_device(device, name)
                unwritten = _keep(_device_file(device.info), asdict(speed)) or unwritten
            speeds[name] = speed
        for first, second in permutations(names, 2) if links else ():
            ends = opened[first].info, opened[second].info
            way = None if fresh or measure_link else _kept_link((first, second), ends)
            if way is None:
                way = link_speed(opened[first], opened[second], (first, second), measure_link or through_host)
                unwritten = _keep(_link_file(ends), asdict(way)) or unwritten
            ways[first, second] = way
    return Calibration(speeds, ways, unwritten)


def measure_device(device: Device, spec: str = "") -> DeviceSpeed:
    """The speed of an open device, measured now."""
    hardware = device.info.is_hardware
    side, count = (2048, 1 << 26) if hardware else (256, 1 << 20)
    count = min(count, device.limits.storage_range // 4)
    a, b = (device.array(np.ones((side, side), np.float32)) for _ in range(2))
    product = device.bind("gemm_tiled", a, b)
    large = device.array(np.ones(count, np.float32))
    scaled = device.bind("scale", large, a=2.0)
    small = device.array(np.ones(_FEW, np.float32))
    launched = device.bind("scale", small, a=2.0)
    launch = _seconds(device, launched, many=64)
    return DeviceSpeed(
        spec or device.info.spec,
        device.info.name,
        2 * side**3 / max(_seconds(device, product) - launch, 1e-9) * 1e-9,
        2 * large.nbytes / max(_seconds(device, scaled) - launch, 1e-9) * 1e-9,
        launch,
    )


def _seconds(device: Device, step: Any, many: int = 1) -> float:
    """Seconds of a step among others of its kind in a program."""
    effort = _WARM if device.info.is_hardware else _QUICK
    times = stopwatch.measure(lambda n: TimedProgram(device.program([step] * (n * many), timed=True)), effort)
    return max(times.median / many, 1e-9)


def link_speed(first: Device, second: Device, names: tuple[str, str], measure: MeasureLink) -> LinkSpeed:
    """Latency and bandwidth of the way from one open device to another."""
    latency = min(measure(first, second, _FEW) for _ in range(5))
    seconds = min(measure(first, second, _BYTES) for _ in range(3))
    return LinkSpeed(*names, _BYTES / max(seconds - latency, 1e-9), max(latency, 1e-9))


def through_host(first: Device, second: Device, nbytes: int) -> float:
    """A download and an upload: what every two devices can do."""
    source, target = first.zeros(nbytes, np.uint8), second.zeros(nbytes, np.uint8)
    first.wait()
    begin = time.perf_counter()
    target.write(source.numpy())
    second.wait()
    return time.perf_counter() - begin


def cached(specs: Mapping[str, DeviceInfo]) -> Calibration:
    """What is known already, of devices by what opens them; nothing is opened or measured."""
    speeds = {spec: speed for spec, info in specs.items() if (speed := _kept_device(spec, info)) is not None}
    ways = {
        (first, second): way
        for first, second in permutations(specs, 2)
        if (way := _kept_link((first, second), (specs[first], specs[second]))) is not None
    }
    return Calibration(speeds, ways)


# The cache


def _identity(info: DeviceInfo) -> str:
    # The NumPy device is as fast as the machine, and a home may be shared by several.
    machine = info.uuid or f"{platform.node()} {platform.processor()} {os.cpu_count()}"
    text = f"{info.vendor_id:x} {info.device_id:x} {machine} {info.driver_version} {info.name}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _device_file(info: DeviceInfo) -> Path:
    return cache_folder() / "calibration" / f"{_identity(info)}.bin"


def _link_file(ends: tuple[DeviceInfo, DeviceInfo]) -> Path:
    return cache_folder() / "calibration" / f"{'-'.join(map(_identity, ends))}.bin"


def _keep(file: Path, document: Mapping[str, Any]) -> str:
    return write_cache(file, json.dumps(document, sort_keys=True).encode())


def _kept_device(spec: str, info: DeviceInfo) -> DeviceSpeed | None:
    numbers = _kept_numbers(_device_file(info), ("fp32_gflops", "mem_bw_gbs", "launch_s"))
    return None if numbers is None else DeviceSpeed(spec, info.name, *numbers)


def _kept_link(names: tuple[str, str], ends: tuple[DeviceInfo, DeviceInfo]) -> LinkSpeed | None:
    numbers = _kept_numbers(_link_file(ends), ("bandwidth", "latency"))
    return None if numbers is None else LinkSpeed(*names, *numbers)


def _kept_numbers(file: Path, keys: Sequence[str]) -> list[float] | None:
    """Numbers of a file of the cache, if all of them make sense."""
    try:
        document: Any = json.loads(read_cache(file) or b"null")
    except (ValueError, RecursionError):
        return None
    entries = cast("dict[Any, Any]", document) if isinstance(document, dict) else {}
    numbers = [entries.get(key) for key in keys]
    sane = all(isinstance(one, float) and math.isfinite(one) and 0 < one < _LARGEST for one in numbers)
    return cast("list[float]", numbers) if sane else None
