"""scatter_mul_sorted: result[s] = base[s] times the tree64 product of the values whose index is s."""

from dashi.kernels.index._sorted_scatter import sorted_scatter

KERNEL = sorted_scatter(
    "mul", "base[s] times the product of the values whose index is s, in tree64 order; out of range is ignored"
)
