"""Block formats of GGUF files that no kernel reads: their numbers, with the order of operations of `gguf.quants`.

Layouts are those of ggml (ggml-common.h, `block_q2_K` and so on); the values that IQ4 codes stand for are its table
`kvalues_iq4nl`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels.packed._block_format import BlockFormat, Bytes, Floats, halves, nibbles

_LEVELS: Final = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
"""What the codes of IQ4_NL and IQ4_XS stand for."""


def _pairs(data: Bytes) -> Bytes:
    """Codes of 2 bits: of each 32 bytes the lowest ones, then the next higher ones, and so on."""
    parts = data.reshape(len(data), -1, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(4, 1)
    return (parts & np.uint8(3)).reshape(len(data), -1)


def _q2_k(data: Bytes) -> Floats:
    scales, codes = data[:, :16], _pairs(data[:, 16:80]).astype(np.float32)
    step = (halves(data[:, 80:82]) * (scales & 15).astype(np.float32))[:, :, None]
    offset = (halves(data[:, 82:84]) * (scales >> 4).astype(np.float32))[:, :, None]
    return (step * codes.reshape(-1, 16, 16) - offset).reshape(len(data), 256)


def _q3_k(data: Bytes) -> Floats:
    low = (data[:, None, 96:104] >> np.array([0, 4], np.uint8).reshape(2, 1) & np.uint8(15)).reshape(-1, 16)
    high = (data[:, None, 104:108] >> np.array([0, 2, 4, 6], np.uint8).reshape(4, 1) & np.uint8(3)).reshape(-1, 16)
    scales = (low | high << 4).astype(np.int8) - np.int8(32)
    third = (data[:, None, :32] >> np.arange(8, dtype=np.uint8).reshape(8, 1) & np.uint8(1)).reshape(-1, 256)
    codes = _pairs(data[:, 32:96]).astype(np.int8) - np.where(third == 0, np.int8(4), np.int8(0))
    step = (halves(data[:, 108:110]) * scales.astype(np.float32))[:, :, None]
    return (step * codes.astype(np.float32).reshape(-1, 16, 16)).reshape(len(data), 256)


def _iq4_nl(data: Bytes) -> Floats:
    return halves(data[:, :2]) * _LEVELS[nibbles(data[:, 2:], 16)]


def _iq4_xs(data: Bytes) -> Floats:
    upper: npt.NDArray[Any] = np.ascontiguousarray(data[:, 2:4]).view("<u2")
    high = (upper >> np.arange(0, 16, 2, dtype=np.uint16) & np.uint16(3)).astype(np.uint8)
    low = (data[:, 4:8, None] >> np.array([0, 4], np.uint8) & np.uint8(15)).reshape(-1, 8)
    scales = (low | high << 4).astype(np.int8) - np.int8(32)
    step = (halves(data[:, :2]) * scales.astype(np.float32))[:, :, None]
    return (step * _LEVELS[nibbles(data[:, 8:], 16)].reshape(-1, 8, 32)).reshape(len(data), 256)


OTHER_FORMATS: Final = {
    form.name: form
    for form in (
        BlockFormat("Q2_K", 256, 84, _q2_k),
        BlockFormat("Q3_K", 256, 110, _q3_k),
        BlockFormat("IQ4_NL", 32, 18, _iq4_nl),
        BlockFormat("IQ4_XS", 256, 136, _iq4_xs),
    )
}
"""Formats by the names that GGUF gives them."""
