"""grouped_q8_0: rows of x times the packed matrices of their groups, in Q8_0, with the bits of the fp32 products."""

from dashi.kernels.packed._grouped import grouped_packed_product

KERNEL = grouped_packed_product("Q8_0")
