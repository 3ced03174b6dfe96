"""fma3: result = x y + z. In spite of its name it rounds twice, after the product and after the sum: a fused
multiply-add does not give the same bits on every device."""

from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(x: HostArray, y: HostArray, z: HostArray) -> HostArray:
    return canon(mul(canon(x), canon(y)) + canon(z))


KERNEL = elementwise(
    summary="x y + z, rounded twice (after the product and after the sum)",
    inputs=("x", "y", "z"),
    flops=2,
    wide=True,
    dtypes=WITH_HALVES,
    reference=reference,
)
