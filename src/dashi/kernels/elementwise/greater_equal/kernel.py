"""greater_equal: True where x >= y; never for NaN."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("greater_equal", summary="True where x >= y; never for NaN", aliases=("ge",))
