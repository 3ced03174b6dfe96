"""grouped_bf16: rows of x times the packed matrices of their groups, in BF16, with the bits of the fp32 products."""

from dashi.kernels.packed._grouped import grouped_packed_product

KERNEL = grouped_packed_product("BF16")
