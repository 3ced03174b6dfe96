"""The strategies of a Galerkin step, chosen by what was measured; any can be asked for, and all agree to rounding."""

from __future__ import annotations

from typing import Final, Literal

from dashi.core.operators.operator import Strategy
from dashi.errors import FeatureError, InputError
from dashi.runtime.device import Device

STRATEGIES: Final = ("grid", "triads", "numpy")
ASKED: Final = ("auto", *STRATEGIES)
"""Values of the option `strategy`."""


def estimated_us(
    form: Literal["grid", "triads"], modes: int, states: int, *, software: bool, way: Strategy = "stepwise"
) -> float:
    """About how long a step of four stages takes, by what benchmarks/galerkin_steps.py measured on an H200 and on
    lavapipe: what a stage's dispatches take, and what its work does."""
    triads, points = 0.56 * modes * modes, 6.5 * modes
    if way == "workgroup":
        return 4 * (3 + states * triads / 12) if software else 4 * (1.5 + triads / 600) * (1 + states // 133)
    if software:
        return 4 * (50 + states * triads / 35) if form == "triads" else 4 * (50 + states * points / 6)
    if form == "triads":
        # A workgroup for each part of each mode.
        return 4 * (4.7 + states * 2 * modes * (1.25e-3 + 3.5e-6 * modes))
    return 4 * (15.5 + states / 16 + states * points / 70_000)


def choose(asked: str, device: Device, modes: int, states: int) -> tuple[str, str]:
    """The strategy and a sentence that explains it. Raises FeatureError, InputError."""
    if asked == "numpy" and device.info.type != "reference":
        raise FeatureError(
            f"the strategy numpy needs the NumPy device, and {device.info.name!r} is another.",
            "use auto, grid or triads.",
        )
    if asked in STRATEGIES:
        return asked, f"{asked} (asked for)"
    if asked != "auto":
        raise InputError(f"there is no strategy {asked!r}.", f"use auto or one of {', '.join(STRATEGIES)}.")
    if device.info.type == "reference":
        return "numpy", "numpy: its own transforms are far faster than the portable references, the same to rounding"
    software = device.limits.software
    listed = [estimated_us("triads", modes, states, software=software, way=way) for way in ("stepwise", "workgroup")]
    times = {"grid": estimated_us("grid", modes, states, software=software), "triads": min(listed)}
    best = min(times, key=lambda name: times[name])
    told = ", ".join(f"{way} {us:.0f} us" for way, us in sorted(times.items(), key=lambda item: item[1]))
    return best, f"{best}: the faster of the two for {modes} modes and {states} states, by measure ({told} a step)"
