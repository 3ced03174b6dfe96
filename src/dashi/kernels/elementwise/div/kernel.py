"""div: result = x / y, correctly rounded; infinity of the sign of x where y is 0 (there is no -0), and 0 / 0 is NaN."""

from dashi.kernels import portable
from dashi.kernels.patterns import LARGE, elementwise
from dashi.types import HostArray


def reference(x: HostArray, y: HostArray) -> HostArray:
    return portable.divide(x, y)


KERNEL = elementwise(
    summary="x / y; x / 0 is an infinity of the sign of x, 0 / 0 is NaN",
    inputs=("x", "y"),
    flops={"f32": 13, "f64": 17},  # float operations of the estimate; the correction is on integers
    bench=LARGE,
    takes="stored",
    reference=reference,
)
