"""gemv: row vector times matrix, result[j] = sum over i of x[i] A[i, j]; products flushed, summed in the order tree64.

`gemv_tiled` is another name of it: a workgroup already stages tiles of 64 x 64 rows, and there is one order of sums.
"""

from typing import Final

from dashi.kernels.abi import Case, Kernel, Operand
from dashi.kernels.linear import _columns as columns
from dashi.kernels.portable import canon, contract
from dashi.types import HostArray


def reference(x: HostArray, a: HostArray) -> HostArray:
    return canon(contract(x, a))


SIZES: Final = (
    (0, 3), (1, 1), (1, 70), (63, 31), (64, 32), (65, 33), (128, 128), (257, 65), (1000, 5), (1025, 3), (4095, 2),
    (4096, 1), (4097, 3), (5000, 40), (130, 100), (1100, 12), (70000, 1), (70, 8200), (262145, 1), (5, 0),
)  # fmt: skip

KERNEL = Kernel(
    summary="row vector times matrix: sum over i of x[i] A[i, j]",
    inputs=(Operand("x", shape=("k",)), Operand("A", shape=("k", "n"))),
    outputs=(Operand("result", shape=("n",)),),
    shaders={**columns.shaders(), **columns.held_shaders()},
    plan=columns.plan,
    reference=reference,
    cost=columns.cost,
    cases=tuple(Case({"x": (k,), "A": (k, n)}) for k, n in SIZES),
    bench=(Case({"x": (8192,), "A": (8192, 8192)}),),
    tunings=columns.TUNINGS,
    prefer=columns.prefer,
    aliases=("row_times_matrix", "gemv_tiled"),
)
