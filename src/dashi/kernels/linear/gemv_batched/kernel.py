"""gemv_batched: as many row vectors times as many matrices, result[t, j] = sum over i of x[t, i] A[t, i, j].

Each has the bits of gemv. With one matrix for all vectors the product is gemm, with the same bits.
"""

from typing import Final

import numpy as np

from dashi.kernels.abi import Case, Kernel, Limits, Operand
from dashi.kernels.linear import _columns as columns
from dashi.kernels.portable import canon, contract
from dashi.types import HostArray


def reference(x: HostArray, a: HostArray) -> HostArray:
    rows = [canon(contract(x[t], a[t])) for t in range(len(x))]
    return np.stack(rows) if rows else np.zeros((0, a.shape[2]), x.dtype)


TUNINGS: Final = {name: columns.TUNINGS[name] for name in ("narrow_8", "direct")}


def prefer(limits: Limits, variant: str) -> str:
    """The tuning: as for gemv, but with so many vectors at once that none needs many loads in flight."""
    return "direct" if limits.software else "narrow_8"


SIZES: Final = (
    (1, 1, 1), (0, 3, 4), (3, 0, 2), (2, 5, 0), (7, 64, 32), (5, 65, 33), (3, 70, 4), (40, 20, 12), (2, 1000, 7),
    (3, 1025, 8), (2, 4097, 3), (33, 4100, 2),
)  # fmt: skip
"""(b, k, n)"""

KERNEL = Kernel(
    summary="batch of row vectors times batch of matrices: sum over i of x[t, i] A[t, i, j]",
    inputs=(Operand("x", shape=("b", "k")), Operand("A", shape=("b", "k", "n"))),
    outputs=(Operand("result", shape=("b", "n")),),
    shaders=columns.shaders(),
    plan=columns.plan,
    reference=reference,
    cost=columns.cost,
    cases=tuple(Case({"x": (b, k), "A": (b, k, n)}) for b, k, n in SIZES),
    bench=(Case({"x": (256, 512), "A": (256, 512, 512)}), Case({"x": (4096, 128), "A": (4096, 128, 128)})),
    tunings=TUNINGS,
    prefer=prefer,
)
