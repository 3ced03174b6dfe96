"""maximum: result = the larger of x and y, element by element. NaN if either is."""

import numpy as np

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon
from dashi.types import HostArray


def reference(x: HostArray, y: HostArray) -> HostArray:
    return np.maximum(canon(x), canon(y))


KERNEL = elementwise(
    summary="the larger of x and y, element by element; NaN if either is",
    inputs=("x", "y"),
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
