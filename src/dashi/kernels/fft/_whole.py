"""What kernels round transforms of any length share: one invocation for each complex number of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Plan, Scalar, Shader

LOCAL: Final = 256


def shader(*bindings: Binding, push: Sequence[str]) -> Shader:
    """A shader whose invocations run over `total` complex numbers with a stride."""
    return Shader(
        bindings,
        (Scalar("total", "u32"), Scalar("stride", "u32"), *(Scalar(name, "u32") for name in push), Scalar("scale")),
        local=(LOCAL, 1, 1),
        includes=("portable.glsl",),
    )


def spread(call: Call, buffers: tuple[str, ...], total: int, push: Mapping[str, Number]) -> Plan:
    """One dispatch over so many complex numbers."""
    if total == 0:
        return Plan(())
    groups, rounds = groups_for(total, LOCAL, call.limits)
    numbers = {"total": total, "stride": groups * LOCAL, **push, "scale": call.scalars["scale"]}
    return Plan((Dispatch("main", buffers, numbers, (groups, 1, 1), rounds),))
