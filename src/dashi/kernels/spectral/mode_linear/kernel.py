"""mode_linear: x + factor modes, with a complex factor for every mode, the same for every member: a linear term."""

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon, mul
from dashi.kernels.spectral._modes import MODES, SIZES, pairs, parts, shader, spread
from dashi.types import Cost, HostArray


def reference(x: HostArray, modes: HostArray, factor: HostArray) -> HostArray:
    (a, b), (c, d), (e, f) = parts(factor), parts(modes), parts(x)
    return canon(pairs(e + (mul(a, c) - mul(b, d)), f + (mul(a, d) + mul(b, c))))


def plan(call: Call) -> Plan:
    plane = call.dims["n"] * call.dims["modes"]
    return spread(call, ("x", "modes", "factor", "result"), call.dims["members"] * plane, {"plane": plane})


def cost(call: Call) -> Cost:
    size = call.size("x")
    return Cost(4 * size, call.bytes("x", "modes", "factor", "result"), int(size > 0))


KERNEL = Kernel(
    summary="x + factor z, modes with a complex factor each, the same for every member",
    inputs=(Operand("x", shape=MODES), Operand("modes", shape=MODES), Operand("factor", shape=MODES[1:])),
    outputs=(Operand("result", shape=MODES),),
    shaders={
        "main": shader(
            *(Binding(name, "P") for name in ("x", "modes", "factor")),
            Binding("result", "P", "write"),
            push=(Scalar("plane", "u32"),),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"x": shape, "modes": shape, "factor": shape[1:]}) for shape in SIZES),
    in_place=True,
)
