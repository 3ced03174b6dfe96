"""What a chain on devices does when one of them is lost: which stage it was, and where its ops go on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dashi.errors import DashiError, InputError, StreamRuleError
from dashi.runtime.select import open_device
from dashi.stream._model import DeviceSpec
from dashi.stream._plan import PlannedStage, StreamPlan
from dashi.stream._rules import R4, StagePlace, break_of_op

NEIGHBOUR: Final = "neighbour"
"""As `elsewhere`: the device of the next stage, or of the one before, whichever the rules allow first."""


@dataclass(frozen=True)
class LossPolicy:
    """How often the stages of a device that is lost begin anew on it, and the device that they then run on: a name of
    the configuration, what opens one, or "neighbour"; empty: the run ends."""

    restarts: int = 0
    elsewhere: str = ""

    def __post_init__(self) -> None:
        if self.restarts < 0:
            raise InputError(f"`restarts={self.restarts}` is no number of times.", "pass 0 or more.")

    def require_possible(self, plan: StreamPlan) -> DeviceSpec | None:
        """The device of `elsewhere`; refuses, before anything runs, one that the rules do not allow for every op."""
        if not self.elsewhere or self.elsewhere == NEIGHBOUR:
            return None
        place = _device_of(plan, self.elsewhere)
        for planned in plan.stages:
            _require_allowed(plan, planned, StagePlace(planned.stage, place))
        return place

    def moved(self, plan: StreamPlan, lost: str, gone: Collection[str]) -> tuple[StreamPlan, str]:
        """The plan with the stages of the device `lost` on another that is not `gone`, and where that is. Raises the
        rule that keeps them from every place."""
        stages = [i for i, planned in enumerate(plan.stages) if planned.device.id == lost]
        if self.elsewhere != NEIGHBOUR:
            if self.elsewhere in gone:
                raise InputError(f"device {self.elsewhere!r} was lost too.", "name another device for `elsewhere=`.")
            place = _device_of(plan, self.elsewhere)
            return _on(plan, stages, place), place.id
        refused: DashiError | None = None
        for i in (stages[-1] + 1, stages[0] - 1):
            if not 0 <= i < len(plan.stages) or plan.stages[i].device.id in gone:
                continue
            there = plan.stages[i]
            try:
                for one in stages:
                    _require_allowed(plan, plan.stages[one], StagePlace(there.stage, there.device))
            except StreamRuleError as error:
                refused = error
                continue
            return _on(plan, stages, there.device), f"{there.device.id}, that of the neighbour {there.stage.id}"
        raise refused or InputError(
            f"no neighbour of the stages on device {lost!r} is on another one.", "name a device for `elsewhere=`."
        )


def _require_allowed(plan: StreamPlan, planned: PlannedStage, place: StagePlace) -> None:
    """Raises the rule that keeps an op of a stage from running in that place."""
    tier = plan.config.determinism_tier
    for op in planned.ops:
        if not op.spec.migratable or (tier < 2 and not op.spec.portable):
            why = "is not migratable" if not op.spec.migratable else f"is not portable, and the tier is {tier}"
            raise StreamRuleError.of(
                R4, op.spec.id, place.device.id,
                f"op {op.spec.id!r} {why}: it cannot move from device {planned.device.id!r} to {place.device.id!r}.",
                "leave `elsewhere=` away: then the run ends where that device stays lost.",
            )  # fmt: skip
        broken = break_of_op(op.spec, place, tier, planned.depth_in)
        if broken is not None:
            raise broken.error()


def _device_of(plan: StreamPlan, name: str) -> DeviceSpec:
    """A device of the plan by its name, or one that is opened by it."""
    bound = next((planned.device for planned in plan.stages if planned.device.id == name), None)
    bound = bound or plan.config.devices.get(name)
    spec = name if bound is None else bound.spec
    with open_device(spec) as device:
        info = device.info
    kind = "CPU" if info.type == "reference" else "GPU"
    known = DeviceSpec(name, spec) if bound is None else bound
    return replace(known, kind=kind, features=info.features)


def _on(plan: StreamPlan, moved: Sequence[int], place: DeviceSpec) -> StreamPlan:
    """The plan with some stages on another device. Links of theirs that were P2P may go through the host there."""
    stages = tuple(replace(p, device=place) if i in moved else p for i, p in enumerate(plan.stages))
    links = tuple(
        replace(p, link=replace(p.link, fallback=True)) if i in moved or i + 1 in moved else p
        for i, p in enumerate(plan.links)
    )
    return replace(plan, stages=stages, links=links)
