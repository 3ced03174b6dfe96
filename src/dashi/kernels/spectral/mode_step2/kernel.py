"""mode_step2: modes plus what they change by, a sum of modes weighted by real tables: a step of a time scheme."""

from dashi.kernels.spectral._modes import mode_sum

KERNEL = mode_sum(2, increment=True)
