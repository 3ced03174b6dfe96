"""complex_conj: the conjugates of complex numbers, stored as pairs: (re, -im). A zero imaginary part stays +0."""

import numpy as np

from dashi.kernels.elementwise._complex import complex_elementwise, parts, require_pairs
from dashi.kernels.portable import canon
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    require_pairs("complex_conj", x.shape)
    a, b = parts(x)
    return canon(np.stack([a, -b], axis=-1))


KERNEL = complex_elementwise(
    "complex_conj", summary="conjugate of complex pairs (..., 2)", flops=1, in_place=True, reference=reference
)
