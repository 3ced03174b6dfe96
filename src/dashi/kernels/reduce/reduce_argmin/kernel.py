"""reduce_argmin: where the smallest element is (in the flattened array): the first of equals, the first NaN if any."""

import numpy as np

from dashi.kernels._reductions import arg_reduction, require_elements
from dashi.kernels.portable import canon, order_key
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    require_elements(x.size)
    return np.asarray(order_key(-canon(x.reshape(-1))).argmax(), np.uint32).reshape(1)


KERNEL = arg_reduction(
    summary="flat index of the smallest element, as u32 of shape (1,)", reference=reference, aliases=("argmin",)
)
