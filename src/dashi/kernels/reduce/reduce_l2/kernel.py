"""reduce_l2: the Euclidean norm, sqrt(sum of squares), the sum in the canonical order tree64.

The squares are not scaled: elements below about 2^-51 (fp64: 2^-484.5) count as zero, above 2^64 (2^512) as infinity.
"""

from dashi.kernels._reductions import reduction
from dashi.kernels.portable import canon, mul, sqrt, sum64
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    values = canon(x.reshape(-1))
    return sqrt(sum64(mul(values, values)).reshape(1))


KERNEL = reduction(
    summary="Euclidean norm of all elements, as shape (1,)",
    reference=reference,
    flops=2,
    aliases=("l2", "norm"),
)
