"""reciprocal: 1 / x, correctly rounded; infinity at 0 (there is no -0)."""

from dashi.kernels import portable
from dashi.kernels.patterns import elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.reciprocal(x)


KERNEL = elementwise(
    summary="1 / x; infinity at 0",
    flops={"f32": 13, "f64": 17},  # float operations of the estimate; the correction is on integers
    takes="stored",
    reference=reference,
)
