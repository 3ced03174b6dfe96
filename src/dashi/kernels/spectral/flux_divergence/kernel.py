"""flux_divergence: the modes a + i x b + i y c of three fields (a, b, c): a tendency and the divergence of a flux."""

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon, mul
from dashi.kernels.spectral._modes import MODES, SIZES, pairs, parts, shader, spread
from dashi.types import Cost, HostArray, Shape


def reference(x: HostArray, wave_x: HostArray, wave_y: HostArray) -> HostArray:
    kx, ky = canon(wave_x)[None, :], canon(wave_y)[:, None]
    (a, ai), (b, bi), (c, ci) = (parts(x[:, f]) for f in range(3))
    return pairs(a - (mul(kx, bi) + mul(ky, ci)), ai + (mul(kx, b) + mul(ky, c)))


def plan(call: Call) -> Plan:
    columns = call.dims["modes"]
    plane = call.dims["n"] * columns
    names = ("x", "wave_x", "wave_y", "result")
    return spread(call, names, call.dims["members"] * plane, {"plane": plane, "columns": columns})


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(4 * size, call.bytes("x", "result"), int(size > 0))


def case(shape: Shape) -> Case:
    members, n, modes, _ = shape
    return Case({"x": (members, 3, n, modes, 2), "wave_x": (modes,), "wave_y": (n,)})


KERNEL = Kernel(
    summary="modes of a tendency plus the divergence of a flux",
    inputs=(
        Operand("x", shape=("members", 3, "n", "modes", 2)),
        Operand("wave_x", shape=("modes",)),
        Operand("wave_y", shape=("n",)),
    ),
    outputs=(Operand("result", shape=MODES),),
    shaders={
        "main": shader(
            Binding("x", "P"),
            Binding("wave_x"),
            Binding("wave_y"),
            Binding("result", "P", "write"),
            push=(Scalar("plane", "u32"), Scalar("columns", "u32")),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(case(shape) for shape in SIZES),
)
