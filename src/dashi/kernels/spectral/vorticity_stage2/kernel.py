"""vorticity_stage2: the tendency of vorticity, and the stage of 2 terms of a time scheme that it completes, in one go.

As `vorticity_tendency` and `mode_sum2` one after the other, with the tendency as the last term.
"""

from dashi.kernels.spectral._stages import stage

KERNEL = stage(2)
