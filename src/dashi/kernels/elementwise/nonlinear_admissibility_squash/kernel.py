"""nonlinear_admissibility_squash: result = tanh(alpha x), which brings every state into the admissible range
-1 to 1; the product is rounded, then the tangent is within 1 ulp."""

import numpy as np

from dashi.kernels.abi import Scalar
from dashi.kernels.patterns import elementwise
from dashi.kernels.portable import canon, mul, tanh
from dashi.types import HostArray


def reference(x: HostArray, alpha: float) -> HostArray:
    steepness = np.asarray(alpha, dtype=x.dtype)
    return tanh(mul(canon(steepness), canon(x)))


KERNEL = elementwise(
    summary="tanh(alpha x)",
    scalars=(Scalar("alpha", default=1.0, doc="steepness at 0"),),
    flops={"f32": 61, "f64": 75},  # one product, and tanh on its longer path
    examples=({"alpha": 1.0}, {"alpha": -0.7}, {"alpha": 8.0}, {"alpha": 0.0}, {"alpha": np.inf}),
    aliases=("squash",),
    reference=reference,
)
