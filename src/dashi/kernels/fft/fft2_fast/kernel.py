"""fft2_fast: as `fft2`, in the device class: nothing is flushed, and products and sums may be contracted."""

from dashi.kernels.fourier_fields import FAST

KERNEL = FAST
