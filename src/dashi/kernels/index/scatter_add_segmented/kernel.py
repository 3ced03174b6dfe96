"""scatter_add_segmented: result[s] = base[s] + the tree64 sum of the values that belong to s.

They are values[order[k]] for k from offsets[s] to offsets[s + 1]; `dashi.kernels._segments.segments` makes order,
offsets and longest from a list of targets. A segment longer than `longest`, or one that leaves the lists, gives NaN:
a part is never taken for the whole.
"""

import numpy as np

from dashi.errors import LimitError, ShapeError
from dashi.kernels._segments import segment_sums, segments
from dashi.kernels._work import RUN, ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray, Shape

LOCAL = 256
CHUNK = RUN * RUN
LONGEST = RUN * CHUNK
OPERANDS = ("base", "values", "order", "offsets", "result")


def require_fit(count: int, ends: int, longest: int) -> None:
    """What the shapes alone cannot say: one offset more than segments, and three levels of sums at most."""
    if ends != count + 1:
        raise ShapeError(
            f"kernel 'scatter_add_segmented': {count} segments need {count + 1} offsets, {ends} given.",
            "pass offsets with one entry more than base; dashi.kernels._segments.segments makes them.",
        )
    if longest > LONGEST:
        raise LimitError(
            f"kernel 'scatter_add_segmented': segments of {longest} values are longer than {LONGEST}.",
            "split the values into several calls, each adding to the result of the last.",
        )


def reference(base: HostArray, values: HostArray, order: HostArray, offsets: HostArray, longest: int) -> HostArray:
    require_fit(base.size, offsets.size, longest)
    n = values.size
    ends = offsets.astype(np.int64)
    starts, lengths = ends[:-1], np.diff(ends)
    whole = (lengths >= 0) & (ends[1:] <= n) & (lengths <= longest)
    places = order.astype(np.int64)
    addends = np.append(canon(values), values.dtype.type(np.nan))[np.minimum(places, n)]
    total = segment_sums(addends, np.where(whole, starts, 0), np.where(whole, lengths, 0))
    return canon(canon(base) + np.where(whole, total, values.dtype.type(np.nan)))


def plan(call: Call) -> Plan:
    count, longest = call.dims["s"], int(call.scalars["longest"])
    require_fit(count, call.dims["ends"], longest)
    if count == 0:
        return Plan(())
    numbers = {"count": count, "n": call.dims["n"], "longest": longest}
    # One invocation takes `longest` loads in a row, one workgroup 64: worth it only where segments are too few to fill
    # a device. Both ways give the same bits.
    if longest <= max(RUN, min(CHUNK, count // RUN)):
        groups, rounds = groups_for(count, LOCAL, call.limits)
        numbers["stride"] = groups * LOCAL
        trips = rounds * (1 + longest + ceil_div(longest, RUN))
        return Plan((Dispatch("many", OPERANDS, numbers, (groups, 1, 1), trips),))
    rows = ceil_div(count, call.limits.groups)
    columns = numbers["columns"] = ceil_div(count, rows)
    trips = ceil_div(longest, CHUNK) * (1 + 2 * RUN)
    return Plan((Dispatch("main", OPERANDS, numbers, (columns, rows, 1), trips),))


def cost(call: Call) -> Cost:
    count, n = call.dims["s"], call.dims["n"]
    moved = (2 * count + n) * call.dtype.size + 4 * (n + count + 1)
    return Cost(flops=n + count, bytes=moved, dispatches=1) if count else Cost()


def case(count: int, n: int, longest: int = RUN, hot: int = 0) -> Case:
    """n values with random targets, a few out of range, the last `hot` of them all at one target; `longest` is what
    the call declares."""

    def grouped() -> tuple[HostArray, HostArray, int]:
        # Both lists must come from the same targets, so these have a generator of their own.
        targets = np.random.default_rng(n).integers(0, count + 1, n)
        targets[n - hot :] = count // 2
        return segments(targets, count)

    def order(rng: np.random.Generator, shape: Shape) -> HostArray:
        return grouped()[0]

    def offsets(rng: np.random.Generator, shape: Shape) -> HostArray:
        return grouped()[1]

    return Case(
        {"base": (count,), "values": (n,), "order": (n,), "offsets": (count + 1,)},
        {"longest": longest},
        {"order": order, "offsets": offsets},
    )


INPUTS = (Binding("base"), Binding("values"), Binding("order", "u32"), Binding("offsets", "u32"))
NUMBERS = (Scalar("count", "u32"), Scalar("n", "u32"), Scalar("longest", "u32"))
KERNEL = Kernel(
    summary="base[s] + the sum of the values of segment s, in tree64 order; NaN where a segment is too long",
    inputs=(
        Operand("base", shape=("s",)),
        Operand("values", shape=("n",)),
        Operand("order", "u32", ("n",)),
        Operand("offsets", "u32", ("ends",)),
    ),
    outputs=(Operand("result", shape=("s",)),),
    scalars=(Scalar("longest", "u32", 4096, "no segment is longer; at most 262144"),),
    shaders={
        "many": Shader(
            (*INPUTS, Binding("result", access="write")),
            (*NUMBERS, Scalar("stride", "u32")),
            local=(LOCAL, 1, 1),
            file="many.comp",
            includes=("portable.glsl",),
        ),
        "main": Shader(
            (*INPUTS, Binding("result", access="write")),
            (*NUMBERS, Scalar("columns", "u32")),
            local=(RUN, 1, 1),
            includes=("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1), case(1, 63, hot=63), case(1, 64, hot=64), case(1, 65, longest=65, hot=65), case(300, 1000),
        case(300, 1000, longest=4), case(65, 5000, longest=70), case(1, 4096, longest=4096, hot=4096),
        case(2, 4097, longest=4097, hot=4097), case(40, 0), case(1, 0), case(0, 5), case(70000, 70000),
        case(8192, 20000, longest=128, hot=110), case(8192, 20000, longest=100, hot=110),
        case(1000, 20000, longest=6000, hot=5000), case(3, 262160, longest=262144, hot=262130),
    ),
    aliases=("scatter_add",),
)  # fmt: skip
