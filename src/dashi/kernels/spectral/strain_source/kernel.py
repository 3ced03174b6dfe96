"""strain_source: (w^2 - normal^2 - shear^2) / 2 of vorticity and strains: the Laplacian of pressure, lap p."""

from dashi.kernels.patterns import elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(vorticity: HostArray, normal: HostArray, shear: HostArray) -> HostArray:
    w, n, s = canon(vorticity), canon(normal), canon(shear)
    return canon(mul(w.dtype.type(0.5), mul(w, w) - (mul(n, n) + mul(s, s))))


KERNEL = elementwise(
    summary="(w^2 - normal^2 - shear^2) / 2: the Laplacian of pressure",
    inputs=("vorticity", "normal", "shear"),
    flops=6,
    takes="index",
    reference=reference,
)
