"""The hard rules R1 to R5: what a plan, or a State under way, is refused for, with the op, the device and the fix.

R1 monotone depth: the semantic depth of a State never falls, and nothing goes back to a weaker stage. R2 role: an op
runs where its depth and its features are. R3 tier: nothing less determinate than the run's tier. R4 residency: an op
runs where its State lives unless R1 to R3 forbid that, or it is migratable. R5 contract: stages have nothing in common
but the States that they hand on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dashi.errors import StreamRuleError
from dashi.stream._model import BroadcastSpec, DeviceSpec, OpSpec, StageSpec, State

R1: Final = "R1 monotone depth"
R2: Final = "R2 role"
R3: Final = "R3 tier"
R4: Final = "R4 residency"
R5: Final = "R5 stream contract"

TIERS: Final[Mapping[int, str]] = {
    0: "one device, fixed order everywhere",
    1: "several devices, reductions in a fixed order",
    2: "float atomics, whose bits are not repeatable",
    3: "asynchronous, consistent in the end",
}


@dataclass(frozen=True)
class RuleBreak:
    """A rule that an op would break in a stage."""

    rule: str
    op: str
    device: str
    what: str
    fix: str

    def error(self, where: str = "") -> StreamRuleError:
        """The error for it; `where` is the file and line."""
        place = f"{where}: " if where else ""
        return StreamRuleError.of(self.rule, self.op, self.device, f"{place}{self.what}", self.fix)


@dataclass(frozen=True)
class StagePlace:
    """A stage on its device, as rules see it."""

    stage: StageSpec
    device: DeviceSpec

    @property
    def depth(self) -> int:
        """The greatest semantic depth here: the stage's, or the device's where that is less."""
        own = self.device.max_semantic_depth
        return self.stage.max_semantic_depth if own is None else min(own, self.stage.max_semantic_depth)

    @property
    def text(self) -> str:
        return f"stage {self.stage.id!r} on device {self.device.id!r} ({self.device.spec})"


def break_of_op(op: OpSpec, place: StagePlace, tier: int, depth: int = 0) -> RuleBreak | None:
    """The first of R1 to R3 that an op would break in a stage, for States that come with this depth; None if it may run
    there."""
    return _depth_break(op, place, depth) or _role_break(op, place) or _tier_break(op, place, tier)


def _depth_break(op: OpSpec, place: StagePlace, depth: int) -> RuleBreak | None:
    device = place.device.id
    if op.depth_out and op.depth_out < op.depth_in:
        return RuleBreak(
            R1, op.id, device,
            f"op {op.id!r} takes States of depth {op.depth_in} and gives depth {op.depth_out}.",
            "let depth_out be at least depth_in.",
        )  # fmt: skip
    if op.depth_out and op.depth_out < depth:
        return RuleBreak(
            R1, op.id, device,
            f"op {op.id!r} on device {device!r} gives depth {op.depth_out} to States that have depth {depth}.",
            f"put it before the op that reaches depth {depth}, or raise its depth_out to {depth}.",
        )  # fmt: skip
    if 0 < op.depth_in < depth:
        return RuleBreak(
            R1, op.id, device,
            f"op {op.id!r} on device {device!r} takes States of depth {op.depth_in}; those that come have {depth}.",
            f"put it before the op that reaches depth {depth}, or raise its depth_in to {depth}.",
        )  # fmt: skip
    return None


def _role_break(op: OpSpec, place: StagePlace) -> RuleBreak | None:
    device = place.device
    if op.depth_out > place.depth:
        return RuleBreak(
            R2, op.id, device.id,
            f"op {op.id!r} reaches depth {op.depth_out}; {place.text} goes to {place.depth}.",
            f"put it in a stage whose max_semantic_depth is {op.depth_out} or more.",
        )  # fmt: skip
    if missing := op.required_features - device.features:
        return RuleBreak(
            R2, op.id, device.id,
            f"op {op.id!r} needs {', '.join(sorted(missing))}; {place.text} lacks it.",
            "put it in a stage whose device has it (`dashi devices list`), or use another element type.",
        )  # fmt: skip
    if op.host_only and device.kind != "CPU":
        return RuleBreak(
            R2, op.id, device.id,
            f"op {op.id!r} is a function of the host; {place.text} is no host.",
            "put it in a stage with `device: cpu`.",
        )  # fmt: skip
    return None


def _tier_break(op: OpSpec, place: StagePlace, tier: int) -> RuleBreak | None:
    if op.determinism_tier > tier:
        return RuleBreak(
            R3, op.id, place.device.id,
            f"op {op.id!r} on device {place.device.id!r} is of tier {op.determinism_tier} "
            f"({TIERS[op.determinism_tier]}); the run is declared to be of tier {tier} ({TIERS[tier]}).",
            f"use a kernel of tier {tier} or below, or declare determinism_tier: {op.determinism_tier}.",
        )  # fmt: skip
    return None


def break_of_devices(places: Sequence[StagePlace], tier: int) -> RuleBreak | None:
    """R3 for a whole chain: tier 0 is one device."""
    specs = {place.device.spec: place.device.id for place in places}
    if tier == 0 and len(specs) > 1:
        second = list(specs.values())[1]
        return RuleBreak(
            R3, "", second,
            f"a run of tier 0 has one device; this one has {', '.join(repr(d) for d in specs.values())}.",
            "bind all stages to one device, or declare determinism_tier: 1.",
        )  # fmt: skip
    return None


def break_of_order(places: Sequence[StagePlace]) -> RuleBreak | None:
    """R1 for the stages: none is followed by a weaker one."""
    for before, after in pairwise(places):
        if after.depth < before.depth:
            return RuleBreak(
                R1, "", after.device.id,
                f"stage {before.stage.id!r} reaches depth {before.depth} and is followed by the weaker {after.text}, "
                f"which goes to {after.depth}.",
                "order the stages by max_semantic_depth.",
            )  # fmt: skip
    return None


def break_of_move(op: OpSpec, home: StagePlace, place: StagePlace, tier: int, depth: int) -> RuleBreak | None:
    """R4 for an op that does not run where its State lives."""
    if op.migratable or home.stage.id == place.stage.id or break_of_op(op, home, tier, depth) is not None:
        return None
    return RuleBreak(
        R4, op.id, place.device.id,
        f"op {op.id!r} is not migratable, and its State lives on device {home.device.id!r} (stage {home.stage.id!r}), "
        f"where it may run; the plan has it in {place.text}.",
        f"put it in stage {home.stage.id!r}, or declare migratable: true.",
    )  # fmt: skip


def break_of_broadcast(broadcast: BroadcastSpec, op_stage: int, stages: Sequence[str]) -> RuleBreak | None:
    """R1 for a broadcast: results go on, never back."""
    for name in broadcast.to:
        if name in stages and stages.index(name) <= op_stage:
            return RuleBreak(
                R1, broadcast.after, "",
                f"the results of op {broadcast.after!r} (stage {stages[op_stage]!r}) are broadcast to stage {name!r}, "
                "which does not come after it.",
                "broadcast to later stages alone: nothing is sent back.",
            )  # fmt: skip
    return None


def break_of_reading(
    op: OpSpec, place: StagePlace, fields: Iterable[str], observed: Mapping[str, str]
) -> RuleBreak | None:
    """R5 for what an op reads: nothing that an observer of another stage made, nor, in the chain, of any. `observed`
    has the observer of each such field."""
    for name in fields:
        if name in observed:
            return RuleBreak(
                R5, op.id, place.device.id,
                f"op {op.id!r} in {place.text} reads {name!r}, which the observer {observed[name]!r} makes: that never "
                "travels with a State.",
                f"put {op.id!r} among the observers of the same stage, or declare {observed[name]!r} with "
                "io_class: CORE.",
            )  # fmt: skip
    return None


def check_depth(stage: StageSpec, before: State, after: State | None = None) -> None:
    """R1 for a State under way: the one that comes into a stage is not above its depth, and the one that it becomes is
    neither below what it was nor above the stage's depth. Executors call it for every State."""
    op, device, step = "", stage.device, before.step
    if before.semantic_depth > stage.max_semantic_depth:
        raise StreamRuleError.of(
            R1, op, device,
            f"the State of step {step} has depth {before.semantic_depth} and was sent to the weaker stage {stage.id!r} "
            f"on device {device!r}, which goes to {stage.max_semantic_depth}.",
            "send States on along the chain only.",
        )  # fmt: skip
    if after is None:
        return
    if after.semantic_depth < before.semantic_depth:
        raise StreamRuleError.of(
            R1, op, device,
            f"stage {stage.id!r} on device {device!r} made the State of step {step} fall from depth "
            f"{before.semantic_depth} to {after.semantic_depth}.",
            "let a stage keep the depth of its States, or raise it.",
        )  # fmt: skip
    if after.semantic_depth > stage.max_semantic_depth:
        raise StreamRuleError.of(
            R1, op, device,
            f"stage {stage.id!r} on device {device!r} gave the State of step {step} depth {after.semantic_depth}; it "
            f"goes to {stage.max_semantic_depth}.",
            f"raise max_semantic_depth of stage {stage.id!r}, or move the op to a later one.",
        )  # fmt: skip
