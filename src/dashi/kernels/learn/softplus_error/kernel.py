"""softplus_error: e = softplus(x) - target, and scale e / (1 + e^-x), the slope by x of scale e^2 / 2."""

from typing import Final

import numpy as np

from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, divide, exp, mul, softplus
from dashi.types import Cost, HostArray

LOCAL: Final = 256
FLOPS: Final = {"f32": 115, "f64": 151}
"""Operations for an element: those of softplus and of sigmoid, and three more."""


def reference(x: HostArray, target: HostArray, scale: float) -> tuple[HostArray, HostArray]:
    v = canon(x)
    unity = v.dtype.type(1)
    with np.errstate(all="ignore"):
        missed = canon(softplus(v) - canon(target))
        e = exp(-np.abs(v))
        steepness = divide(np.where(v < 0, e, unity), unity + e)
    return missed, canon(mul(mul(canon(v.dtype.type(scale)), missed), steepness))


def plan(call: Call) -> Plan:
    n = call.dims["size"]
    if n == 0:
        return Plan(())
    groups, trips = groups_for(n, LOCAL, call.limits)
    push = {"n": n, "stride": groups * LOCAL, "scale": call.scalars["scale"]}
    return Plan((Dispatch("main", ("x", "target", "error", "slope"), push, (groups, 1, 1), trips),))


def cost(call: Call) -> Cost:
    n = call.dims["size"]
    return Cost(FLOPS[call.dtype.name] * n, 4 * n * call.dtype.size, int(n > 0))


def case(shape: tuple[int, ...], scale: float) -> Case:
    return Case({"x": shape, "target": shape}, {"scale": scale})


KERNEL = Kernel(
    summary="softplus(x) - target, and the slope by x of scale times half its square",
    inputs=(Operand("x"), Operand("target")),
    outputs=(Operand("error"), Operand("slope")),
    scalars=(Scalar("scale", default=1.0, doc="factor of the slope"),),
    shaders={
        "main": Shader(
            (Binding("x"), Binding("target"), Binding("error", access="write"), Binding("slope", access="write")),
            (Scalar("n", "u32"), Scalar("stride", "u32"), Scalar("scale")),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((0,), 1.0), case((1,), 2.0), case((65,), 0.25), case((257,), -1.0), case((31, 17), 1e-3),
        case((4099,), 1e-30),
    ),
    bench=(case((1 << 26,), 1.0),),
)  # fmt: skip
