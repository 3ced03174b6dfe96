"""logical_and: True where neither is 0; NaN is not 0."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("logical_and", summary="True where neither is 0; NaN is not 0")
