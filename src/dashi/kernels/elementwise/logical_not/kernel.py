"""logical_not: True where x is 0; NaN is not 0."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("logical_not", summary="True where x is 0; NaN is not 0", inputs="x")
