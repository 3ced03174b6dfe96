"""trunc: x without its fraction, exactly."""

from dashi.kernels import portable
from dashi.kernels.patterns import LARGE, elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.trunc(x)


KERNEL = elementwise(
    summary="x without its fraction",
    flops=1,
    wide=True,
    bench=LARGE,
    takes="stored",
    reference=reference,
)
