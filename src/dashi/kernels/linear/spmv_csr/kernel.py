"""spmv_csr: sparse matrix times vector, result[r] = tree64 sum of values[e] x[columns[e]] over the entries of row r.

Rows are compressed: those of row r are e = offsets[r] to offsets[r + 1], in the order in which they are stored; indices
have 32 bits. A row longer than `longest`, one that leaves the lists, and a column past the end of x give NaN: a part is
never taken for the whole.
"""

from typing import Final

import numpy as np

from dashi.errors import LimitError, ShapeError
from dashi.kernels._segments import segment_sums
from dashi.kernels._work import RUN, ceil_div, split_work
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Limits, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, mul
from dashi.types import Cost, HostArray, Shape

TILE: Final = RUN * RUN
LONGEST: Final = RUN * TILE
LONG_LOCAL: Final = 256
OPERANDS: Final = ("values", "columns", "offsets", "x", "result")
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "rows_256_hold_2048": {"local": 256, "held": 2048, "direct": 0},
    "direct": {"local": 128, "held": 128, "direct": 1},
}
"""Rows of a workgroup, and products that it holds at a time; `direct`: each invocation reads its own row."""


def prefer(limits: Limits, variant: str) -> str:
    """A processor has caches: products need no staging there."""
    return "direct" if limits.software else next(iter(TUNINGS))


def require_fit(rows: int, ends: int, longest: int) -> None:
    """What the shapes alone cannot say: one offset more than rows, and three levels of sums at most."""
    if ends != rows + 1:
        raise ShapeError(
            f"kernel 'spmv_csr': {rows} rows need {rows + 1} offsets, {ends} given.", "pass rows=len(offsets) - 1."
        )
    if longest > LONGEST:
        raise LimitError(
            f"kernel 'spmv_csr': rows of {longest} entries are longer than {LONGEST}.",
            "split the columns of the matrix into several, and add their products.",
        )


def reference(
    values: HostArray, columns: HostArray, offsets: HostArray, x: HostArray, rows: int, longest: int
) -> HostArray:
    require_fit(rows, offsets.size, longest)
    ends = offsets.astype(np.int64)
    starts, lengths = ends[:-1], np.diff(ends)
    whole = (lengths >= 0) & (ends[1:] <= values.size) & (lengths <= longest)
    nan = values.dtype.type(np.nan)
    places = columns.astype(np.int64)
    factors = np.append(canon(x), nan)[np.minimum(places, x.size)]
    products = np.where(places < x.size, mul(canon(values), factors), nan)
    total = segment_sums(products, np.where(whole, starts, 0), np.where(whole, lengths, 0))
    return canon(np.where(whole, total, nan))


