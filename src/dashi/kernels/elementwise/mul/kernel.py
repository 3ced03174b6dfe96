"""mul: result = x y."""

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(x: HostArray, y: HostArray) -> HostArray:
    return canon(mul(canon(x), canon(y)))


KERNEL = elementwise(summary="x y", inputs=("x", "y"), flops=1, wide=True, dtypes=WITH_HALVES, reference=reference)
