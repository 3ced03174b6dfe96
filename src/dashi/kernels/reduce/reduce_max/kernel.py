"""reduce_max: the largest element; a NaN is above everything, as in NumPy."""

from dashi.kernels._reductions import reduction, require_elements
from dashi.kernels.portable import order_key, order_value
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    require_elements(x.size)
    return order_value(order_key(x).max(keepdims=True).reshape(1))


KERNEL = reduction(
    summary="largest element, as shape (1,); NaN if there is one",
    reference=reference,
    flops=1,
    empty=False,
    ordered=False,
    aliases=("max",),
)
