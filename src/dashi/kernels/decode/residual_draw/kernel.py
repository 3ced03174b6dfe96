"""residual_draw: random modes of real fields: amplitude times a complex number drawn from Philox for (seed, frame, k).

keys = (seed, frame). The number has size 1 and a random angle, or with `gaussian` = 1 independent Gaussian parts, mean
square 1 in all. It comes from the counter (kx, ky, frame, 3) and the key (seed + member, 0), so it depends neither on
the grid nor on other members. The modes are those of real fields: conjugate pairs are conjugate, and a mode that is its
own conjugate is real. Member m of the result draws from seed + m.
"""

import numpy as np

from dashi.kernels._philox import philox, unit
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon, cos, log, mul, sin, sqrt
from dashi.kernels.spectral._modes import MODES, TABLE, Floats, numbers, pairs, shader, spread
from dashi.types import Cost, HostArray, Shape

STREAM = 3
"""Kicks of a flow draw from stream 0, initial conditions from 1 and 2: one seed must not give the same field twice."""


def reference(amplitude: HostArray, keys: HostArray, members: int, gaussian: int) -> HostArray:
    n, modes = amplitude.shape
    size = canon(amplitude)
    column, row = numbers(modes)[None, :], numbers(n)[:, None]
    edge = (column == 0) | (2 * column == n)
    mirrored = edge & (row > n // 2)
    ky = np.where(mirrored, n - row, np.where(row <= n // 2, row, row - n))
    seed, frame = (int(word) for word in keys)
    key = seed + numbers(members)[:, None, None]
    words = philox((column, ky, frame, STREAM), (key, 0))
    real, imaginary = drawn(words[0], words[1], size.dtype, gaussian=bool(gaussian))
    sine = np.where(edge & ((row == 0) | (2 * row == n)), 0, mul(size, imaginary)).astype(size.dtype)
    held = size != 0
    made = np.where(held, mul(size, real), 0), np.where(held, np.where(mirrored, -sine, sine), 0)
    return pairs(made[0].astype(size.dtype), made[1].astype(size.dtype))


def drawn(turns: Floats, sizes: Floats, kind: np.dtype[np.generic], *, gaussian: bool) -> tuple[Floats, Floats]:
    angle = mul(kind.type(2 * np.pi), unit(turns, kind))
    real, imaginary = cos(angle), sin(angle)
    if not gaussian:
        return real, imaginary
    step = kind.type(2.0**-24 if kind.itemsize == 4 else 2.0**-32)
    size = sqrt(canon(-log(unit(sizes, kind) + step)))
    return mul(size, real), mul(size, imaginary)


def plan(call: Call) -> Plan:
    rows, columns = call.dims["n"], call.dims["modes"]
    push = {"plane": rows * columns, "rows": rows, "columns": columns, "gaussian": call.scalars["gaussian"]}
    return spread(call, ("amplitude", "keys", "result"), call.dims["members"] * rows * columns, push, trips=10)


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(2 * size, call.bytes("amplitude", "result"), int(size > 0))


def case(n: int, modes: int, members: int, gaussian: int) -> Case:
    def words(rng: np.random.Generator, shape: Shape) -> HostArray:
        return rng.integers(0, 1 << 32, shape, dtype=np.uint32)

    return Case({"amplitude": (n, modes), "keys": (2,)}, {"members": members, "gaussian": gaussian}, {"keys": words})


KERNEL = Kernel(
    summary="random modes of real fields, each from its own name",
    inputs=(Operand("amplitude", shape=TABLE), Operand("keys", "u32", (2,))),
    outputs=(Operand("result", shape=MODES),),
    shaders={
        "main": shader(
            Binding("amplitude"),
            Binding("keys", "u32"),
            Binding("result", "P", "write"),
            push=(Scalar("plane", "u32"), Scalar("rows", "u32"), Scalar("columns", "u32"), Scalar("gaussian", "u32")),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1, 0), case(8, 5, 1, 1), case(6, 4, 3, 0), case(64, 33, 2, 1), case(64, 33, 1, 0), case(4, 3, 0, 0),
    ),
    bench=(case(128, 65, 1, 1), case(2048, 1025, 1, 1)),
    scalars=(
        Scalar("members", "u32", 1, "how many fields"),
        Scalar("gaussian", "u32", 0, "1: Gaussian numbers; 0: of size 1, with random angles"),
    ),
)  # fmt: skip
