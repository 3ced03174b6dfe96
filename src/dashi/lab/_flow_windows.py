"""The data of fits and evaluations: windows simulated on the device, or read from runs and files, with what is said of
them while that goes on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.windows import Naming, Windows, read_windows, windows_of
from dashi.flow.windows.simulated import simulated_steps
from dashi.lab.events import Events
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo


@dataclass(frozen=True, eq=False)
class WindowPlan:
    """Which windows are to be simulated: lengths in steps of dt."""

    flow: Flow
    steps: int
    interval: int
    windows: int
    spin_up: int
    initial: str
    options: Mapping[str, Any]
    states: Floats | None = None
    """One for each seed, instead of the initial condition."""


def simulate_windows(
    title: str, plan: WindowPlan, seeds: Sequence[int], device: Device, *, host_fft: bool, events: Events
) -> Windows:
    """Windows from a simulation, with progress."""
    flow = plan.flow
    hint = faster_choice(device.info, host_fft=host_fft)
    if hint:
        events.remark(hint)
    total = simulated_steps(flow, seeds, plan.steps, plan.interval, plan.windows, plan.spin_up)
    events.remark(f"{title}: {total} steps of {flow.n} x {flow.n} for {len(seeds)} seed(s), on {device.info.name}")
    with events.progress(title, total, "steps") as advance:
        return windows_of(
            flow, seeds, device=device, steps=plan.steps, interval=plan.interval, windows=plan.windows,
            spin_up=plan.spin_up, initial=plan.initial, options=plan.options, host_fft=host_fft, progress=advance,
            states=plan.states,
        )  # fmt: skip


def read_with_remarks(
    source: Path, flow: Flow | None, *, steps: int | None, first: int, windows: int | None, naming: Naming,
    events: Events,
) -> Windows:  # fmt: skip
    """Windows from a record; doubts about it are remarks."""
    with events.progress(f"reading {source}", None, ""), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        record = read_windows(source, flow, steps=steps, first=first, windows=windows, naming=naming)
    for doubt in caught:
        events.remark(str(doubt.message))
    return record


def faster_choice(info: DeviceInfo, *, host_fft: bool) -> str | None:
    """The remark that another choice is several times faster on this machine's processor; None where none is."""
    if host_fft or info.type not in ("software", "reference"):
        return None
    if info.type == "reference":
        return "the exact references on a processor are slow; `host_fft=True` is several times faster, and not portable"
    return (
        f'{info.name} is software Vulkan; `device="cpu"` with `host_fft=True` is several times faster here, and not '
        "portable"
    )
