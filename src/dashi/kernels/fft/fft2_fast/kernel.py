"""fft2_fast: as `fft2`, in the device class: nothing is flushed, and products and sums may be contracted."""

from dashi.kernels.fft._fields import FAST

KERNEL = FAST
