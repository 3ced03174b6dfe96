"""gather_q4_k: rows of weights stored in Q4_K by their numbers, widened to fp32."""

from dashi.kernels.packed._gathers import packed_gather

KERNEL = packed_gather("Q4_K")
