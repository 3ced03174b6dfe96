"""affine: result = a x + b, rounded after the product and after the sum."""

import numpy as np

from dashi.kernels.abi import Scalar
from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(x: HostArray, a: float, b: float) -> HostArray:
    factor, offset = np.asarray(a, dtype=x.dtype), np.asarray(b, dtype=x.dtype)
    return canon(mul(canon(factor), canon(x)) + canon(offset))


KERNEL = elementwise(
    summary="a x + b",
    scalars=(Scalar("a", doc="factor of x"), Scalar("b", doc="added to the product")),
    flops=2,
    wide=True,
    dtypes=WITH_HALVES,
    examples=({"a": 2.0, "b": -1.0}, {"a": -0.3, "b": 1.0e-33}, {"a": 1.0e-30, "b": 0.0}, {"a": np.inf, "b": -np.inf}),
    reference=reference,
)
