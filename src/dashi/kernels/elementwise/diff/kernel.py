"""diff: result = b - a, what changed from a to b. (`sub` has the operands the other way round; `defect_local` is the
size of the change.)"""

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon
from dashi.types import HostArray


def reference(a: HostArray, b: HostArray) -> HostArray:
    return canon(canon(b) - canon(a))


KERNEL = elementwise(
    summary="b - a, the change from a to b",
    inputs=("a", "b"),
    flops=1,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
