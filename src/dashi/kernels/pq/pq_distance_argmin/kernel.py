"""pq_distance_argmin: distances of coded vectors to a query, from its table (pq_lut_build), and the nearest one.

The distance of item i is the sum over parts j of table[j, codes[i, j]], in canonical order; a code that the table does
not have counts as infinitely far. Nearest is the lowest index among equals; a NaN comes before all, as in NumPy.
"""

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._counting import FEW
from dashi.kernels._trits import sum64_trips
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Fill, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.kernels.portable import canon, order_key, sum64
from dashi.types import Cost, HostArray, Shape

GROUPS = 4096
"""Workgroups of the first pass at most: the second looks at one candidate of each."""


def reference(table: HostArray, codes: HostArray) -> tuple[HostArray, HostArray]:
    require_items(codes.shape[0])
    parts, k = table.shape
    entries = np.pad(canon(table), ((0, 0), (0, 1)), constant_values=np.inf)
    chosen = entries[np.arange(parts), np.minimum(codes.astype(np.intp), k)]
    distances = canon(sum64(chosen))
    keys = ~order_key(distances)
    keys[np.isnan(distances)] = np.iinfo(keys.dtype).max
    return distances, np.array([keys.argmax()], np.uint32)


def require_items(count: int) -> None:
    """An error if there is nothing to choose from."""
    if count == 0:
        raise ShapeError("the nearest of no items is not defined.", "pass codes of at least one item.")


def plan(call: Call) -> Plan:
    n, m, k = (call.dims[name] for name in "nmk")
    require_items(n)
    groups = min(ceil_div(n, LOCAL), FEW if call.limits.software else GROUPS, call.limits.groups)
    rounds = ceil_div(n, groups * LOCAL)
    push = {"items": n, "stride": groups * LOCAL, "m": m, "k": k}
    trips = rounds * (1 + sum64_trips(m)) + 8
    share = ceil_div(groups, LOCAL)
    return Plan(
        (
            Dispatch("main", ("table", "codes", "distances", "candidates"), push, (groups, 1, 1), trips),
            Dispatch(
                "nearest",
                ("distances", "candidates", "nearest"),
                {"items": n, "many": groups},
                (1, 1, 1),
                share + 8,
            ),
        ),
        {"candidates": ("u32", groups)},
    )


def cost(call: Call) -> Cost:
    n, m, k = (call.dims[name] for name in "nmk")
    return Cost(flops=n * m, bytes=n * m + (m * k + n) * call.dtype.size + 4, dispatches=2)


def case(m: int, k: int, n: int, reach: int | None = None) -> Case:
    """Codes below `reach`, past the table where that is larger than k."""

    def codes(rng: np.random.Generator, shape: Shape) -> HostArray:
        return rng.integers(0, k if reach is None else reach, shape).astype(np.uint8)

    fill: dict[str, Fill] = {"codes": codes}
    return Case({"table": (m, k), "codes": (n, m)}, fill=fill)


KERNEL = Kernel(
    summary="distances (n,) of coded vectors by table lookup, and the index of the nearest",
    inputs=(Operand("table", shape=("m", "k")), Operand("codes", "u8", ("n", "m"))),
    outputs=(Operand("distances", shape=("n",)), Operand("nearest", "u32", (1,))),
    shaders={
        "main": Shader(
            (
                Binding("table"),
                Binding("codes", "u32"),
                Binding("distances", access="write"),
                Binding("candidates", "u32", "write"),
            ),
            (*LOOP_PUSH, Scalar("m", "u32"), Scalar("k", "u32")),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        ),
        "nearest": Shader(
            (Binding("distances"), Binding("candidates", "u32"), Binding("nearest", "u32", "write")),
            (Scalar("items", "u32"), Scalar("many", "u32")),
            local=(LOCAL, 1, 1),
            file="nearest.comp",
            includes=("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=(
        case(1, 1, 1), case(8, 16, 63), case(4, 256, 257), case(3, 5, 100, reach=8), case(65, 4, 66), case(2, 3, 5000),
        case(0, 4, 3), case(8, 16, 70000), case(1, 2, 70000),
    ),
    bench=(case(16, 256, 1 << 22),),
)  # fmt: skip
