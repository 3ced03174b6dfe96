"""greater: True where x > y; never for NaN."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("greater", summary="True where x > y; never for NaN", aliases=("gt",))
