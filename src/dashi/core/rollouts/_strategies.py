"""By which strategy a rollout runs: the one asked for, or the quickest that is possible, and why."""

from __future__ import annotations

from dashi.core.operators.operator import STRATEGIES, Operator, Strategy
from dashi.errors import FeatureError, InputError
from dashi.kernels.abi import Limits
from dashi.runtime.device import Device

_WORDS: dict[Strategy, str] = {
    "stepwise": "step by step",
    "workgroup": "many steps in a dispatch, each state in one workgroup",
    "tagged": "many steps in a dispatch, over workgroups that pass tagged values",
}


def limits_of(device: Device) -> Limits:
    """What the device allows, with the number of workgroups that run at the same time."""
    from dashi import kernels

    return device.limits_for(kernels.get("rollout_tagged"))


def choose_strategy(operator: Operator, device: Device, states: int, asked: str = "auto") -> tuple[Strategy, str]:
    """The strategy and a sentence that explains it. Raises FeatureError where the one asked for is not possible."""
    limits = limits_of(device)
    unsupported: dict[Strategy, str] = {
        strategy: operator.unsupported_reason(strategy, limits, states) for strategy in STRATEGIES
    }
    if asked != "auto":
        return _asked(operator, asked, unsupported)
    possible: list[Strategy] = [strategy for strategy in STRATEGIES if not unsupported[strategy]]
    if device.info.type == "reference" and "workgroup" in possible:
        return "workgroup", f"{_WORDS['workgroup']}: NumPy prepares the operator once for all of them"
    chosen = min(possible, key=lambda strategy: operator.estimated_us(strategy, limits, states))
    others = [f"{strategy}: {unsupported[strategy]}" for strategy in STRATEGIES if unsupported[strategy]]
    others += [f"{strategy}: expected to be slower" for strategy in possible if strategy != chosen]
    return chosen, f"{_WORDS[chosen]} ({'; '.join(others)})"


def _asked(operator: Operator, asked: str, unsupported: dict[Strategy, str]) -> tuple[Strategy, str]:
    for strategy in STRATEGIES:
        if strategy == asked:
            if unsupported[strategy]:
                others = ", ".join(w for w in STRATEGIES if not unsupported[w])
                raise FeatureError(
                    f"{operator.kind} cannot run by the strategy {strategy!r} here: {unsupported[strategy]}.",
                    f"use auto, or {others}.",
                )
            return strategy, f"{_WORDS[strategy]} (asked for)"
    raise InputError(f"there is no strategy {asked!r}.", f"use auto or one of {', '.join(STRATEGIES)}.")
