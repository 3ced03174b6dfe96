"""grouped_q4_1: rows of x times the packed matrices of their groups, in Q4_1, with the bits of the fp32 products."""

from dashi.kernels.packed._grouped import grouped_packed_product

KERNEL = grouped_packed_product("Q4_1")
