"""matmul_q4_0: x W^T with the rows of W stored in Q4_0, by the bits of the fp32 product with the numbers they stand for."""

from dashi.kernels.packed._products import packed_product

KERNEL = packed_product("Q4_0")
