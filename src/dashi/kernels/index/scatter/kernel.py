"""scatter: a copy of base in which result[index[i]] = values[i], bit for bit.

Where an index occurs more than once the highest i wins, always: each place remembers its owner by an integer maximum,
then every place is written once. Indices past the end of base are ignored.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Kernel, Plan, Shader
from dashi.kernels.index._scattering import CASES, INPUTS, ITEMS, LOCAL, OUTPUTS, PLACES, case, sweep
from dashi.types import Cost, HostArray


def reference(base: HostArray, index: HostArray, values: HostArray) -> HostArray:
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
    clear = sweep(call, "clear", ("owner",), m, {"m": m})
    claim = sweep(call, "claim", ("index", "owner"), n, {"m": m, "n": n})
    copy = sweep(call, "copy", ("base", "owner", "values", "result"), m, {"m": m})
    return Plan((clear, claim, copy) if n else (clear, copy), {"owner": ("u32", m)})


def cost(call: Call) -> Cost:
    """The owners are written, updated (read and written) and read; values that win are read once."""
    m, n = call.dims["m"], call.dims["n"]
    if m == 0:
        return Cost()
    return Cost(bytes=m * (4 + 4 + 2 * call.dtype.size) + n * (4 + 8), dispatches=3 if n else 2)


KERNEL = Kernel(
    summary="base with result[index[i]] = values[i] bit for bit; the highest i wins, out of range is ignored",
    inputs=INPUTS,
    outputs=OUTPUTS,
    shaders={
        "clear": Shader((Binding("owner", "u32", "write"),), PLACES, local=(LOCAL, 1, 1), file="clear.comp"),
        "claim": Shader(
            (Binding("index", "u32"), Binding("owner", "u32", "readwrite")),
            ITEMS,
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
    cases=CASES,
    bench=(case(1 << 24, 1 << 24),),
    dtypes=("f32", "f64", "u32", "i32", "u64", "i64"),
)
