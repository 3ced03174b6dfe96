"""neg: result = -x; -0 is never stored."""

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return canon(-canon(x))


KERNEL = elementwise(
    summary="-x",
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
