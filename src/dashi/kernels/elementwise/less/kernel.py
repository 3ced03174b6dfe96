"""less: True where x < y; never for NaN."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("less", summary="True where x < y; never for NaN", aliases=("lt",))
