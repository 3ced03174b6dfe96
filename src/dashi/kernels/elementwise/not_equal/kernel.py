"""not_equal: True where x and y differ; NaN differs from everything."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("not_equal", summary="True where x and y differ; NaN differs from everything", aliases=("ne",))
