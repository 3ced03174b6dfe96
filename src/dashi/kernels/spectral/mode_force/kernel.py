"""mode_force: the same modes added to those of every member, x + force."""

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon
from dashi.kernels.spectral._modes import MODES, SIZES, shader, spread
from dashi.types import Cost, HostArray


def reference(x: HostArray, force: HostArray) -> HostArray:
    return canon(canon(x) + canon(force))


def plan(call: Call) -> Plan:
    plane = call.dims["n"] * call.dims["modes"]
    return spread(call, ("x", "force", "result"), call.dims["members"] * plane, {"plane": plane})


def cost(call: Call) -> Cost:
    return Cost(call.size("x"), call.bytes("x", "force", "result"), int(call.size("x") > 0))


KERNEL = Kernel(
    summary="x + force, the same modes for every member",
    inputs=(Operand("x", shape=MODES), Operand("force", shape=MODES[1:])),
    outputs=(Operand("result", shape=MODES),),
    shaders={
        "main": shader(
            Binding("x", "P"), Binding("force", "P"), Binding("result", "P", "write"), push=(Scalar("plane", "u32"),)
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"x": shape, "force": shape[1:]}) for shape in SIZES),
    in_place=True,
)
