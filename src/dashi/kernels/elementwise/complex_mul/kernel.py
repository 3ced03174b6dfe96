"""complex_mul: the products of complex numbers, stored as pairs (re, im): (ac - bd, ad + bc), each product rounded.

Infinities follow the formula, as they do for NumPy: infinity times 0 anywhere in it is NaN.
"""

import numpy as np

from dashi.kernels.elementwise._complex import complex_elementwise, parts, require_pairs
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(x: HostArray, y: HostArray) -> HostArray:
    require_pairs("complex_mul", x.shape)
    (a, b), (c, d) = parts(x), parts(y)
    return canon(np.stack([mul(a, c) - mul(b, d), mul(a, d) + mul(b, c)], axis=-1))


KERNEL = complex_elementwise(
    "complex_mul", summary="x y of complex pairs (..., 2)", inputs=("x", "y"), flops=3, reference=reference
)
