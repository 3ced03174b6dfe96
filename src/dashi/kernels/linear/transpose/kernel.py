"""transpose: result[j, i] = x[i, j], bit for bit."""

from typing import Final

import numpy as np

from dashi.kernels._work import ceil_div, even_groups, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Limits, Operand, Plan, Scalar, Shader
from dashi.types import Cost, HostArray

SIDE: Final = 16
LOCAL: Final = 256
TUNINGS: Final = {"tiles": {"shared": 1}, "direct": {"shared": 0}}
"""Through shared memory, or not: processors wait at barriers for long."""


def prefer(limits: Limits, variant: str) -> str:
    return "direct" if limits.software else "tiles"


def reference(x: HostArray) -> HostArray:
    return np.ascontiguousarray(x.T)


def plan(call: Call) -> Plan:
    m, n = call.dims["m"], call.dims["n"]
    if m * n == 0:
        return Plan(())
    if not call.tuning["shared"]:
        groups, trips = groups_for(m * n, LOCAL, call.limits)
        push = {"m": m, "n": n, "stride": groups * LOCAL}
        return Plan((Dispatch("direct", ("x", "result"), push, (groups, 1, 1), trips),))
    across = ceil_div(n, SIDE)
    tiles = across * ceil_div(m, SIDE)
    groups, rounds = even_groups(tiles, call.limits)
    push = {"m": m, "n": n, "across": across, "tiles": tiles, "stride": groups}
    return Plan((Dispatch("tiles", ("x", "result"), push, (groups, 1, 1), rounds),))


def cost(call: Call) -> Cost:
    return Cost(bytes=call.bytes("x", "result"), dispatches=int(call.size("x") > 0))


SIZES: Final = ((0, 3), (1, 1), (1, 70), (15, 17), (16, 16), (33, 64), (65, 3), (257, 129))

KERNEL = Kernel(
    summary="rows and columns exchanged, bit for bit",
    inputs=(Operand("x", shape=("m", "n")),),
    outputs=(Operand("result", shape=("n", "m")),),
    shaders={
        "tiles": Shader(
            (Binding("x", "W"), Binding("result", "W", "write")),
            tuple(Scalar(name, "u32") for name in ("m", "n", "across", "tiles", "stride")),
            local=(SIDE, SIDE, 1),
        ),
        "direct": Shader(
            (Binding("x", "W"), Binding("result", "W", "write")),
            tuple(Scalar(name, "u32") for name in ("m", "n", "stride")),
            local=(LOCAL, 1, 1),
            file="direct.comp",
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"x": size}) for size in SIZES),
    bench=(Case({"x": (8192, 8192)}),),
    dtypes=("f32", "f64", "u32", "i32"),
    tunings=TUNINGS,
    prefer=prefer,
)
