"""matmul_bf16: x W^T with W stored in BF16, with the bits of the fp32 product."""

from dashi.kernels.packed._products import packed_product

KERNEL = packed_product("BF16")
