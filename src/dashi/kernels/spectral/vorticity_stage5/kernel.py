"""vorticity_stage5: the tendency of vorticity, and the stage of 5 terms of a time scheme that it completes, in one go.

As `vorticity_tendency` and `mode_sum5` one after the other, with the tendency as the last term.
"""

from dashi.kernels.spectral._stages import stage

KERNEL = stage(5)
