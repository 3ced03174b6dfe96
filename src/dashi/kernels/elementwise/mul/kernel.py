"""mul: result = x y."""

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import Array


def reference(x: Array, y: Array) -> Array:
    return canon(mul(canon(x), canon(y)))


KERNEL = elementwise(summary="x y", inputs=("x", "y"), flops=1, wide=True, dtypes=WITH_HALVES, reference=reference)
