"""vorticity_eddy: the modes of -(u w_x + v w_y) + div(nu_t grad w) of vorticity, nu_t = `eddy` |S|, in three passes.

What `spectral_fields`, `irfft2`, `advection`, `rfft2` and `flux_divergence` make one after the other, bit for bit where
it matters: as for `vorticity_tendency`.
"""

from dashi.kernels.spectral._eddy import EDDY

KERNEL = EDDY
