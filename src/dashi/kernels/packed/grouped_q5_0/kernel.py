"""grouped_q5_0: rows of x times the packed matrices of their groups, in Q5_0, with the bits of the fp32 products."""

from dashi.kernels.packed._grouped import grouped_packed_product

KERNEL = grouped_packed_product("Q5_0")
