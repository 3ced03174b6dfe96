"""What a block format of GGUF files is, and parts that several have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError

Bytes = npt.NDArray[Any]
"""uint8."""
Floats = npt.NDArray[Any]
"""float32."""


@dataclass(frozen=True)
class BlockFormat:
    """A storage format of weights: `length` numbers take `size` bytes; `dequantize` makes fp32 (blocks, length) of
    bytes (blocks, size)."""

    name: str
    length: int
    size: int
    dequantize: Callable[[Bytes], Floats]

    def row_bytes(self, k: int) -> int:
        """Bytes of a row of k weights."""
        if k < 0 or k % self.length:
            raise InputError(
                f"a row of {k} weights is no whole number of {self.name} blocks of {self.length}.",
                f"use rows of a multiple of {self.length} weights, or another format.",
            )
        return k // self.length * self.size


def halves(data: Bytes) -> Floats:
    """fp16 numbers as fp32, exactly."""
    return np.ascontiguousarray(data).view(np.float16).astype(np.float32)


def nibbles(data: Bytes, span: int) -> Bytes:
    """The low halves of `span` bytes, then their high halves, and so on."""
    blocks, size = data.shape
    parts = data.reshape(blocks, size // span, 1, span) >> np.array([0, 4], np.uint8).reshape(2, 1)
    return (parts & np.uint8(15)).reshape(blocks, 2 * size)
