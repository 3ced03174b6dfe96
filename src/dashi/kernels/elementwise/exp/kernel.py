"""exp: e^x within 1 ulp of the true value of the canonical input; results below the smallest magnitude kept are +0."""

from dashi.kernels import portable
from dashi.kernels.patterns import LARGE, elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.exp(x)


KERNEL = elementwise(
    summary="e^x",
    flops={"f32": 26, "f64": 36},  # float operations
    bench=LARGE,
    takes="stored",
    reference=reference,
)
