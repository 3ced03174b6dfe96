"""spectral_fields: the modes of fields that follow from vorticity, as many and in the order that `kinds` names.

With psi = vorticity times `inverse` (1 / k^2, and 0 for the mean) and the wave numbers x and y of a mode:
0 vorticity z, 1 streamfunction psi, 2 velocity along x, i y psi, 3 velocity along y, -i x psi, 4 and 5 the derivatives
of vorticity, i x z and i y z, 6 and 7 the strains 2 u_x = -2 x y psi and u_y + v_x = (x^2 - y^2) psi, 8 -psi, which is
the pressure where z is its source, and 9 and 10 u + v and u - v, whose largest absolute value is that of |u| + |v|.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon, mul
from dashi.kernels.spectral._modes import FIELDS, MODES, SIZES, TABLE, Floats, pairs, parts, shader, spread
from dashi.types import Cost, HostArray, Shape

Pair = tuple[Floats, Floats]


def reference(
    modes: HostArray, wave_x: HostArray, wave_y: HostArray, inverse: HostArray, kinds: HostArray
) -> HostArray:
    real, imaginary = parts(modes)
    x, y, less = canon(wave_x)[None, :], canon(wave_y)[:, None], canon(inverse)
    psi = mul(real, less), mul(imaginary, less)
    made = [_field(int(kind), (real, imaginary), psi, x, y) for kind in kinds]
    return np.stack(made, axis=1) if made else np.zeros((len(modes), 0, *modes.shape[1:]), modes.dtype)


def _field(kind: int, z: Pair, psi: Pair, x: Floats, y: Floats) -> Floats:
    def turned(a: Floats, of: Pair) -> Floats:
        return pairs(-mul(a, of[1]), mul(a, of[0]))

    twice = mul(x, y) + mul(x, y)
    apart = mul(x, x) - mul(y, y)
    simple = {0: z, 1: psi, 6: (-mul(twice, psi[0]), -mul(twice, psi[1])), 7: (mul(apart, psi[0]), mul(apart, psi[1]))}
    if kind in simple:
        return pairs(*simple[kind])
    turns = {2: (y, psi), 3: (-x, psi), 4: (x, z), 5: (y, z), 9: (y - x, psi), 10: (y + x, psi)}
    return turned(*turns[kind]) if kind in turns else pairs(-psi[0], -psi[1])


def plan(call: Call) -> Plan:
    columns, fields = call.dims["modes"], call.dims["fields"]
    plane = call.dims["n"] * columns
    push = {"plane": plane, "columns": columns, "fields": fields}
    names = ("modes", "wave_x", "wave_y", "inverse", "kinds", "result")
    total = call.dims["members"] * plane if fields else 0
    return spread(call, names, total, push, trips=fields)


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(3 * size, call.bytes("modes", "inverse", "result"), int(size > 0))


def case(shape: Shape, kinds: tuple[int, ...]) -> Case:
    _, n, modes, _ = shape
    shapes = {"modes": shape, "wave_x": (modes,), "wave_y": (n,), "inverse": (n, modes), "kinds": (len(kinds),)}
    return Case(shapes, fill={"kinds": lambda rng, size: np.array(kinds, np.uint32)})


KERNEL = Kernel(
    summary="modes of the fields that follow from vorticity",
    inputs=(
        Operand("modes", shape=MODES),
        Operand("wave_x", shape=("modes",)),
        Operand("wave_y", shape=("n",)),
        Operand("inverse", shape=TABLE),
        Operand("kinds", "u32", ("fields",)),
    ),
    outputs=(Operand("result", shape=("members", "fields", "n", "modes", 2)),),
    shaders={
        "main": shader(
            Binding("modes", "P"),
            Binding("wave_x"),
            Binding("wave_y"),
            Binding("inverse"),
            Binding("kinds", "u32"),
            Binding("result", "P", "write"),
            push=(Scalar("plane", "u32"), Scalar("columns", "u32"), Scalar("fields", "u32")),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(*(case(shape, tuple(range(len(FIELDS)))) for shape in SIZES), case((1, 4, 3, 2), ())),
    bench=(case((1, 2048, 1025, 2), (2, 3, 4, 5)),),
)
