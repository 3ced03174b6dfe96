"""random_kick: every mode gets amplitude times exp(i angle), with an angle drawn from Philox; the clock goes on by 1.

The clock, the number of steps done, is the imaginary part of mode (0, 0), which means nothing in the modes of a real
field. The angle is 2 pi times a number from the counter (column, ky, step, 0) and the key (seed + member, 0), so it
depends neither on the size of the grid nor on the other members. Modes (0, ky) and (0, -ky) stay conjugate.
"""

import numpy as np

from dashi.kernels._philox import philox, unit
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon, cos, mul, sin
from dashi.kernels.spectral._modes import MODES, SIZES, TABLE, Floats, numbers, pairs, parts, shader, spread
from dashi.types import Cost, HostArray, Shape


def steps_done(clock: Floats) -> Floats:
    """The steps that a clock shows, if it shows a whole number that can be one."""
    most = 2.0**31 if clock.dtype == np.float64 else 2.0**24
    with np.errstate(invalid="ignore"):
        told = (clock >= 0) & (clock < most)
        return np.where(told, np.where(told, clock, 0).astype(np.int64), 0)


def reference(x: HostArray, amplitude: HostArray, seed: int) -> HostArray:
    members, n, modes, _ = x.shape
    real, imaginary = parts(x)
    size = canon(amplitude)
    column, row = numbers(modes)[None, :], numbers(n)[:, None]
    mirrored = (column == 0) & (row > n // 2)
    ky = np.where(mirrored, n - row, np.where(row <= n // 2, row, row - n))
    done = steps_done(imaginary[:, :1, :1])
    keys = int(seed) + numbers(members)[:, None, None]
    angle = mul(x.dtype.type(2 * np.pi), unit(philox((column, ky, done, 0), (keys, 0))[0], x.dtype))
    kicked = size != 0
    sine = mul(size, sin(angle))
    real = np.where(kicked, real + mul(size, cos(angle)), real)
    imaginary = np.where(kicked, imaginary + np.where(mirrored, -sine, sine), imaginary)
    imaginary[:, :1, :1] += x.dtype.type(1)
    return pairs(real, imaginary)


def plan(call: Call) -> Plan:
    rows, columns = call.dims["n"], call.dims["modes"]
    push = {"plane": rows * columns, "rows": rows, "columns": columns, "seed": call.scalars["seed"]}
    return spread(call, ("x", "amplitude", "result"), call.dims["members"] * rows * columns, push, trips=10)


def cost(call: Call) -> Cost:
    size = call.size("x")
    return Cost(2 * size, call.bytes("x", "amplitude", "result"), int(size > 0))


def case(shape: Shape, seed: int) -> Case:
    return Case({"x": shape, "amplitude": shape[1:3]}, {"seed": seed})


KERNEL = Kernel(
    summary="x plus random modes of given size, counted by a clock",
    inputs=(Operand("x", shape=MODES), Operand("amplitude", shape=TABLE)),
    outputs=(Operand("result", shape=MODES),),
    shaders={
        "main": shader(
            Binding("x", "P"),
            Binding("amplitude"),
            Binding("result", "P", "write"),
            push=(Scalar("plane", "u32"), Scalar("rows", "u32"), Scalar("columns", "u32"), Scalar("seed", "u32")),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(case(shape, seed) for shape, seed in zip(SIZES, (0, 1, 4294967295, 7, 3), strict=True)),
    scalars=(Scalar("seed", "u32", 0, "of the first member; those of the others follow"),),
)
