"""matmul_q6_k: x W^T with the rows of W stored in Q6_K, by the bits of the fp32 product with the numbers they stand for."""

from dashi.kernels.packed._products import packed_product

KERNEL = packed_product("Q6_K")
