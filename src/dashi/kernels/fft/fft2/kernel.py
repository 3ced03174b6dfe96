"""fft2: complex Fourier transforms along both axes of arrays (batch, h, w) of pairs (re, im): rows, then columns.

As `fft` along the last axis and then along the one before it, but values are not flushed between the two. `twiddles`
and `twiddles_columns` are `roots.table` of w and of h, for "rows" and for "columns".
"""

from dashi.kernels.fft._fields import PORTABLE

KERNEL = PORTABLE
