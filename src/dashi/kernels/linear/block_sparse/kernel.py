"""block_sparse: row vector times a matrix of which only some square blocks are stored, in the order tree64.

The vector x is (rows, side) and the result (columns, side): both cut as the blocks cut the matrix. Blocks are stored by
block column: those of column c are t = offsets[c] to offsets[c + 1], block t lies in block row places[t], and
blocks[t, i, j] multiplies x[places[t], i] into result[c, j]. The addends of a result come in the order of the stored
blocks, and in a block in the order of its rows i. With every block stored, in order of rows, the bits are gemv's.

A block column of more than `longest` blocks, one that leaves the lists, and a block row past the end give NaN.
"""

from typing import Final

import numpy as np

from dashi.errors import LimitError, ShapeError
from dashi.kernels._work import RUN, ceil_div, split_work
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.linear._blocks import fills
from dashi.kernels.portable import canon, contract
from dashi.types import Cost, HostArray

TILE: Final = RUN * RUN
MOST: Final = RUN * TILE
ROOM: Final = 256
BATCH: Final = 8
OPERANDS: Final = ("x", "blocks", "places", "offsets", "result")
LANES: Final = 16


def require_fit(columns: int, ends: int, longest: int, side: int) -> None:
    """What the shapes alone cannot say: one offset more than columns, and three levels of sums at most."""
    if ends != columns + 1:
        raise ShapeError(
            f"kernel 'block_sparse': {columns} block columns need {columns + 1} offsets, {ends} given.",
            "pass columns=len(offsets) - 1.",
        )
    if longest * side > MOST:
        raise LimitError(
            f"kernel 'block_sparse': columns of {longest} blocks of {side} rows are longer than {MOST}.",
            "pass a smaller `longest`, or split the matrix by rows and add the products.",
        )


def reference(
    x: HostArray, blocks: HostArray, places: HostArray, offsets: HostArray, columns: int, longest: int
) -> HostArray:
    rows, side = x.shape
    require_fit(columns, offsets.size, longest, side)
    result = np.full((columns, side), np.nan, x.dtype)
    nan = np.full((1, side), np.nan, x.dtype)
    factors = np.concatenate([canon(x), nan])[np.minimum(places.astype(np.int64), rows)]
    for c in range(columns):
        start, beyond = int(offsets[c]), int(offsets[c + 1])
        if start <= beyond <= len(blocks) and beyond - start <= longest:
            stored = blocks[start:beyond].reshape(-1, side)
            result[c] = contract(factors[start:beyond].reshape(-1), stored)
    return canon(result)


def plan(call: Call) -> Plan:
    columns, longest, side = int(call.scalars["columns"]), int(call.scalars["longest"]), call.dims["side"]
    require_fit(columns, call.dims["ends"], longest, side)
    if columns * side == 0:
        return Plan(())
    lanes = min(LANES, 1 << (side - 1).bit_length())
    depth = min(RUN, min(ROOM, call.limits.invocations) // lanes)
    across = ceil_div(side, lanes)
    per_run = RUN // BATCH * (1 + 2 * BATCH)
    tiles = ceil_div(longest * side, TILE)
    trips = 2 + tiles * (1 + ceil_div(RUN, depth) * (1 + per_run) + RUN)
    numbers = {"rows": call.dims["rows"], "side": side, "count": call.dims["count"], "longest": longest}
    dispatches = [
        Dispatch(
            "main",
            OPERANDS,
            {
                **numbers,
                "across": across,
                "first_block": share.first,
                "beyond_blocks": share.beyond,
                "stride": share.groups,
            },
            (share.groups, 1, 1),
            share.trips,
            {"LANES": lanes, "DEPTH": depth},
        )
        for share in split_work(columns * across, trips, call.limits)
    ]
    return Plan(tuple(dispatches))


def cost(call: Call) -> Cost:
    """Blocks, lists, vector and result once each."""
    columns, side, count = int(call.scalars["columns"]), call.dims["side"], call.dims["count"]
    if columns * side == 0:
        return Cost()
    moved = call.bytes("x", "blocks", "result") + 4 * (count + columns + 1)
    return Cost(2 * count * side * side, moved, len(plan(call).dispatches))


def case(rows: int, columns: int, side: int, each: int, longest: int | None = None, wrong: int = 0) -> Case:
    """A vector of so many block rows, and blocks as `fills` lists them."""
    count = max(0, columns - 1) * each
    return Case(
        {"x": (rows, side), "blocks": (count, side, side), "places": (count,), "offsets": (columns + 1,)},
        {"columns": columns, "longest": each if longest is None else longest},
        fills(rows, columns, each, wrong),
    )


NUMBERS: Final = ("rows", "side", "count", "longest", "across", "first_block", "beyond_blocks", "stride")
KERNEL = Kernel(
    summary="row vector times block-sparse matrix (square blocks, stored by block column)",
    inputs=(
        Operand("x", shape=("rows", "side")),
        Operand("blocks", shape=("count", "side", "side")),
        Operand("places", "u32", ("count",)),
        Operand("offsets", "u32", ("ends",)),
    ),
    outputs=(Operand("result", shape=("columns", "side")),),
    scalars=(
        Scalar("columns", "u32", doc="block columns: one less than offsets"),
        Scalar("longest", "u32", 1024, "no block column has more blocks; times the side at most 262144"),
    ),
    shaders={
        "main": Shader(
            (
                Binding("x"),
                Binding("blocks"),
                Binding("places", "u32"),
                Binding("offsets", "u32"),
                Binding("result", access="write"),
            ),
            tuple(Scalar(name, "u32") for name in NUMBERS),
            (Spec("LANES", 32), Spec("DEPTH", 4)),
            local=("LANES", "DEPTH", 1),
            includes=("portable.glsl",),
            extensions=("GL_EXT_control_flow_attributes",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 2, 1, 1), case(3, 1, 4, 2), case(0, 0, 4, 1), case(4, 3, 16, 5), case(5, 4, 33, 3),
        case(2, 3, 64, 2, longest=1), case(9, 3, 7, 20, wrong=2), case(80, 2, 16, 270), case(3, 2, 1, 5000),
        case(2, 3, 128, 3),
    ),
    bench=(case(256, 256, 64, 26), case(256, 256, 32, 26)),
)  # fmt: skip
