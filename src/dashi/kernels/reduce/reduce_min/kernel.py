"""reduce_min: the smallest element; a NaN is below everything, as in NumPy."""

from dashi.kernels._reductions import reduction, require_elements
from dashi.kernels.portable import canon, order_key, order_value
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    require_elements(x.size)
    return canon(-order_value(order_key(-canon(x)).max(keepdims=True).reshape(1)))


KERNEL = reduction(
    summary="smallest element, as shape (1,); NaN if there is one",
    reference=reference,
    flops=1,
    empty=False,
    ordered=False,
    aliases=("min",),
)
