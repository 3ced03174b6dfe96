"""log: the natural logarithm, within 1 ulp of the true value of the canonical input; -infinity at 0, NaN below."""

from dashi.kernels import portable
from dashi.kernels.patterns import elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.log(x)


KERNEL = elementwise(
    summary="natural logarithm; -infinity at 0, NaN below 0",
    flops={"f32": 33, "f64": 45},  # float operations
    takes="stored",
    reference=reference,
)
