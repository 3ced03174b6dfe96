"""The digest of an array, wherever it is kept."""

from __future__ import annotations

import numpy as np

from dashi.kernels.hash._blake3 import hexdigest128
from dashi.types import HostArray


def array_digest(values: HostArray) -> str:
    """The digest of an array: of its element type, its shape and its bytes, little-endian in C order."""
    array = np.asarray(values)
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    head = f"{array.dtype.name} {','.join(str(n) for n in array.shape)}\n".encode()
    return hexdigest128(head + hexdigest128(little).encode())
