"""grouped_q4_k: rows of x times the packed matrices of their groups, in Q4_K, with the bits of the fp32 products."""

from dashi.kernels.packed._grouped import grouped_packed_product

KERNEL = grouped_packed_product("Q4_K")
