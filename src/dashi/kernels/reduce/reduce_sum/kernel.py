"""reduce_sum: the sum of all elements, in the canonical order tree64."""

from dashi.kernels._reductions import reduction
from dashi.kernels.portable import canon, sum64
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return canon(sum64(canon(x.reshape(-1))).reshape(1))


KERNEL = reduction(
    summary="sum of all elements, as shape (1,); none sum to 0",
    reference=reference,
    flops=1,
    aliases=("sum",),
)
