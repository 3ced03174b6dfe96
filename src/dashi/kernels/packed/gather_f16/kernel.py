"""gather_f16: rows of weights stored in F16 by their numbers, widened to fp32."""

from dashi.kernels.packed._gathers import packed_gather

KERNEL = packed_gather("F16")
