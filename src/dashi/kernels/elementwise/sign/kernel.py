"""sign: result = -1, 0 or 1 by the sign of x. NaN stays NaN."""

import numpy as np

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return canon(np.sign(canon(x)))


KERNEL = elementwise(
    summary="-1, 0 or 1 by the sign of x; NaN stays NaN",
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
