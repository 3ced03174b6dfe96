"""less_equal: True where x <= y; never for NaN."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("less_equal", summary="True where x <= y; never for NaN", aliases=("le",))
