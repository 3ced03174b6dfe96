"""cumsum_rows: the running sums of every row, in the order of `prefix_scan`; integers wrap round."""

from dashi.kernels.reduce._scans import scan_kernel

KERNEL = scan_kernel("running sums of each row, with or without the element itself", product=False)
