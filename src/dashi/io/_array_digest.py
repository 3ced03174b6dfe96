"""The digest of an array, wherever it is kept."""

from __future__ import annotations

import numpy as np

from dashi.kernels.hash._blake3 import hexdigest128
from dashi.types import HostArray, Shape


def array_digest(values: HostArray) -> str:
    """The digest of an array: of its element type, its shape and its bytes, little-endian in C order."""
    array = np.asarray(values)
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return digest_of(array.dtype.name, array.shape, hexdigest128(little))


def digest_of(dtype: str, shape: Shape, octets: str) -> str:
    """The digest of an array of which the type, the shape and the digest of its bytes are known."""
    return hexdigest128(f"{dtype} {','.join(str(n) for n in shape)}\n{octets}".encode())
