"""equal: True where x = y; NaN is equal to nothing."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("equal", summary="True where x = y; NaN is equal to nothing", aliases=("eq",))
