"""neg: result = -x; -0 is never stored."""

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon
from dashi.types import Array


def reference(x: Array) -> Array:
    return canon(-canon(x))


KERNEL = elementwise(
    summary="-x",
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
