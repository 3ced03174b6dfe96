"""logical_or: True where x or y is not 0; NaN is not 0."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("logical_or", summary="True where x or y is not 0; NaN is not 0")
