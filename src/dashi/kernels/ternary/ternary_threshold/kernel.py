"""ternary_threshold: PDA admissibility: +1 where x >= tau, -1 where x <= -tau, 0 between; tau >= 0.

A NaN is not admitted: 0. With tau = 0 every number is admitted, and zero counts as +1.
"""

import numpy as np

from dashi.errors import InputError
from dashi.kernels._trits import LENGTHS
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray

TAU = Scalar("tau", doc="the least magnitude that is admitted; not negative")


def reference(x: HostArray, *, tau: float) -> HostArray:
    require_threshold(tau)
    value, least = canon(x), canon(np.asarray(tau, x.dtype))
    return np.where(value >= least, 1, np.where(value <= -least, -1, 0)).astype(np.int8)


def require_threshold(tau: float) -> None:
    """An error unless tau is 0 or more."""
    if not tau >= 0:
        raise InputError(f"a threshold of {tau} admits nothing sensible.", "pass tau >= 0.")


def plan(call: Call) -> Plan:
    tau = float(call.scalars["tau"])
    require_threshold(tau)
    n = call.size("x")
    if n == 0:
        return Plan(())
    each = call.tuning.get("each", 2)
    items = ceil_div(n, 4)
    tile = LOCAL * each
    groups = min(ceil_div(items, tile), call.limits.groups)
    push = {"items": items, "stride": groups * tile, "n": n, "tau": tau}
    trips = ceil_div(items, groups * tile) * (1 + 2 * each)
    return Plan((Dispatch("main", ("x", "result"), push, (groups, 1, 1), trips, {"EACH": each}),))


def cost(call: Call) -> Cost:
    n = call.size("x")
    return Cost(bytes=n * (call.dtype.size + 1), dispatches=int(n > 0))


TAUS = (0.5, 0.0, 1.0, 2.0**-102, float("inf"), 3e-39)

KERNEL = Kernel(
    summary="+1 where x >= tau, -1 where x <= -tau, 0 between (and where x is NaN)",
    inputs=(Operand("x"),),
    outputs=(Operand("result", "i8"),),
    scalars=(TAU,),
    shaders={
        "main": Shader(
            (Binding("x", "u32x4"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, Scalar("n", "u32"), TAU),
            (Spec("EACH", 2),),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        *(Case({"x": (n,)}, {"tau": TAUS[i % len(TAUS)]}) for i, n in enumerate(LENGTHS)),
        *(Case({"x": (37, 5)}, {"tau": tau}) for tau in TAUS),
    ),
    bench=(Case({"x": (1 << 26,)}, {"tau": 0.5}),),
    tunings={"two": {"each": 2}},
)
