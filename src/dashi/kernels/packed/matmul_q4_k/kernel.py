"""matmul_q4_k: x W^T with W stored in Q4_K, with the bits of the fp32 product."""

from dashi.kernels.packed._products import packed_product

KERNEL = packed_product("Q4_K")
