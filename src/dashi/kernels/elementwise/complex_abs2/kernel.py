"""complex_abs2: the squared sizes of complex numbers, stored as pairs (re, im): re^2 + im^2, each product rounded.

Takes a list of pairs, shape (n, 2), and makes a list; reshape fields before and after.
"""

from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.elementwise._complex import parts
from dashi.kernels.portable import canon, mul
from dashi.types import Cost, HostArray

LOCAL = 256


def reference(x: HostArray) -> HostArray:
    a, b = parts(x)
    return canon(mul(a, a) + mul(b, b))


def plan(call: Call) -> Plan:
    n = call.dims["n"]
    if n == 0:
        return Plan(())
    groups, trips = groups_for(n, LOCAL, call.limits)
    numbers = {"n": n, "stride": groups * LOCAL}
    return Plan((Dispatch("main", ("x", "result"), numbers, (groups, 1, 1), trips),))


def cost(call: Call) -> Cost:
    n = call.dims["n"]
    return Cost(flops=3 * n, bytes=call.bytes("x", "result"), dispatches=int(n > 0))


KERNEL = Kernel(
    summary="re^2 + im^2 of complex pairs, shape (n, 2) to (n,)",
    inputs=(Operand("x", shape=("n", 2)),),
    outputs=(Operand("result", shape=("n",)),),
    shaders={
        "main": Shader(
            (Binding("x"), Binding("result", access="write")),
            (Scalar("n", "u32"), Scalar("stride", "u32")),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"x": (n, 2)}) for n in (0, 1, 31, 32, 33, 257, 4099, 1 << 16)),
    bench=(Case({"x": (1 << 27, 2)}), Case({"x": (1 << 26, 2)})),
)
