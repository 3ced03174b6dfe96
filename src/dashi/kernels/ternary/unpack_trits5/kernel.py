"""unpack_trits5: the field that pack_trits5 packed. Bytes from 243 on, which it never makes, count modulo 243."""

import numpy as np

from dashi.kernels._trits import SITES
from dashi.kernels.ternary._packing import FIVES, unpacking
from dashi.types import HostArray


def reference(packed: HostArray, *, n: int) -> HostArray:
    data = packed.astype("<u4").view(np.uint8)
    digits = data[:, None] // np.array([1, 3, 9, 27, 81], np.uint8) % 3
    return np.array([0, 1, -1], np.int8)[digits.reshape(-1)[:n]]


KERNEL = unpacking(
    summary="the ternary field (n,) of words with five trits to a byte",
    reference=reference,
    sites=20,
    written="u32",
    push=(SITES,),
    lengths=FIVES,
    trips=25,
)
