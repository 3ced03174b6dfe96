"""rms_norm: x / sqrt(mean of squares + eps) gamma along the last axis; gamma is stretched to the shape of x."""

from dashi.kernels import row_map
from dashi.kernels.expressions import arguments, scalars
from dashi.kernels.norm._last_axis import EPS, over_last_axis

X, GAMMA = arguments("x gamma")
(EPSILON,) = scalars("eps")
KERNEL = over_last_axis(
    row_map("rms_norm", X, lambda v: v * GAMMA, eps=EPSILON),
    "x / sqrt(mean of squares + eps) gamma, along the last axis",
    scalars=(EPS,),
)
