"""matmul_q5_k: x W^T with W stored in Q5_K, with the bits of the fp32 product."""

from dashi.kernels.packed._products import packed_product

KERNEL = packed_product("Q5_K")
