"""vorticity_fast2: as `vorticity_stage2`, in the device class: nothing is flushed, and products and sums may be
contracted."""

from dashi.kernels.spectral._stages import fast_stage

KERNEL = fast_stage(2)
