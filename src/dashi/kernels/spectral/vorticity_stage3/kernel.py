"""vorticity_stage3: the tendency of vorticity, and the stage of 3 terms of a time scheme that it completes, in one go.

As `vorticity_tendency` and `mode_sum3` one after the other, with the tendency as the last term.
"""

from dashi.kernels.spectral._stages import stage

KERNEL = stage(3)
