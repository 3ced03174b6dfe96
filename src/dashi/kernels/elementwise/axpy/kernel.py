"""axpy: result = a x + y, rounded after the product and after the sum."""

import numpy as np

from dashi.kernels.abi import Scalar
from dashi.kernels.patterns import LARGE, WITH_HALVES, elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(x: HostArray, y: HostArray, a: float) -> HostArray:
    factor = np.asarray(a, dtype=x.dtype)
    return canon(mul(canon(factor), canon(x)) + canon(y))


KERNEL = elementwise(
    summary="a x + y",
    inputs=("x", "y"),
    scalars=(Scalar("a", doc="factor of x"),),
    flops=2,
    wide=True,
    dtypes=WITH_HALVES,
    examples=({"a": 2.0}, {"a": -0.3}, {"a": 1.0e-30}, {"a": 0.0}),
    bench=LARGE,
    reference=reference,
)
