"""scatter_add_sorted: result[s] = base[s] + the tree64 sum of the values whose index is s, in the order they came in.

The bits of `scatter_add_segmented` without lists from the host (`dashi.kernels.index._sorted_scatter`).
"""

from dashi.kernels.index._sorted_scatter import sorted_scatter

KERNEL = sorted_scatter(
    "add", "base[s] + the sum of the values whose index is s, in tree64 order; out of range is ignored"
)
