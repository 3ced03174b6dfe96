"""Windows from simulations: seeds, a spin-up that nobody sees, then frames at even times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.flow.equations import Flow, Stochastic
from dashi.flow.grid import Floats
from dashi.flow.initial import ensemble, seed_list
from dashi.flow.simulation import simulate
from dashi.flow.windows.windows import Origin, Windows, cut, frames_in
from dashi.runtime.device import Device
from dashi.runtime.using import using_device

_LOOK: Final = 100
"""Steps between checks of the Courant number and of energy."""
MOST_BYTES: Final = 1 << 36
"""Bytes of all windows together: more is a slip of the keys, or wants a run folder (a simulation with `out=`)."""


def windows_of(
    flow: Flow, seeds: int | Sequence[int], *, device: Device | str, steps: int, interval: int = 10, windows: int = 1,
    spin_up: int = 0, initial: str = "random", options: Mapping[str, Any] | None = None, host_fft: bool = False,
    progress: Callable[[int], None] | None = None, states: Floats | None = None,
) -> Windows:  # fmt: skip
    """Windows of `steps` steps with a frame every `interval`, so many of each seed, one after another without a shared
    frame, after `spin_up` steps from the initial condition. A seed decides initial condition and kicks. `progress` is
    told of steps, `simulated_steps` of them in all. `states`, one for each seed, stand in for the initial condition of
    that name. Ctrl-C raises KeyboardInterrupt: half of the data is not the data.
    """
    if not isinstance(device, Device):
        with using_device(device) as opened:
            return windows_of(
                flow, seeds, device=opened, steps=steps, interval=interval, windows=windows, spin_up=spin_up,
                initial=initial, options=options, host_fft=host_fft, progress=progress, states=states,
            )  # fmt: skip
    seeds = seed_list(seeds)
    _check(seeds, interval, windows, spin_up)
    if device.info.type == "null":
        raise InputError("the null device computes nothing, so no windows come of it.", "use another device.")
    advance = progress or _silent
    frames = frames_in(steps, interval)
    place = {seed: j for j, seed in enumerate(seeds)}

    def start(solved: Flow, group: Sequence[int]) -> Floats:
        if states is None:
            return ensemble(solved, initial, group, **(options or {}))
        return states[[place[seed] for seed in group]]

    parts = [
        _simulated(flow, group, device, frames, interval, windows, spin_up, start, host_fft, advance)
        for group in _groups(flow, seeds)
    ]
    return Windows(
        flow,
        interval,
        np.concatenate([part.fields for part in parts]),
        sum((part.seeds for part in parts), ()),
        sum((part.starts for part in parts), ()),
        Origin(initial, dict(options or {}), spin_up) if states is None else None,
    )


def simulated_steps(flow: Flow, seeds: Sequence[int], steps: int, interval: int, windows: int, spin_up: int) -> int:
    """The steps that `progress` will have been told of at the end."""
    return len(_groups(flow, seeds)) * (spin_up + (windows * (steps // interval + 1) - 1) * interval)


def require_room(flow: Flow, seeds: int, windows: int, frames: int) -> None:
    """Refuses windows that no memory would hold."""
    size = seeds * windows * frames * flow.n**2 * flow.numpy_dtype.itemsize
    if size > MOST_BYTES:
        raise InputError(
            f"{seeds} seeds with {windows} windows of {frames} frames are {size / 2**30:,.0f} GiB.",
            f"ask for fewer or shorter windows, or for fewer frames: {MOST_BYTES >> 30} GiB at most.",
        )


def _check(seeds: Sequence[int], interval: int, windows: int, spin_up: int) -> None:
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"the seeds are {list(seeds)}.", "name at least one seed, and none twice.")
    for name, value, least in (("interval", interval, 1), ("windows", windows, 1), ("spin_up", spin_up, 0)):
        if value < least:
            raise InputError(f"{name} is {value}.", f"use {least} or more.")


def _groups(flow: Flow, seeds: Sequence[int]) -> list[list[int]]:
    """Seeds that run together. Kicks of member j are those of the first seed plus j: only seeds that follow fit."""
    groups: list[list[int]] = []
    for seed in seeds:
        together = groups and (not isinstance(flow.forcing, Stochastic) or seed == groups[-1][-1] + 1)
        if together:
            groups[-1].append(seed)
        else:
            groups.append([seed])
    return groups


def _simulated(
    flow: Flow, seeds: Sequence[int], device: Device, frames: int, interval: int, windows: int, spin_up: int,
    start: Callable[[Flow, Sequence[int]], Floats], host_fft: bool, progress: Callable[[int], None],
) -> Windows:  # fmt: skip
    require_room(flow, len(seeds), windows, frames)
    forcing = flow.forcing
    solved = replace(flow, forcing=replace(forcing, seed=seeds[0])) if isinstance(forcing, Stochastic) else flow
    states = start(solved, seeds)
    if spin_up:
        states = simulate(
            solved, states, spin_up, device=device, look_every=min(_LOOK, spin_up), host_fft=host_fft,
            progress=progress,
        ).state  # fmt: skip
    record = np.empty((len(seeds), windows * frames, flow.n, flow.n), flow.numpy_dtype)

    def keep(step: int, fields: Mapping[str, Floats]) -> None:
        record[:, step // interval] = fields["vorticity"]

    length = (windows * frames - 1) * interval
    simulate(
        solved, states, length, device=device, frame_every=interval, look_every=min(_LOOK, length), frame=keep,
        host_fft=host_fft, progress=progress,
    )  # fmt: skip
    return cut(flow, interval, record, tuple(seeds), spin_up, frames)


def _silent(_: int) -> None:
    """Takes a count of finished steps, and shows nothing."""
