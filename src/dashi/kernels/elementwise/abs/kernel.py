"""abs: result = |x|."""

import numpy as np

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return canon(np.abs(canon(x)))


KERNEL = elementwise(
    summary="|x|",
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
