"""logical_xor: True where one is 0 and the other is not; NaN is not 0."""

from dashi.kernels.elementwise._compares import truths

KERNEL = truths("logical_xor", summary="True where one is 0 and the other is not; NaN is not 0")
