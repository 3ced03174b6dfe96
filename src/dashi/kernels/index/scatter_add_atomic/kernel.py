"""scatter_add_atomic: base with values[i] added at index[i], by float atomics; indices past the end are ignored.

The order of the additions is the device's, and may differ from run to run (tier 2): `scatter_add_segmented` gives the
same bits always and is the one to use where results are compared or hashed. The error against exact sums is that of
adding in any order: about 2^-24 times the square root of the addends per place, as long as they do not cancel.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, groups_for
from dashi.types import Array, Cost, Shape

LOCAL = 256


def reference(base: Array, index: Array, values: Array) -> Array:
    places = index.astype(np.int64)
    inside = places < base.size
    result = base.copy()
    np.add.at(result, places[inside], values[inside])
    return result


def plan(call: Call) -> Plan:
    m, n = call.dims["m"], call.dims["n"]
    if m == 0:
        return Plan(())
    groups, trips = groups_for(m, LOCAL, call.limits)
    copy = Dispatch("copy", ("base", "result"), {"m": m, "stride": groups * LOCAL}, (groups, 1, 1), trips)
    groups, trips = groups_for(n, LOCAL, call.limits)
    numbers = {"m": m, "n": n, "stride": groups * LOCAL}
    add = Dispatch("main", ("index", "values", "result"), numbers, (groups, 1, 1), trips)
    return Plan((copy, add) if n else (copy,))


def cost(call: Call) -> Cost:
    """Base is copied; each value and its index are read, its place is read and written."""
    m, n = call.dims["m"], call.dims["n"]
    return Cost(flops=n, bytes=8 * m + n * (4 + 4 + 8), dispatches=2 if n else 1) if m else Cost()


def case(m: int, n: int, reach: int | None = None) -> Case:
    """Targets below `reach` (m by default): a small reach has many duplicates, a large one indices out of range."""

    def index(rng: np.random.Generator, shape: Shape) -> Array:
        return rng.integers(0, m if reach is None else reach, shape, dtype=np.uint64).astype(np.uint32)

    return Case({"base": (m,), "index": (n,), "values": (n,)}, fill={"index": index})


KERNEL = Kernel(
    summary="base[index[i]] += values[i] by float atomics, in no fixed order; out of range is ignored",
    inputs=(Operand("base", shape=("m",)), Operand("index", "u32", ("n",)), Operand("values", shape=("n",))),
    outputs=(Operand("result", shape=("m",)),),
    shaders={
        "copy": Shader(
            (Binding("base"), Binding("result", access="write")),
            (Scalar("m", "u32"), Scalar("stride", "u32")),
            local=(LOCAL, 1, 1),
            file="copy.comp",
        ),
        "main": Shader(
            (Binding("index", "u32"), Binding("values"), Binding("result", access="readwrite")),
            (Scalar("m", "u32"), Scalar("n", "u32"), Scalar("stride", "u32")),
            local=(LOCAL, 1, 1),
            features=frozenset({"atomics_float"}),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1), case(63, 65), case(1, 1000), case(257, 4097), case(5000, 100), case(4097, 5000, reach=3),
        case(64, 4099, reach=100), case(1000, 257, reach=1 << 32), case(65, 0), case(0, 65, reach=8),
        case(70000, 70000),
    ),
    bench=(case(1 << 20, 1 << 24), case(1 << 24, 1 << 26)),
    dtypes=("f32",),
    portable=False,
    bound=1.0e-5,
    tier=2,
)  # fmt: skip
