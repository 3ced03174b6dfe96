"""The capability matrix: stages that must be able to run named groups of ops, whether or not these are in the chain."""

from __future__ import annotations

from collections.abc import Sequence

from dashi import kernels
from dashi.errors import DashiError, StreamConfigError, StreamRuleError
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Kernel, Limits, plan_features
from dashi.stream._model import OpSettings, OpSpec, StreamConfig
from dashi.stream._op_chain import OpChain
from dashi.stream._rules import R2, StagePlace, break_of_op


def check_offers(config: StreamConfig, places: Sequence[StagePlace], chain: OpChain) -> None:
    """Raises the error of the first op of a group that a stage is to offer and cannot run."""
    planned = {link.spec.id: link.spec for link in chain.links}
    for index, place in enumerate(places):
        for group in place.stage.offers:
            for name in config.groups.get(group, ()):
                spec = planned.get(name) or _spec(name, config)
                broken = break_of_op(spec, place, config.determinism_tier)
                if broken is not None:
                    where = config.where.get(("stages", index), "")
                    raise StreamRuleError.of(
                        R2,
                        name,
                        place.device.id,
                        f"{f'{where}: ' if where else ''}{place.text} is to offer the group {group!r}: {broken.what}",
                        f"take {group!r} out of its `offers`, or bind it to a device that has all of it.",
                    )


def _spec(name: str, config: StreamConfig) -> OpSpec:
    """What an op asks for that is not in the chain: as its kernel declares it, in its first variant."""
    settings = config.ops.get(name, OpSettings())
    try:
        kernel = kernels.get(settings.kernel or name)
    except DashiError as error:
        raise StreamConfigError(f"a group names the op {name!r}: {error.what}", error.fix) from error
    depth = kernel.stream.depth_out if settings.depth_out is None else settings.depth_out
    return OpSpec(
        name,
        depth_out=depth,
        determinism_tier=kernel.tier,
        required_features=_features(kernel),
        portable=kernel.portable,
    )


def _features(kernel: Kernel) -> frozenset[str]:
    """Features without which no tuning runs the first case of a kernel."""
    case, variant = kernel.cases[0], kernel.dtypes[0]
    limits = Limits(features=frozenset({"subgroup"}))
    shapes = [case.shapes[operand.name] for operand in kernel.inputs]
    needs: list[frozenset[str]] = []
    for numbers in list(kernel.tunings.values()) or [None]:
        call = resolve_call(kernel, variant, shapes, case.scalars, limits, numbers)
        needs.append(plan_features(kernel, kernel.plan(call), variant))
    return frozenset[str](needs[0].intersection(*needs))
