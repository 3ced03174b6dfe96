"""matmul_q6_k: x W^T with W stored in Q6_K, with the bits of the fp32 product."""

from dashi.kernels.packed._products import packed_product

KERNEL = packed_product("Q6_K")
