"""round: the integer nearest to x, halves to the even one, exactly."""

from dashi.kernels import portable
from dashi.kernels.patterns import LARGE, elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.round(x)


KERNEL = elementwise(
    summary="integer nearest to x, halves to the even one",
    flops=2,
    aliases=("rint",),
    wide=True,
    bench=LARGE,
    takes="stored",
    reference=reference,
)
