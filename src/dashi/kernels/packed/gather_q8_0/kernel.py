"""gather_q8_0: rows of weights stored in Q8_0 by their numbers, widened to fp32."""

from dashi.kernels.packed._gathers import packed_gather

KERNEL = packed_gather("Q8_0")
