"""unpack_trits2: the field that pack_trits2 packed. A sign without support (10) is 0."""

from dashi.kernels._trits import words_to_trits
from dashi.kernels.ternary._packing import unpacking
from dashi.types import HostArray


def reference(packed: HostArray, *, n: int) -> HostArray:
    return words_to_trits(packed)[:n]


KERNEL = unpacking(
    summary="the ternary field (n,) of words with two bits per site", reference=reference, sites=16, written="u32x4"
)
