"""Never stall the strongest device: what is to be done where the sink waits, decided from measured times alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dashi.stream._predict import predict

STARVED: Final = 0.02
"""The share of its time that the sink may wait before something is done about it."""
_GAIN: Final = 0.99
"""A move is worth it where the period falls below this share of what it was."""

Action = Literal["widen", "shrink", "move"]


@dataclass(frozen=True)
class ChainTimes:
    """A chain over some items: seconds for each item of each stage and of each link between two, the share of its time
    that the sink starved, windows of those links and the widest they may be. `lighter` says which links may carry less;
    `movable` has, for each stage, the seconds of its first op where the stage before may run it, or None."""

    compute: Sequence[float]
    transfer: Sequence[float]
    windows: Sequence[int]
    widest: Sequence[int]
    starved: float
    lighter: Sequence[bool]
    movable: Sequence[float | None]


@dataclass(frozen=True)
class Decision:
    """What is done: link `at` (between stage `at` and the next) gets a wider window or carries less, or the first op of
    stage `at` moves to the one before. `reason` says why."""

    action: Action
    at: int
    reason: str


def decide(times: ChainTimes, names: Sequence[str]) -> Decision | None:
    """The first remedy of three that helps: a wider window, a smaller payload, work moved to the left; None where the
    sink does not starve, or nothing helps. `names` are those of the stages."""
    if times.starved <= STARVED or len(times.compute) < 2:
        return None
    why = f"{names[-1]} starved {times.starved:.0%} of the time"
    return _wider(times, names, why) or _lighter(times, names, why) or _moved(times, names, why)


def _wider(times: ChainTimes, names: Sequence[str], why: str) -> Decision | None:
    slowest = max([*times.compute, *times.transfer])
    slots = [times.compute[j] + times.transfer[j] + times.compute[j + 1] for j in range(len(times.windows))]
    held = [slot / window for slot, window in zip(slots, times.windows, strict=True)]
    fastest_possible = times.compute[-1] >= slowest * _GAIN  # then the sink waits for nothing but fluctuations
    for j in sorted(range(len(held)), key=lambda j: -held[j]):
        if times.windows[j] < times.widest[j] and (held[j] > slowest or fastest_possible):
            slot = f"a slot of {names[j]}->{names[j + 1]} is in use for {slots[j] * 1e3:.3g} ms an item"
            return Decision("widen", j, f"{why}; {slot}: window {times.windows[j]} -> {times.windows[j] + 1}")
    return None


def _lighter(times: ChainTimes, names: Sequence[str], why: str) -> Decision | None:
    slowest = max([*times.compute, *times.transfer])
    for j, seconds in enumerate(times.transfer):
        if times.lighter[j] and seconds >= slowest:
            text = f"{why}; {names[j]}->{names[j + 1]} transfers for {seconds * 1e3:.3g} ms an item, the longest of all"
            return Decision("shrink", j, f"{text}: it carries less from now on")
    return None


def _moved(times: ChainTimes, names: Sequence[str], why: str) -> Decision | None:
    now = predict(times.compute, times.transfer, times.windows)[0].period
    best: tuple[float, int] | None = None
    for i, seconds in enumerate(times.movable):
        if i == 0 or seconds is None:
            continue
        after = [*times.compute]
        after[i] -= seconds
        after[i - 1] += seconds
        period = predict([max(0.0, one) for one in after], times.transfer, times.windows)[0].period
        if period < now * _GAIN and (best is None or period < best[0]):
            best = period, i
    if best is None:
        return None
    period, i = best
    text = f"{why}; {names[i]} is slower than {names[i - 1]}"
    return Decision("move", i, f"{text}: its first op moves there, {now * 1e3:.3g} -> {period * 1e3:.3g} ms an item")
