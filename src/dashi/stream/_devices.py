"""What devices a configuration names are, and how fast: from the machine, from calibration, or from the file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from dashi.errors import DeviceNotFoundError
from dashi.runtime._cpu_device import cpu_info
from dashi.runtime.info import DeviceInfo
from dashi.runtime.select import list_devices
from dashi.stream._model import DeviceSpec
from dashi.stream.calibration import Calibration, DeviceSpeed, cached, calibrate

_NOMINAL: Final = {"GPU": (1000.0, 100.0, 10e-6), "CPU": (5.0, 5.0, 50e-6)}
"""GFLOP/s, GB/s and seconds of a dispatch where nothing was measured: good for nothing but an order."""


def host_cores() -> int:
    """Cores of the host that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def known_devices(specs: Iterable[str]) -> dict[str, DeviceInfo]:
    """What devices of this machine say of themselves, by what opens them. Vulkan is asked only where it is named."""
    asked = list(dict.fromkeys(specs))
    infos: dict[str, DeviceInfo] = {"cpu": cpu_info()}
    there: list[DeviceInfo] = [] if all(spec == "cpu" for spec in asked) else list_devices()
    for spec in asked:
        if spec not in infos:
            infos[spec] = _named(spec, there)
    return {spec: infos[spec] for spec in asked}


def _named(spec: str, there: list[DeviceInfo]) -> DeviceInfo:
    """The device that opening it would give."""
    exact = [info for info in there if info.spec == spec]
    kind, _, part = spec.partition(":")
    named = kind == "vulkan" and part and not part.isdigit()
    vulkan = [info for info in there if info.spec.startswith("vulkan:")] if named else []
    matching = [info for info in vulkan if part.lower() in info.name.lower()]
    if not exact and not matching:
        names = ", ".join(f"{info.spec} ({info.name})" for info in there)
        raise DeviceNotFoundError(
            f"there is no device {spec!r}; there are: {names}.",
            "bind the name to one of these in `devices` (`dashi devices list` shows them).",
        )
    return (exact or matching)[0]


def completed(
    devices: Mapping[str, DeviceSpec], measured: Calibration | None, *, measure: bool, needed: bool
) -> tuple[dict[str, DeviceSpec], Calibration, tuple[str, ...]]:
    """The devices with features and speeds, what is known of the ways between them, and notes of where speeds come
    from. Those of devices are looked for only where they are `needed`; what is neither given nor kept is measured, or
    else taken for nominal."""
    infos = known_devices(device.spec for device in devices.values())
    known, own = cached(infos), measured or Calibration()
    speeds, links = dict(own.devices), {**known.links, **own.links}
    unsaid = {d.spec for d in devices.values() if not (d.fp32_gflops and d.mem_bw_gbs and d.launch_s)}
    asked = unsaid - {*speeds, "null"}
    notes: list[str] = []
    if needed and asked:
        speeds |= {spec: speed for spec, speed in known.devices.items() if spec in asked}
        if missing := sorted(asked - set(speeds)):
            if measure:
                speeds |= calibrate(missing).devices
                notes.append(f"measured now: {', '.join(missing)} (kept for the next time)")
            else:
                notes.append(f"never measured, so times are rough: {', '.join(missing)} (dashi devices calibrate)")
    ready = {name: _completed(device, infos[device.spec], speeds) for name, device in devices.items()}
    return ready, Calibration(speeds, links), tuple(notes)


def _completed(device: DeviceSpec, info: DeviceInfo, speeds: Mapping[str, DeviceSpeed]) -> DeviceSpec:
    kind = "CPU" if info.type == "reference" else device.kind
    gflops, bandwidth, launch = _NOMINAL[kind]
    speed = speeds.get(device.spec)
    if speed is not None:
        gflops, bandwidth, launch = speed.fp32_gflops, speed.mem_bw_gbs, speed.launch_s
    busy = 1 if info.type == "reference" else host_cores() if info.type == "software" else 0
    return replace(
        device,
        kind=kind,
        fp32_gflops=device.fp32_gflops or gflops,
        mem_bw_gbs=device.mem_bw_gbs or bandwidth,
        launch_s=device.launch_s or launch,
        features=device.features or info.features,
        host_cores=busy,
    )
