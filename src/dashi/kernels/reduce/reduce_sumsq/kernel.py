"""reduce_sumsq: the sum of the squares of all elements, in the canonical order tree64.

The squares are not scaled: elements below about 2^-51 (fp64: 2^-484.5) count as zero, above 2^64 (2^512) as infinity.
"""

from dashi.kernels._reductions import reduction
from dashi.kernels.portable import canon, mul, sum64
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    values = canon(x.reshape(-1))
    return canon(sum64(mul(values, values)).reshape(1))


KERNEL = reduction(
    summary="sum of the squares of all elements, as shape (1,); none sum to 0",
    reference=reference,
    flops=2,
    aliases=("sumsq",),
)
