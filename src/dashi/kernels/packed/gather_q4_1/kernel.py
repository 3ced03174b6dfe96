"""gather_q4_1: rows of weights stored in Q4_1 by their numbers, widened to fp32."""

from dashi.kernels.packed._gathers import packed_gather

KERNEL = packed_gather("Q4_1")
