"""The block formats of GGUF files that kernels read: their numbers, in the order of operations of `gguf.quants`.

Layouts are those of ggml (ggml-common.h, `block_q4_0` and so on). All but the last sum of a dequantiser is exact in
fp32: an fp16 scale has 11 bits, the codes and inner scales at most 12 more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels.packed._block_format import BlockFormat, Bytes, Floats, halves, nibbles
from dashi.kernels.packed._other_formats import OTHER_FORMATS


def dequantize(name: str, data: npt.ArrayLike) -> Floats:
    """The fp32 numbers (n, k) of rows of bytes (n, row_bytes): the bits of `gguf.quants.dequantize`."""
    form = block_format(name)
    rows = byte_rows(form, data)
    shape = (len(rows), rows.shape[1] // form.size * form.length)
    if not rows.size:
        return np.zeros(shape, np.float32)
    with np.errstate(all="ignore"):
        return form.dequantize(rows.reshape(-1, form.size)).reshape(shape)


def byte_rows(form: BlockFormat, data: npt.ArrayLike) -> Bytes:
    """The bytes of rows of whole blocks, or an error that says what is wrong with them."""
    rows = np.ascontiguousarray(data)
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] % form.size:
        raise InputError(
            f"weights in {form.name} are not {rows.dtype} of shape {rows.shape}.",
            f"pass the file's bytes as uint8 of shape (n, a multiple of {form.size}).",
        )
    return rows


def block_format(name: str) -> BlockFormat:
    """The format of that name, in upper or lower case."""
    known = {**FORMATS, **OTHER_FORMATS}
    if not isinstance(name, str) or name.upper() not in known:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"there is no packed format {name!r}.", f"use one of {', '.join(known)}.")
    return known[name.upper()]


def _bits(data: Bytes) -> Bytes:
    return np.unpackbits(data, axis=-1, bitorder="little")


def _f16(data: Bytes) -> Floats:
    return halves(data)


def _bf16(data: Bytes) -> Floats:
    return (np.ascontiguousarray(data).view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _q8_0(data: Bytes) -> Floats:
    return np.ascontiguousarray(data[:, 2:]).view(np.int8).astype(np.float32) * halves(data[:, :2])


def _q4_0(data: Bytes) -> Floats:
    codes = nibbles(data[:, 2:], 16).astype(np.int8) - np.int8(8)
    return halves(data[:, :2]) * codes.astype(np.float32)


def _q4_1(data: Bytes) -> Floats:
    return halves(data[:, :2]) * nibbles(data[:, 4:], 16).astype(np.float32) + halves(data[:, 2:4])


def _q5_0(data: Bytes) -> Floats:
    codes = (nibbles(data[:, 6:], 16) | _bits(data[:, 2:6]) << 4).astype(np.int8) - np.int8(16)
    return halves(data[:, :2]) * codes.astype(np.float32)


def _q5_1(data: Bytes) -> Floats:
    codes = nibbles(data[:, 8:], 16) | _bits(data[:, 4:8]) << 4
    return halves(data[:, :2]) * codes.astype(np.float32) + halves(data[:, 2:4])


def _six_bits(data: Bytes) -> tuple[Bytes, Bytes]:
    """The eight scales and the eight minima of a K block, 6 bits each, out of 12 bytes."""
    low, minima, mixed = data[:, 0:4], data[:, 4:8], data[:, 8:12]
    scales = np.concatenate([low & 63, (mixed & 15) | (low >> 2 & 48)], axis=-1)
    return scales, np.concatenate([minima & 63, (mixed >> 4) | (minima >> 2 & 48)], axis=-1)


def _with_minima(data: Bytes, codes: Bytes) -> Floats:
    scales, minima = _six_bits(data[:, 4:16])
    step = (halves(data[:, :2]) * scales.astype(np.float32)).reshape(-1, 8, 1)
    offset = (halves(data[:, 2:4]) * minima.astype(np.float32)).reshape(-1, 8, 1)
    return (step * codes.reshape(-1, 8, 32).astype(np.float32) - offset).reshape(len(data), 256)


def _q4_k(data: Bytes) -> Floats:
    return _with_minima(data, nibbles(data[:, 16:], 32))


def _q5_k(data: Bytes) -> Floats:
    fifth = data[:, None, 16:48] >> np.arange(8, dtype=np.uint8).reshape(8, 1) & np.uint8(1)
    return _with_minima(data, nibbles(data[:, 48:], 32) | fifth.reshape(len(data), 256) << 4)


def _q6_k(data: Bytes) -> Floats:
    pairs = data[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(4, 1) & np.uint8(3)
    codes = (nibbles(data[:, :128], 64) | pairs.reshape(len(data), 256) << 4).astype(np.int8) - np.int8(32)
    scales: npt.NDArray[Any] = np.ascontiguousarray(data[:, 192:208]).view(np.int8).astype(np.float32)
    step = (halves(data[:, 208:210]) * scales).reshape(-1, 16, 1)
    return (step * codes.reshape(-1, 16, 16).astype(np.float32)).reshape(len(data), 256)


FORMATS: Final[Mapping[str, BlockFormat]] = {
    form.name: form
    for form in (
        BlockFormat("Q8_0", 32, 34, _q8_0),
        BlockFormat("Q4_0", 32, 18, _q4_0),
        BlockFormat("Q4_1", 32, 20, _q4_1),
        BlockFormat("Q5_0", 32, 22, _q5_0),
        BlockFormat("Q5_1", 32, 24, _q5_1),
        BlockFormat("F16", 1, 2, _f16),
        BlockFormat("BF16", 1, 2, _bf16),
        BlockFormat("Q4_K", 256, 144, _q4_k),
        BlockFormat("Q6_K", 256, 210, _q6_k),
        BlockFormat("Q5_K", 256, 176, _q5_k),
    )
}
"""Formats that kernels read, by the names that GGUF gives them."""
