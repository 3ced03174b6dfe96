"""cumprod_rows: the running products of every row, in the order of `prefix_scan` and by `mul`; integers wrap round."""

from dashi.kernels.reduce._scans import scan_kernel

KERNEL = scan_kernel("running products of each row, with or without the element itself", product=True)
