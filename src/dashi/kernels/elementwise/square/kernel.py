"""square: result = x x."""

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import Array


def reference(x: Array) -> Array:
    v = canon(x)
    return canon(mul(v, v))


KERNEL = elementwise(
    summary="x x",
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
