"""galerkin_stage2: the tendency of interacting modes, and the stage of 2 terms that it completes, in one go."""

from dashi.kernels.proxy._galerkin_stages import stage

KERNEL = stage(2)
