"""floor: the largest integer not above x, exactly."""

from dashi.kernels import portable
from dashi.kernels.patterns import LARGE, elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.floor(x)


KERNEL = elementwise(
    summary="largest integer not above x",
    flops=1,
    wide=True,
    bench=LARGE,
    takes="stored",
    reference=reference,
)
