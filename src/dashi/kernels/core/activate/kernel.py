"""activate: result[s, j] = psi(x[s, j] + b[j]), the bias and nonlinearity after a product, in place if wanted.

The sum is rounded once, then psi (dashi.kernels._psi) gives what it gives: with psi = 0 and b = 0 the canonical x.
"""

from typing import Final

import numpy as np

from dashi.kernels._psi import FLOPS, NUMBERS, SCALARS, SPEC, apply_psi, require_psi
from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray

LOCAL: Final = 256
EACH: Final = 2


def reference(x: HostArray, b: HostArray, psi: int, alpha: float, low: float, high: float) -> HostArray:
    require_psi("activate", {"psi": psi, "alpha": alpha, "low": low, "high": high})
    with np.errstate(all="ignore"):
        return apply_psi(psi, canon(x) + canon(b), alpha, low, high)


def plan(call: Call) -> Plan:
    require_psi("activate", call.scalars)
    n = call.size("x")
    if n == 0:
        return Plan(())
    local = min(LOCAL, call.limits.invocations)
    groups, rounds = groups_for(n, EACH * local, call.limits)
    push = {s.name: call.scalars[s.name] for s in NUMBERS}
    push |= {"n": n, "stride": groups * EACH * local, "width": call.dims["d"]}
    spec = {"LOCAL": local, "EACH": EACH, "PSI": int(call.scalars["psi"])}
    return Plan((Dispatch("main", ("x", "b", "result"), push, (groups, 1, 1), rounds * (1 + 2 * EACH), spec),))


def cost(call: Call) -> Cost:
    n = call.size("x")
    flops = 1 + FLOPS[call.dtype.name][int(call.scalars["psi"])]
    return Cost(flops * n, call.bytes("x", "b", "result"), 1) if n else Cost()


KINDS: Final = (
    {"psi": 0}, {"psi": 1, "alpha": 0.7}, {"psi": 2}, {"psi": 3, "low": -0.5, "high": 1.25},
    {"psi": 3, "low": -np.inf, "high": 0.0}, {"psi": 1, "alpha": -3.0},
)  # fmt: skip
SIZES: Final = ((1, 1), (3, 5), (2, 65), (1, 257), (7, 130), (0, 4), (4, 0), (3, 1025))
KERNEL = Kernel(
    summary="psi(x + b) for rows x: bias and nonlinearity of a step",
    inputs=(Operand("x", shape=("m", "d")), Operand("b", shape=("d",))),
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=SCALARS,
    shaders={
        "main": Shader(
            (Binding("x"), Binding("b"), Binding("result", access="write")),
            (Scalar("n", "u32"), Scalar("stride", "u32"), Scalar("width", "u32"), *NUMBERS),
            (Spec("LOCAL", LOCAL), Spec("EACH", 1), SPEC),
            local=("LOCAL", 1, 1),
            includes=("portable.glsl", "psi.glsl", "elementwise.glsl"),
            extensions=("GL_EXT_control_flow_attributes",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"x": (m, d), "b": (d,)}, KINDS[i % len(KINDS)]) for i, (m, d) in enumerate(SIZES)),
    bench=(Case({"x": (1 << 14, 1 << 12), "b": (1 << 12,)}, {"psi": 1}),),
    in_place=True,
)
