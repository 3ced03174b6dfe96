"""sqrt: the square root, correctly rounded; NaN below 0."""

from dashi.kernels import portable
from dashi.kernels.patterns import elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.sqrt(x)


KERNEL = elementwise(
    summary="square root; NaN below 0",
    flops={"f32": 17, "f64": 22},  # float operations of the estimate; the correction is on integers
    takes="stored",
    reference=reference,
)
