"""softmax: exp(x - m) / sum of exp(x - m) along the last axis, where m is the largest of the row.

A row that holds a NaN or +infinity, or nothing but -infinity, becomes NaN.
"""

from dashi.kernels import row_map
from dashi.kernels.expressions import arguments
from dashi.kernels.norm._last_axis import over_last_axis

(X,) = arguments("x")
KERNEL = over_last_axis(row_map("softmax", X), "exp(x) over the sum of its row, along the last axis")
