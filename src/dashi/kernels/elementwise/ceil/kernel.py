"""ceil: the smallest integer not below x, exactly."""

from dashi.kernels import portable
from dashi.kernels.patterns import LARGE, elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.ceil(x)


KERNEL = elementwise(
    summary="smallest integer not below x",
    flops=1,
    wide=True,
    bench=LARGE,
    takes="stored",
    reference=reference,
)
