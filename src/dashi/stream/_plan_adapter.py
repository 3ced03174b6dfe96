"""Never stall the strongest device, for chains on devices: what `decide` says of measured times becomes another plan.

A chain that is to change lets what is under way come out first, which costs about a latency; so looks become rarer
after each change.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dashi.errors import DashiError
from dashi.stream._adapt import ChainTimes, Decision, decide
from dashi.stream._device_chain import DeviceChain
from dashi.stream._model import PayloadSchema, StageSpec, StreamConfig
from dashi.stream._op import StreamOp
from dashi.stream._plan import PlannedLink, StreamPlan
from dashi.stream._renewal import RenewedChain
from dashi.stream._stage_times import StageUse
from dashi.stream._times import coded_bytes
from dashi.stream.planning import make_plan

EVERY: Final = 32
"""Items between two looks at first."""
_WIDEST: Final = 4
"""How many times its first width a window may become."""
_LOSSY_TIER: Final = 2
"""The least tier at which payloads may lose precision unasked."""


@dataclass(frozen=True)
class _Measurement:
    """What stood at one moment: the time, items out, and seconds of stages so far."""

    at: float
    items: int
    seconds: Sequence[StageUse]


class PlanAdapter:
    """Looks at a chain after every so many items. `ops` are those that `make_plan` was given, `items` how many come."""

    def __init__(self, chain: RenewedChain, ops: Mapping[str, StreamOp], items: int) -> None:
        self._chain, self._ops, self._items = chain, ops, items
        self._every, self._due = EVERY, EVERY
        self._widest = [_WIDEST * link.window for link in chain.plan.links]
        self._refused = set[tuple[str, int]]()
        self._before: _Measurement | None = None
        self._watched: DeviceChain | None = None

    def turn(self, chain: DeviceChain, out: int) -> StreamPlan | None:
        """An item came out; the plan to go on with, where it is to be another."""
        if chain is not self._watched:  # the first item of a chain: times count from here
            self._watched, self._before, self._due = chain, self._look(chain, out), out + self._every
        if out < self._due or out + self._every > self._items or self._before is None:
            return None
        now = self._look(chain, out)
        times, self._before, self._due = self._times(self._before, now), now, out + self._every
        decision = None if times is None else decide(times, [stage.id for stage in chain.stages])
        if decision is None:
            return None
        return self._changed(decision, out)

    def _changed(self, decision: Decision, item: int) -> StreamPlan | None:
        place = self._chain.plan.stages[decision.at].stage.id
        try:
            plan = _planned(self._chain.plan, decision, self._ops)
        except DashiError as error:
            self._refused.add((decision.action, decision.at))
            self._chain.note(f"not {decision.action}", place, item, f"{decision.reason}; {error.what}")
            return None
        self._every *= 2
        self._chain.note(decision.action, place, item, decision.reason)
        return plan

    def _look(self, chain: DeviceChain, out: int) -> _Measurement:
        totals = [] if chain.clock is None else [replace(total) for total in chain.clock.totals]
        return _Measurement(time.perf_counter(), out, totals)

    def _times(self, before: _Measurement, now: _Measurement) -> ChainTimes | None:
        plan, items = self._chain.plan, now.items - before.items
        timed = [b.items - a.items for a, b in zip(before.seconds, now.seconds, strict=True)]
        if not timed or not all(timed):
            return None
        busy = [(b.busy - a.busy) / n for a, b, n in zip(before.seconds, now.seconds, timed, strict=True)]
        linked = [(b.linked - a.linked) / n for a, b, n in zip(before.seconds, now.seconds, timed, strict=True)][1:]
        windows = [link.window for link in plan.links]
        tier = plan.config.determinism_tier
        return ChainTimes(
            compute=busy,
            transfer=linked,
            windows=windows,
            widest=self._widest,
            starved=max(0.0, 1.0 - busy[-1] * items / max(now.at - before.at, 1e-9)),
            lighter=[tier >= _LOSSY_TIER and _can_lighten(link) for link in plan.links],
            movable=[
                None if ("move", i) in self._refused else movable_seconds(plan, i, busy[i])
                for i in range(len(plan.stages))
            ],
        )


def movable_seconds(plan: StreamPlan, i: int, seconds: float) -> float | None:
    """What the first op of stage i takes of its seconds, where the rules let the stage before run it; else None. The
    stage must have another op."""
    planned = plan.stages[i]
    if i == 0 or len(planned.ops) < 2 or not planned.ops[0].spec.migratable:
        return None
    first, before = planned.ops[0].spec.id, plan.stages[i - 1].stage.id
    scores = {(c.op, c.stage): c.seconds for c in plan.candidates}
    if scores.get((first, before)) is None:
        return None
    own = [scores.get((op.spec.id, planned.stage.id)) or 0.0 for op in planned.ops]
    return seconds * (own[0] / sum(own) if sum(own) > 0 else 1 / len(own))


def _can_lighten(link: PlannedLink) -> bool:
    return link.link.codec == "none" and any(field.dtype == "f32" for field in link.schema.values())


def _planned(plan: StreamPlan, decision: Decision, ops: Mapping[str, StreamOp]) -> StreamPlan:
    """The plan after a decision."""
    links = list(plan.links)
    if decision.action == "widen":
        links[decision.at] = replace(links[decision.at], window=links[decision.at].window + 1)
        return replace(plan, links=tuple(links))
    if decision.action == "shrink":
        link = links[decision.at]
        nbytes = coded_bytes("f16", PayloadSchema(link.schema), {})
        note = "f16 loses precision: the run's record names it"
        links[decision.at] = replace(
            link, link=replace(link.link, codec="f16"), nbytes=nbytes, notes=(*link.notes, note)
        )
        return replace(plan, links=tuple(links))
    return _moved(plan, decision.at, ops)


def _moved(plan: StreamPlan, i: int, ops: Mapping[str, StreamOp]) -> StreamPlan:
    """The first op of stage i runs in the stage before, if the rules hold for the whole plan then."""
    names = [
        [*(op.spec.id for op in planned.ops), *(op.spec.id for op in planned.observers)] for planned in plan.stages
    ]
    count = len(plan.stages[i - 1].ops)
    names[i - 1].insert(count, names[i].pop(0))
    stages = tuple(
        replace(planned.stage, device=planned.device.id, ops=tuple(mine))
        for planned, mine in zip(plan.stages, names, strict=True)
    )
    moved = make_plan(_pinned(plan, stages), ops=ops, source=plan.stages[0].taken, measure=False)
    # What was raised or made lighter stays so.
    links = tuple(
        replace(new, window=old.window, link=old.link) for new, old in zip(moved.links, plan.links, strict=True)
    )
    return replace(moved, links=links)


def _pinned(plan: StreamPlan, stages: tuple[StageSpec, ...]) -> StreamConfig:
    devices = {**plan.config.devices, **{one.device.id: one.device for one in plan.stages}}
    return replace(plan.config, stages=stages, chain=(), devices=devices, links=tuple(p.link for p in plan.links))
