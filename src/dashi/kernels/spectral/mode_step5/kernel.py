"""mode_step5: modes plus what they change by, a sum of modes weighted by real tables: a step of a time scheme."""

from dashi.kernels.spectral._modes import mode_sum

KERNEL = mode_sum(5, increment=True)
