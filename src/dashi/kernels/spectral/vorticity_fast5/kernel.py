"""vorticity_fast5: as `vorticity_stage5`, in the device class: nothing is flushed, and products and sums may be
contracted."""

from dashi.kernels.spectral._stages import fast_stage

KERNEL = fast_stage(5)
