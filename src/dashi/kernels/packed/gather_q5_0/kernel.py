"""gather_q5_0: rows of weights stored in Q5_0 by their numbers, widened to fp32."""

from dashi.kernels.packed._gathers import packed_gather

KERNEL = packed_gather("Q5_0")
