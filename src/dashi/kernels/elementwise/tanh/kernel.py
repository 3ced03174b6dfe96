"""tanh: the hyperbolic tangent, within 1 ulp of the true value of the canonical input."""

from dashi.kernels import portable
from dashi.kernels.patterns import elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.tanh(x)


KERNEL = elementwise(
    summary="hyperbolic tangent",
    flops={"f32": 60, "f64": 74},  # float operations of the longer path, |x| >= 1/2
    takes="stored",
    reference=reference,
)
