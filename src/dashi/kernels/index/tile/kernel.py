"""tile: an array repeated until it fills rows x columns, bit for bit: result[i, j] = x[i mod h, j mod w].

`rows` and `columns` are the size of the result, which need not be a multiple: the last copies are then cut. A list is
an array of one row: x.reshape(1, -1) with rows=1.
"""

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._work import ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.types import Cost, HostArray

LOCAL = 256
ROWS = 65535
"""Workgroups along the second axis that every device has."""
VECTOR_BYTES = 16
EACH = 8
"""Elements along a row that an invocation makes, so that its first place costs little beside them."""


def require_source(x: tuple[int, ...], rows: int, columns: int) -> None:
    """Raise ShapeError if an empty source would have to fill a non-empty result."""
    if 0 in x and rows and columns:
        raise ShapeError(
            f"kernel 'tile': x of shape {x} has nothing to fill {rows} x {columns} with.",
            "pass an array with at least one element.",
        )


def reference(x: HostArray, rows: int, columns: int) -> HostArray:
    require_source(x.shape, rows, columns)
    if rows == 0 or columns == 0:
        return np.empty((rows, columns), x.dtype)
    return x[np.arange(rows) % x.shape[0]][:, np.arange(columns) % x.shape[1]]


def plan(call: Call) -> Plan:
    rows, columns, h, w = (call.dims[name] for name in ("rows", "columns", "h", "w"))
    require_source((h, w), rows, columns)
    if rows == 0 or columns == 0:
        return Plan(())
    per_vector = VECTOR_BYTES // call.dtype.size
    vectors = columns % per_vector == 0 and w % per_vector == 0
    if vectors:
        columns, w = columns // per_vector, w // per_vector
    # A workgroup is as wide as the rows, and as deep as that leaves room.
    wide = min(LOCAL, 1 << (columns - 1).bit_length())
    deep = LOCAL // wide
    across, _ = groups_for(ceil_div(columns, EACH), wide, call.limits)
    down = min(ceil_div(rows, deep), ROWS)
    numbers = {
        "rows": rows, "columns": columns, "h": h, "w": w, "stride": across * wide, "step": across * wide % w,
        "stride_rows": down * deep,
    }  # fmt: skip
    trips = ceil_div(rows, down * deep) * (1 + ceil_div(columns, across * wide))
    spec = {"WIDE": wide, "DEEP": deep}
    shader = "vectors" if vectors else "main"
    return Plan((Dispatch(shader, ("x", "result"), numbers, (across, down, 1), trips, spec),))


def copying(element: str) -> Shader:
    """The shader for elements of one kind."""
    return Shader(
        (Binding("x", element), Binding("result", element, "write")),
        tuple(Scalar(name, "u32") for name in ("rows", "columns", "h", "w", "stride", "step", "stride_rows")),
        (Spec("WIDE", LOCAL), Spec("DEEP", 1)),
        local=("WIDE", "DEEP", 1),
    )


def cost(call: Call) -> Cost:
    made = call.bytes("result")
    return Cost(bytes=made + min(made, call.bytes("x")), dispatches=int(made > 0))


def case(h: int, w: int, rows: int, columns: int) -> Case:
    return Case({"x": (h, w)}, {"rows": rows, "columns": columns})


KERNEL = Kernel(
    summary="x repeated to fill rows x columns, bit for bit",
    inputs=(Operand("x", shape=("h", "w")),),
    outputs=(Operand("result", shape=("rows", "columns")),),
    scalars=(Scalar("rows", "u32", doc="rows of the result"), Scalar("columns", "u32", doc="columns of the result")),
    shaders={"main": copying("W"), "vectors": copying("u32x4")},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1, 1), case(1, 7, 1, 7), case(1, 7, 1, 65), case(3, 5, 6, 10), case(3, 5, 7, 257), case(65, 3, 2, 2),
        case(2, 300, 5, 4097), case(3, 12, 70, 4100), case(5, 8, 9, 40000),
        case(0, 4, 0, 8), case(4, 4, 0, 3), case(1, 1, 300, 300), case(70000, 1, 70001, 1),
    ),
    bench=(case(1, 1 << 14, 1 << 14, 1 << 14), case(1, 1 << 14, 1, 1 << 28)),
    dtypes=("f32", "f64", "u32", "i32", "u64", "i64"),
)  # fmt: skip
