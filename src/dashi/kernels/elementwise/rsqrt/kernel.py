"""rsqrt: 1 / sqrt(x) within 1.3 ulp; infinity at 0, NaN below."""

from dashi.kernels import portable
from dashi.kernels.patterns import elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.rsqrt(x)


KERNEL = elementwise(
    summary="1 / sqrt(x); infinity at 0, NaN below 0",
    flops={"f32": 16, "f64": 21},  # float operations
    takes="stored",
    reference=reference,
)
