"""gather_q6_k: rows of weights stored in Q6_K by their numbers, widened to fp32."""

from dashi.kernels.packed._gathers import packed_gather

KERNEL = packed_gather("Q6_K")
