"""Which way a rollout runs: the one asked for, or the quickest that is possible, and why."""

from __future__ import annotations

from dashi.core.operators.operator import WAYS, Operator, Way
from dashi.errors import FeatureError, InputError
from dashi.kernels.abi import Limits
from dashi.runtime.device import Device

_WORDS: dict[Way, str] = {
    "stepwise": "step by step",
    "workgroup": "many steps in a dispatch, each state in one workgroup",
    "tagged": "many steps in a dispatch, over workgroups that pass tagged values",
}


def limits_of(device: Device) -> Limits:
    """What the device allows, with the number of workgroups that run at the same time."""
    from dashi import kernels

    return device.limits_for(kernels.get("rollout_tagged"))


def choose_way(operator: Operator, device: Device, states: int, asked: str = "auto") -> tuple[Way, str]:
    """The way and a sentence that explains it. Raises FeatureError where the way asked for is not possible."""
    limits = limits_of(device)
    hindered: dict[Way, str] = {way: operator.hindrance(way, limits, states) for way in WAYS}
    if asked != "auto":
        return _asked(operator, asked, hindered)
    possible: list[Way] = [way for way in WAYS if not hindered[way]]
    if device.info.type == "reference" and "workgroup" in possible:
        return "workgroup", f"{_WORDS['workgroup']}: NumPy prepares the operator once for all of them"
    chosen = min(possible, key=lambda way: operator.microseconds(way, limits, states))
    others = [f"{way}: {hindered[way]}" for way in WAYS if hindered[way]]
    others += [f"{way}: expected to be slower" for way in possible if way != chosen]
    return chosen, f"{_WORDS[chosen]} ({'; '.join(others)})"


def _asked(operator: Operator, asked: str, hindered: dict[Way, str]) -> tuple[Way, str]:
    for way in WAYS:
        if way == asked:
            if hindered[way]:
                others = ", ".join(w for w in WAYS if not hindered[w])
                raise FeatureError(
                    f"{operator.kind} cannot run the way {way!r} here: {hindered[way]}.", f"use auto, or {others}."
                )
            return way, f"{_WORDS[way]} (asked for)"
    raise InputError(f"there is no way {asked!r}.", f"use auto or one of {', '.join(WAYS)}.")
