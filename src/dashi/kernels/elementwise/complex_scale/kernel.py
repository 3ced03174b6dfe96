"""complex_scale: complex numbers, stored as pairs (re, im), times one complex number re + i im: what complex_mul gives
for an array of that number."""

import numpy as np

from dashi.kernels.abi import Scalar
from dashi.kernels.elementwise._complex import complex_elementwise, parts, require_pairs
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(x: HostArray, re: float, im: float) -> HostArray:
    require_pairs("complex_scale", x.shape)
    a, b = parts(x)
    c, d = canon(np.asarray([re, im], x.dtype))
    return canon(np.stack([mul(a, c) - mul(b, d), mul(a, d) + mul(b, c)], axis=-1))


KERNEL = complex_elementwise(
    "complex_scale",
    summary="(re + i im) x of complex pairs (..., 2)",
    scalars=(Scalar("re", doc="real part of the factor"), Scalar("im", default=0.0, doc="imaginary part of it")),
    flops=3,
    examples=({"re": 0.6, "im": -0.8}, {"re": -2.0}, {"re": 0.0, "im": 1.0}, {"re": 1.0e-30, "im": np.inf}),
    reference=reference,
)