def plan(call: Call) -> Plan:
    rows, longest = int(call.scalars["rows"]), int(call.scalars["longest"])
    require_fit(rows, call.dims["ends"], longest)
    if rows == 0:
        return Plan(())
    numbers = {"entries": call.dims["entries"], "n": call.dims["n"], "longest": longest}
    # One invocation adds `longest` numbers in a row, a workgroup 64: worth it only where rows are too few to fill a
    # device. Both ways give the same bits.
    if longest > max(RUN, min(TILE, rows // RUN)):
        trips = 1 + ceil_div(longest, TILE) * (1 + 2 * (TILE // 2 // LONG_LOCAL + RUN) + RUN)
        return Plan(tuple(_dispatches("long", rows, trips, numbers, {}, call.limits)))
    sizes = call.tuning or TUNINGS[prefer(call.limits, call.dtype.name)]
    local, held = min(sizes["local"], call.limits.invocations), sizes["held"]
    if (held + held // 32) * call.dtype.size > call.limits.shared_bytes:
        held //= 2
    numbers["rows"] = rows
    if sizes["direct"]:
        return Plan(
            tuple(_dispatches("direct", ceil_div(rows, local), 1 + longest, numbers, {"LOCAL": local}, call.limits))
        )
    slices = ceil_div(local * longest, held) + 1
    trips = 1 + longest + slices * (1 + held // local * 3 + held // local)
    spec = {"LOCAL": local, "HELD": held}
    return Plan(tuple(_dispatches("main", ceil_div(rows, local), trips, numbers, spec, call.limits)))


def _dispatches(
    shader: str, blocks: int, trips: int, numbers: dict[str, int], spec: dict[str, int], limits: Limits
) -> list[Dispatch]:
    return [
        Dispatch(
            shader,
            OPERANDS,
            {**numbers, "first_block": share.first, "blocks": share.beyond, "stride": share.groups},
            (share.groups, 1, 1),
            share.trips,
            spec,
        )
        for share in split_work(blocks, trips, limits)
    ]


def cost(call: Call) -> Cost:
    """Entries, offsets, vector and result once each; that x is gathered many times is not counted."""
    rows, entries = int(call.scalars["rows"]), call.dims["entries"]
    moved = (entries + call.dims["n"] + rows) * call.dtype.size + 4 * (entries + rows + 1)
    return Cost(2 * entries, moved, len(plan(call).dispatches)) if rows else Cost()


def case(rows: int, n: int, each: int, longest: int = RUN, hot: int = 0, reach: int = 0, even: bool = False) -> Case:
    """About `each` entries per row, or exactly that many (`even`); the middle row has `hot` more. Columns are below n,
    or below `reach`."""
    lengths = range(2 * each + 1)

    def offsets(rng: np.random.Generator, shape: Shape) -> HostArray:
        counts = np.resize(np.full(1, each) if even else np.array(lengths)[::-1], rows)
        counts[rows // 2 : rows // 2 + 1] += hot
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)

    def columns(rng: np.random.Generator, shape: Shape) -> HostArray:
        return rng.integers(0, reach or n, shape, dtype=np.uint32)

    # The lengths go down from 2 each to 0, again and again.
    rounds, rest = divmod(rows, len(lengths))
    size = rows * each + hot if even else hot + rounds * sum(lengths) + sum(lengths[::-1][:rest])
    return Case(
        {"values": (size,), "columns": (size,), "offsets": (rows + 1,), "x": (n,)},
        {"rows": rows, "longest": longest},
        {"columns": columns, "offsets": offsets},
    )


INPUTS: Final = (Binding("values"), Binding("columns", "u32"), Binding("offsets", "u32"), Binding("x"))
SHARES: Final = tuple(Scalar(name, "u32") for name in ("entries", "n", "longest", "first_block", "blocks", "stride"))
BENCH_ROWS: Final = 1 << 20
KERNEL = Kernel(
    summary="sparse matrix (compressed rows) times vector",
    inputs=(
        Operand("values", shape=("entries",)),
        Operand("columns", "u32", ("entries",)),
        Operand("offsets", "u32", ("ends",)),
        Operand("x", shape=("n",)),
    ),
    outputs=(Operand("result", shape=("rows",)),),
    scalars=(
        Scalar("rows", "u32", doc="rows of the matrix: one less than offsets"),
        Scalar("longest", "u32", 4096, "no row has more entries; at most 262144"),
    ),
    shaders={
        "main": Shader(
            (*INPUTS, Binding("result", access="write")),
            (*SHARES, Scalar("rows", "u32")),
            (Spec("LOCAL", 128), Spec("HELD", 1024)),
            local=("LOCAL", 1, 1),
            includes=("portable.glsl",),
            extensions=("GL_EXT_control_flow_attributes",),
        ),
        "direct": Shader(
            (*INPUTS, Binding("result", access="write")),
            (*SHARES, Scalar("rows", "u32")),
            (Spec("LOCAL", 128),),
            local=("LOCAL", 1, 1),
            file="direct.comp",
            includes=("portable.glsl",),
        ),
        "long": Shader(
            (*INPUTS, Binding("result", access="write")),
            SHARES,
            local=(LONG_LOCAL, 1, 1),
            file="long.comp",
            includes=("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1), case(0, 3, 1), case(5, 7, 0), case(300, 100, 5), case(257, 300, 16, even=True),
        case(300, 100, 5, longest=6), case(300, 100, 5, reach=103), case(70, 0, 3, reach=5),
        case(1, 10, 0, hot=64), case(1, 10, 0, 65, hot=65),
        case(40, 50, 3, 5000, hot=4097), case(3, 9, 100, LONGEST, hot=9000), case(4200, 70, 8, hot=40),
        case(5000, 4000, 30, 75),
    ),
    bench=(case(BENCH_ROWS, BENCH_ROWS, 16, 16, even=True),),
    tunings=TUNINGS,
    prefer=prefer,
)  # fmt: skip
