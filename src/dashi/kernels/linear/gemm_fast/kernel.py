"""gemm_fast: result = a b as fast as the device multiplies: sums in any order, products and sums contracted.

The same tiles as gemm_tiled without its order: repeatable on one device and driver, not the same bits on others. With
normal inputs every result is within k/2 roundings of the exact one; the bound is for cases of k up to 4096.
"""

from typing import Final

import numpy as np

from dashi.kernels import tiles
from dashi.kernels.abi import Call, Case, Dispatch, Kernel, Operand, Plan
from dashi.types import Array, Cost

LONGEST: Final = 8192
"""Of k in one dispatch; longer sums are added to the result in several."""


def plan(call: Call) -> Plan:
    if call.size("result") == 0:
        return Plan(())
    k = call.dims["k"]
    dispatches: list[Dispatch] = []
    for begin in range(0, max(1, k), LONGEST):
        flags = {"fresh": int(begin == 0), "last": int(begin + LONGEST >= k)}
        dispatches += tiles.multiply(call, (begin, min(begin + LONGEST, k)), "result", flags)
    return Plan(tuple(dispatches))


def reference(a: Array, b: Array) -> Array:
    return np.matmul(a, b)


def cost(call: Call) -> Cost:
    return tiles.cost(call, len(plan(call).dispatches))


SIZES: Final = (
    (1, 1, 1), (2, 0, 3), (0, 4, 3), (3, 5, 7), (64, 64, 64), (65, 63, 66), (70, 132, 128), (129, 68, 132),
    (5, 4096, 3), (2, 9000, 4),
)  # fmt: skip
"""(m, k, n)"""

KERNEL = Kernel(
    summary="matrix product a b, as fast as the device multiplies (the bits are the device's)",
    inputs=(Operand("a", shape=("m", "k")), Operand("b", shape=("k", "n"))),
    outputs=(Operand("result", shape=("m", "n")),),
    shaders=tiles.shaders(),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"a": (m, k), "b": (k, n)}) for m, k, n in SIZES),
    bench=(Case({"a": (4096, 4096), "b": (4096, 4096)}),),
    portable=False,
    bound=2e-6,
    tunings=tiles.TUNINGS,
)
