"""relu: result = x where it is positive, else 0. NaN stays NaN."""

import numpy as np

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    v = canon(x)
    return np.where(v < 0, v.dtype.type(0), v)


KERNEL = elementwise(
    summary="x where it is positive, else 0; NaN stays NaN",
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
