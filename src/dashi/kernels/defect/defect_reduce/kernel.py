"""defect_reduce: result = [max |b - a|, sum of |b - a| in tree64 order], both 0 where there are no elements.

A NaN anywhere makes both NaN. The addends are exactly those of defect_local.
"""

import numpy as np

from dashi.kernels._reductions import reduction
from dashi.kernels.portable import canon, order_key, order_value, sum64
from dashi.types import HostArray


def reference(a: HostArray, b: HostArray) -> HostArray:
    defect = canon(np.abs(canon(b.reshape(-1)) - canon(a.reshape(-1))))
    most = order_value(np.asarray(order_key(np.append(defect, defect.dtype.type(0))).max()))
    return canon(np.stack([most, sum64(defect)]))


KERNEL = reduction(
    summary="[max |b - a|, sum of |b - a|], as shape (2,); none give 0",
    reference=reference,
    flops=3,
    inputs=("a", "b"),
    parts=2,
)
