"""layer_norm: (x - mean) / sqrt(variance + eps) gamma + beta along the last axis.

The variance is the mean of squared differences. gamma and beta are stretched to the shape of x.
"""

from dashi.kernels import row_map
from dashi.kernels.expressions import arguments, scalars
from dashi.kernels.norm._last_axis import EPS, over_last_axis

X, GAMMA, BETA = arguments("x gamma beta")
(EPSILON,) = scalars("eps")
KERNEL = over_last_axis(
    row_map("layer_norm", X, lambda v: v * GAMMA + BETA, eps=EPSILON),
    "(x - mean) / sqrt(variance + eps) gamma + beta, along the last axis",
    scalars=(EPS,),
)
