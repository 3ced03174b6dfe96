"""pack_trits5: five trits to a byte, in base 3, the first the lowest digit (0 -> 0, +1 -> 1, -1 -> 2); four bytes to a
word.

The first ceil(n / 5) bytes of the result hold the field; digits past the last site are 0.
"""

import numpy as np

from dashi.kernels._trits import minus_of, padded, support_of
from dashi.kernels.ternary._packing import FIVES, packing
from dashi.types import HostArray


def reference(s: HostArray) -> HostArray:
    digits = padded(support_of(s) + minus_of(s).astype(np.uint32), 20).reshape(-1, 5)
    data = (digits @ np.array([1, 3, 9, 27, 81])).astype(np.uint8)
    return data.view("<u4").astype(np.uint32)


KERNEL = packing(
    summary="a ternary field with five trits to a byte, twenty to a word",
    reference=reference,
    sites=20,
    read="u32",
    lengths=FIVES,
    trips=25,
)
