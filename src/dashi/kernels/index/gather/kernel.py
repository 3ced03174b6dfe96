"""gather: result[i] = x[index[i]], bit for bit; an index past the end of x gives zero."""

from dataclasses import replace

import numpy as np

from dashi.kernels._work import LOOP_PUSH, ceil_div, groups_for, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.types import Cost, HostArray, Shape

LOCAL = 256
WIDE = ("f32", "f64", "u32", "i32", "u64", "i64")
NARROW = ("f16", "i16", "u16", "i8", "u8", "bool")
"""Types of which a word has several: an invocation makes a word."""


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
    numbers = {"n": n, "m": call.dims["m"]}
    if call.dtype.name in NARROW:
        pack = 4 // call.dtype.size
        words = loop_plan(call, ceil_div(n, pack), ("x", "index", "result"), numbers, shader="narrow", trips=pack)
        return Plan(tuple(replace(d, spec={"PACK": pack}) for d in words.dispatches))
    groups, trips = groups_for(n, LOCAL, call.limits)
    numbers |= {"stride": groups * LOCAL}
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
            dtypes=WIDE,
        ),
        "narrow": Shader(
            (Binding("x", "u32"), Binding("index", "u32"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, Scalar("n", "u32"), Scalar("m", "u32")),
            (Spec("PACK", 2),),
            local=(LOCAL, 1, 1),
            file="narrow.comp",
            dtypes=NARROW,
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1), case(64, 63), case(63, 65), case(1000, 257), case(257, 4097), case(100, 5000, reach=200),
        case(0, 65, reach=1 << 32), case(65, 0), case(70000, 1 << 17),
    ),
    dtypes=(*WIDE, *NARROW),
)  # fmt: skip
