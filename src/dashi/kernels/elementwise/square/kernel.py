"""square: result = x x."""

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    v = canon(x)
    return canon(mul(v, v))


KERNEL = elementwise(
    summary="x x",
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
