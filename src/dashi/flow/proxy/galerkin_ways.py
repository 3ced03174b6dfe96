"""Which way a Galerkin step takes, by what was measured; any can be asked for, and all agree to rounding."""

from __future__ import annotations

from typing import Final, Literal

from dashi.core.operator import Way
from dashi.errors import FeatureError, InputError
from dashi.runtime.device import Device

WAYS: Final = ("grid", "triads", "numpy")


def microseconds(
    form: Literal["grid", "triads"], modes: int, states: int, *, software: bool, way: Way = "stepwise"
) -> float:
    """About how long a step of four stages takes: what a stage's dispatches take, and what its work does."""
    triads = 0.56 * modes * modes
    if way == "workgroup":
        return 4 * (3 + states * triads / 12) if software else 4 * (0.7 + triads / 8_000) * (1 + states // 133)
    points = 6.5 * modes
    if software:
        return 4 * (50 + states * triads / 35) if form == "triads" else 4 * (50 + states * points / 6)
    return 4 * (4 + states * triads / 20_000) if form == "triads" else 4 * (14 + states * points / 16_000)


def choose(asked: str, device: Device, modes: int, states: int) -> tuple[str, str]:
    """The way and a sentence that explains it."""
    if asked == "numpy" and device.info.type != "reference":
        raise FeatureError(
            f"the way numpy needs the NumPy device, and {device.info.name!r} is another.", "use auto, grid or triads."
        )
    if asked in WAYS:
        return asked, f"{asked} (asked for)"
    if asked != "auto":
        raise InputError(f"there is no way {asked!r}.", f"use auto or one of {', '.join(WAYS)}.")
    if device.info.type == "reference":
        return "numpy", "numpy: its own transforms are far faster than the portable references, the same to rounding"
    software = device.limits.software
    times = {
        "grid": microseconds("grid", modes, states, software=software),
        "triads": microseconds("triads", modes, states, software=software),
    }
    best = min(times, key=lambda way: times[way])
    told = ", ".join(f"{way} {us:.0f} us" for way, us in sorted(times.items(), key=lambda item: item[1]))
    return best, f"{best}: the faster of the two for {modes} modes and {states} states, by measure ({told} a step)"
