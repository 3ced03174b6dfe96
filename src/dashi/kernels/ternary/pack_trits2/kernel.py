"""pack_trits2: sixteen trits to a word, two bits each: bit 0 the support, bit 1 the sign (0 -> 00, +1 -> 01, -1 -> 11).

Of each byte of s bit 0 is the support and bit 1 the sign; the sign of a site without support is dropped. The bits past
the last site are 0.
"""

import numpy as np

from dashi.kernels._trits import codes_to_words, minus_of, support_of
from dashi.kernels.ternary._packing import packing
from dashi.types import HostArray


def reference(s: HostArray) -> HostArray:
    return codes_to_words(support_of(s) + 2 * minus_of(s).astype(np.uint32), 2)


KERNEL = packing(
    summary="a ternary field in two bits per site, sixteen to a word", reference=reference, sites=16, read="u32x4"
)
