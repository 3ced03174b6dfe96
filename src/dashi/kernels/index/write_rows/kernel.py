"""write_rows: x with rows written over it, from row positions[b] on in each batch b.

result[b, positions[b] + i] = rows[b, i]; everything else is x. Rows that would lie past the end are left out. It may
work in place; `dashi.kernels.index._writing` has the form of it that must, and touches nothing but the rows.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.index._writing import dispatch_over
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray, Shape

LOCAL = 256


def reference(x: HostArray, rows: HostArray, positions: HostArray) -> HostArray:
    result = canon(x).copy()
    for batch, position in enumerate(positions.tolist()):
        part = canon(rows[batch, : max(0, x.shape[1] - position)])
        result[batch, position : position + len(part)] = part
    return result


def plan(call: Call) -> Plan:
    return dispatch_over(call, "main", call.size("x"))


def cost(call: Call) -> Cost:
    return Cost(bytes=2 * call.bytes("x"), dispatches=len(plan(call).dispatches))


def case(b: int, n: int, w: int, m: int) -> Case:
    """Positions in x, at its end, and beyond it."""

    def positions(rng: np.random.Generator, shape: Shape) -> HostArray:
        chosen = rng.integers(0, n + 1, shape).astype(np.uint32)
        chosen[2:3] = 0xFFFFFFFF
        return chosen

    return Case({"x": (b, n, w), "rows": (b, m, w), "positions": (b,)}, fill={"positions": positions})


def shader(file: str) -> Shader:
    """One over all elements, or over those of the rows."""
    buffers = (Binding("x"), Binding("rows"), Binding("positions", "u32"), Binding("result", access="write"))
    numbers = ("items", "length", "count", "width", "stride")
    return Shader(
        buffers,
        tuple(Scalar(name, "u32") for name in numbers),
        local=(LOCAL, 1, 1),
        file=file,
        includes=("portable.glsl",),
    )


KERNEL = Kernel(
    summary="rows written over those of x, from a position on that each batch has; past the end they are left out",
    inputs=(
        Operand("x", shape=("b", "n", "w")),
        Operand("rows", shape=("b", "m", "w")),
        Operand("positions", "u32", ("b",)),
    ),
    outputs=(Operand("result", shape=("b", "n", "w")),),
    shaders={"main": shader("kernel.comp"), "rows": shader("rows.comp")},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case(1, 1, 1, 1), case(3, 65, 5, 7), case(2, 300, 12, 1), case(5, 9, 1, 20), case(2, 0, 4, 3)),
    bench=(case(1, 4096, 1024, 1),),
    in_place=True,
)
