"""reduce_statistics: result = [min, max, sum, sum of squares] in one pass over the elements.

Each is what reduce_min, reduce_max, reduce_sum and reduce_sumsq give, bit for bit; a NaN anywhere makes all four NaN.
"""

import numpy as np

from dashi.kernels._reductions import reduction, require_elements
from dashi.kernels.portable import canon, mul, order_key, order_value, sum64
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    require_elements(x.size)
    values = canon(x.reshape(-1))
    least = canon(-order_value(order_key(-values).max(keepdims=True)))
    most = order_value(order_key(values).max(keepdims=True))
    sums = [sum64(addends).reshape(1) for addends in (values, mul(values, values))]
    return canon(np.concatenate([least, most, *sums]))


KERNEL = reduction(
    summary="[min, max, sum, sum of squares] of all elements, as shape (4,)",
    reference=reference,
    flops=5,
    parts=4,
    empty=False,
    aliases=("statistics",),
)
