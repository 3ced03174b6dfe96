"""scale: result = a x."""

import numpy as np

from dashi.kernels.abi import Scalar
from dashi.kernels.patterns import LARGE, WITH_HALVES, elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(x: HostArray, a: float) -> HostArray:
    factor = np.asarray(a, dtype=x.dtype)
    return canon(mul(canon(factor), canon(x)))


KERNEL = elementwise(
    summary="a x",
    scalars=(Scalar("a", doc="factor of x"),),
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    examples=({"a": 2.0}, {"a": -0.3}, {"a": 1.0e-30}, {"a": 0.0}, {"a": np.inf}, {"a": np.nan}),
    bench=LARGE,
    reference=reference,
)
