"""sigmoid: 1 / (1 + e^-x), as e / (1 + e) or 1 / (1 + e) with e = e^-|x|, within 2 ulp of the true value at both ends.

Results below the smallest canonical magnitude are 0: from x = -70.7 (fp64: -671.6) down.
"""

import numpy as np

from dashi.kernels.patterns import elementwise
from dashi.kernels.portable import canon, divide, exp
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    v = canon(x)
    one = v.dtype.type(1)
    e = exp(-np.abs(v))
    return divide(np.where(v < 0, e, one), one + e)


KERNEL = elementwise(
    summary="1 / (1 + e^-x)",
    flops={"f32": 39, "f64": 53},  # float operations: e^-|x|, the sum, the estimate of the quotient
    reference=reference,
)
