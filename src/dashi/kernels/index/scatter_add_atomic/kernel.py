"""scatter_add_atomic: base with values[i] added at index[i], by float atomics; indices past the end are ignored.

The order of the additions is the device's, and may differ from run to run (tier 2): `scatter_add_segmented` gives the
same bits always and is the one to use where results are compared or hashed. The error against exact sums is that of
adding in any order: about 2^-24 times the square root of the addends per place, as long as they do not cancel.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Kernel, Plan, Shader
from dashi.kernels.index._scattering import CASES, INPUTS, ITEMS, LOCAL, OUTPUTS, PLACES, case, sweep
from dashi.types import Cost, HostArray


def reference(base: HostArray, index: HostArray, values: HostArray) -> HostArray:
    places = index.astype(np.int64)
    inside = places < base.size
    result = base.copy()
    np.add.at(result, places[inside], values[inside])
    return result


def plan(call: Call) -> Plan:
    m, n = call.dims["m"], call.dims["n"]
    if m == 0:
        return Plan(())
    copy = sweep(call, "copy", ("base", "result"), m, {"m": m})
    add = sweep(call, "main", ("index", "values", "result"), n, {"m": m, "n": n})
    return Plan((copy, add) if n else (copy,))


def cost(call: Call) -> Cost:
    """Base is copied; each value and its index are read, its place is read and written."""
    m, n = call.dims["m"], call.dims["n"]
    return Cost(flops=n, bytes=8 * m + n * (4 + 4 + 8), dispatches=2 if n else 1) if m else Cost()


KERNEL = Kernel(
    summary="base[index[i]] += values[i] by float atomics, in no fixed order; out of range is ignored",
    inputs=INPUTS,
    outputs=OUTPUTS,
    shaders={
        "copy": Shader(
            (Binding("base"), Binding("result", access="write")),
            PLACES,
            local=(LOCAL, 1, 1),
            file="copy.comp",
        ),
        "main": Shader(
            (Binding("index", "u32"), Binding("values"), Binding("result", access="readwrite")),
            ITEMS,
            local=(LOCAL, 1, 1),
            features=frozenset({"atomics_float"}),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=CASES,
    bench=(case(1 << 20, 1 << 24), case(1 << 24, 1 << 26)),
    dtypes=("f32",),
    portable=False,
    bound=1.0e-5,
    tier=2,
)
