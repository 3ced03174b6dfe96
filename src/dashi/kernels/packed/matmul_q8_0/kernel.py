"""matmul_q8_0: x W^T with W stored in Q8_0, with the bits of the fp32 product."""

from dashi.kernels.packed._products import packed_product

KERNEL = packed_product("Q8_0")
