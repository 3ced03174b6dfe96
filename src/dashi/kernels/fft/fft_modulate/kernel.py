"""fft_modulate: lines (lines, n, columns) of pairs times a complex factor for each of their places, and `scale`.

The result has m places: those past n are 0, and of fewer the others are left out. With `rows` above 1 a line is an
array of so many rows, and is turned: place a w + b, with w = n / rows, goes to b rows + a, and m is n.
"""

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.fft._plans import SCALE
from dashi.kernels.fft._whole import shader, spread
from dashi.kernels.portable import canon, mul
from dashi.types import Cost, HostArray, Shape


def require_turn(n: int, m: int, rows: int) -> None:
    if rows < 1 or (rows > 1 and (m != n or n % rows)):
        raise ShapeError(
            f"kernel 'fft_modulate': lines of {n} values are no {rows} rows, of {m} in all.",
            "pass rows=1, or m=n and a divisor of n as rows.",
        )


def reference(x: HostArray, factor: HostArray, m: int, rows: int, scale: float) -> HostArray:
    lines, n, columns, _ = x.shape
    require_turn(n, m, rows)
    keep = min(n, m)
    z, w = canon(x[:, :keep]), canon(factor[:keep])[None, :, None, :]
    by = canon(np.asarray(scale, x.dtype))
    real = mul(w[..., 0], z[..., 0]) - mul(w[..., 1], z[..., 1])
    imaginary = mul(w[..., 0], z[..., 1]) + mul(w[..., 1], z[..., 0])
    result = np.zeros((lines, m, columns, 2), x.dtype)
    result[:, :keep, :, 0] = canon(mul(canon(real), by))
    result[:, :keep, :, 1] = canon(mul(canon(imaginary), by))
    if rows > 1:
        result = np.ascontiguousarray(result.reshape(lines, rows, n // rows, columns, 2).swapaxes(1, 2))
    return result.reshape(lines, m, columns, 2)


def plan(call: Call) -> Plan:
    lines, n, columns = (call.dims[name] for name in ("lines", "n", "columns"))
    m, rows = int(call.scalars["m"]), int(call.scalars["rows"])
    require_turn(n, m, rows)
    push = {"n": n, "m": m, "columns": columns, "rows": rows}
    return spread(call, ("x", "factor", "result"), lines * m * columns, push)


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(4 * size, call.bytes("x", "factor", "result"), int(size > 0))


def case(shape: Shape, m: int, rows: int = 1, scale: float = 1.0) -> Case:
    return Case({"x": (*shape, 2), "factor": (shape[1], 2)}, {"m": m, "rows": rows, "scale": scale})


KERNEL = Kernel(
    summary="lines of complex numbers times a factor for each place, padded, cropped or turned",
    inputs=(Operand("x", shape=("lines", "n", "columns", 2)), Operand("factor", shape=("n", 2))),
    outputs=(Operand("result", shape=("lines", "m", "columns", 2)),),
    shaders={
        "main": shader(
            Binding("x", "P"),
            Binding("factor", "P"),
            Binding("result", "P", "write"),
            push=("n", "m", "columns", "rows"),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((2, 7, 1), 16),
        case((3, 16, 5), 7, scale=0.25),
        case((2, 12, 3), 12, 4),
        case((1, 300, 1), 300, 15, 1 / 3),
        case((0, 4, 1), 8),
    ),
    bench=(case((256, 4096, 1), 8192), case((256, 16384, 1), 16384, 128)),
    scalars=(
        Scalar("m", "u32", doc="places of the result"),
        Scalar("rows", "u32", 1, "rows that a line is turned by; 1 for none"),
        SCALE,
    ),
)
