"""scatter_min_sorted: result[s] = the smallest of base[s] and the values whose index is s; NaN wins."""

from dashi.kernels.index._sorted_scatter import sorted_scatter

KERNEL = sorted_scatter(
    "min", "the smallest of base[s] and the values whose index is s, NaN wins; out of range is ignored"
)
