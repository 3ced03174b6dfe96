"""gemm_tiled: result = a b, every element summed over k in the order tree64, so one row of a gives the bits of gemv.

A workgroup makes a tile of results, an invocation a block of them in registers; the sizes are the tunings.
"""

from typing import Final

from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.linear import _columns as columns
from dashi.kernels.linear import _tiles as tiles
from dashi.kernels.portable import canon, contract
from dashi.types import Cost, HostArray


def plan(call: Call) -> Plan:
    return columns.row_plan(call) if tiles.is_row(call) else tiles.in_levels(call, tiles.multiply)


def reference(a: HostArray, b: HostArray) -> HostArray:
    return canon(contract(a, b))


def cost(call: Call) -> Cost:
    return tiles.cost(call, len(plan(call).dispatches))


SIZES: Final = (
    (1, 1, 1), (2, 0, 3), (0, 4, 3), (1, 64, 1), (3, 5, 7), (1, 300, 70), (16, 16, 16), (63, 65, 64), (64, 64, 64),
    (65, 63, 66), (70, 130, 129), (128, 256, 64), (5, 4096, 3), (3, 4097, 5), (66, 5000, 3), (2, 9000, 3),
    (129, 68, 132), (200, 20, 68), (3, 5000, 8), (100, 130, 70), (20, 300, 40), (12, 516, 64), (4, 700, 260),
)  # fmt: skip
"""(m, k, n)"""

KERNEL = Kernel(
    summary="matrix product a b",
    inputs=(Operand("a", shape=("m", "k")), Operand("b", shape=("k", "n"))),
    outputs=(Operand("result", shape=("m", "n")),),
    shaders={**tiles.shaders(), "fold": tiles.FOLD},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"a": (m, k), "b": (k, n)}) for m, k, n in SIZES),
    bench=(Case({"a": (4096, 4096), "b": (4096, 4096)}),),
    tunings=tiles.TUNINGS,
    aliases=("gemm",),
)
