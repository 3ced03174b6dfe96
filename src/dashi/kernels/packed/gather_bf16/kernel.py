"""gather_bf16: rows of weights stored in BF16 by their numbers, widened to fp32."""

from dashi.kernels.packed._gathers import packed_gather

KERNEL = packed_gather("BF16")
