"""scatter: a copy of base in which result[index[i]] = values[i], bit for bit.

Where an index occurs more than once the highest i wins, always: each place remembers its owner by an integer maximum,
then every place is written once. Indices past the end of base are ignored.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, groups_for
from dashi.types import Array, Cost, Shape

LOCAL = 256


def reference(base: Array, index: Array, values: Array) -> Array:
    places = index.astype(np.int64)
    inside = places < base.size
    owner = np.zeros(base.size, np.int64)
    np.maximum.at(owner, places[inside], np.flatnonzero(inside) + 1)
    result = base.copy()
    claimed = owner > 0
    result[claimed] = values[owner[claimed] - 1]
    return result


def plan(call: Call) -> Plan:
    m, n = call.dims["m"], call.dims["n"]
    if m == 0:
        return Plan(())
    places, over_places = groups_for(m, LOCAL, call.limits)
    items, over_items = groups_for(n, LOCAL, call.limits)
    every = {"m": m, "stride": places * LOCAL}
    clear = Dispatch("clear", ("owner",), every, (places, 1, 1), over_places)
    each = {"m": m, "n": n, "stride": items * LOCAL}
    claim = Dispatch("claim", ("index", "owner"), each, (items, 1, 1), over_items)
    copy = Dispatch("copy", ("base", "owner", "values", "result"), every, (places, 1, 1), over_places)
    return Plan((clear, claim, copy) if n else (clear, copy), {"owner": ("u32", m)})


def cost(call: Call) -> Cost:
    """The owners are written, updated (read and written) and read; values that win are read once."""
    m, n = call.dims["m"], call.dims["n"]
    if m == 0:
        return Cost()
    return Cost(bytes=m * (4 + 4 + 2 * call.dtype.size) + n * (4 + 8), dispatches=3 if n else 2)


def case(m: int, n: int, reach: int | None = None) -> Case:
    """Targets below `reach` (m by default): a small reach has many duplicates, a large one indices out of range."""

    def index(rng: np.random.Generator, shape: Shape) -> Array:
        return rng.integers(0, m if reach is None else reach, shape, dtype=np.uint64).astype(np.uint32)

    return Case({"base": (m,), "index": (n,), "values": (n,)}, fill={"index": index})


PLACES = (Scalar("m", "u32"), Scalar("stride", "u32"))
KERNEL = Kernel(
    summary="base with result[index[i]] = values[i] bit for bit; the highest i wins, out of range is ignored",
    inputs=(Operand("base", shape=("m",)), Operand("index", "u32", ("n",)), Operand("values", shape=("n",))),
    outputs=(Operand("result", shape=("m",)),),
    shaders={
        "clear": Shader((Binding("owner", "u32", "write"),), PLACES, local=(LOCAL, 1, 1), file="clear.comp"),
        "claim": Shader(
            (Binding("index", "u32"), Binding("owner", "u32", "readwrite")),
            (Scalar("m", "u32"), Scalar("n", "u32"), Scalar("stride", "u32")),
            local=(LOCAL, 1, 1),
            file="claim.comp",
        ),
        "copy": Shader(
            (Binding("base", "W"), Binding("owner", "u32"), Binding("values", "W"), Binding("result", "W", "write")),
            PLACES,
            local=(LOCAL, 1, 1),
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
    dtypes=("f32", "f64", "u32", "i32", "u64", "i64"),
)  # fmt: skip
