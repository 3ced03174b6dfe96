"""gather: result[i] = x[index[i]], bit for bit; an index past the end of x gives zero."""

import numpy as np

from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.types import Cost, HostArray, Shape

LOCAL = 256


def reference(x: HostArray, index: HostArray) -> HostArray:
    places = index.astype(np.int64)
    inside = places < x.size
    result = np.zeros(index.shape, x.dtype)
    result[inside] = x[places[inside]]
    return result


def plan(call: Call) -> Plan:
    n = call.dims["n"]
    if n == 0:
        return Plan(())
    groups, trips = groups_for(n, LOCAL, call.limits)
    numbers = {"n": n, "m": call.dims["m"], "stride": groups * LOCAL}
    return Plan((Dispatch("main", ("x", "index", "result"), numbers, (groups, 1, 1), trips),))


def cost(call: Call) -> Cost:
    n = call.dims["n"]
    return Cost(bytes=n * (4 + 2 * call.dtype.size), dispatches=int(n > 0))


def case(m: int, n: int, reach: int | None = None) -> Case:
    """Indices below `reach`; past the end of x where that is larger than m."""

    def index(rng: np.random.Generator, shape: Shape) -> HostArray:
        chosen = rng.integers(0, m if reach is None else reach, shape, dtype=np.uint64).astype(np.uint32)
        if reach is not None and n > 1:
            chosen[-2:] = m, 0xFFFFFFFF
        return chosen

    return Case({"x": (m,), "index": (n,)}, fill={"index": index})


KERNEL = Kernel(
    summary="x[index[i]] bit for bit; zero where the index is out of range",
    inputs=(Operand("x", shape=("m",)), Operand("index", "u32", ("n",))),
    outputs=(Operand("result", shape=("n",)),),
    shaders={
        "main": Shader(
            (Binding("x", "W"), Binding("index", "u32"), Binding("result", "W", "write")),
            (Scalar("n", "u32"), Scalar("m", "u32"), Scalar("stride", "u32")),
            local=(LOCAL, 1, 1),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1), case(64, 63), case(63, 65), case(1000, 257), case(257, 4097), case(100, 5000, reach=200),
        case(0, 65, reach=1 << 32), case(65, 0), case(70000, 1 << 17),
    ),
    dtypes=("f32", "f64", "u32", "i32", "u64", "i64"),
)  # fmt: skip
