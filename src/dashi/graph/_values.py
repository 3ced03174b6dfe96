"""Canonical values: what every number of a graph is (docs/portability.md, section 1)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dashi.errors import GraphError
from dashi.kernels.portable import canon
from dashi.kernels.portable._bits import bits_of, format_of
from dashi.types import DType, HostArray

_PIECE: Final = 1 << 16
"""Elements that are looked at together: they stay in the processor's cache."""


def canonical_input(values: HostArray, dtype: DType) -> HostArray:
    """Values of the host as their type holds them, canonical."""
    return canonical(as_stored(values, dtype))


def as_stored(values: HostArray, dtype: DType) -> HostArray:
    """Values of the host as their type holds them: those of bf16, float32 on the host, are rounded."""
    return dtype.from_bytes(dtype.to_stored(values)).reshape(values.shape) if dtype == "bf16" else values


def values_of_type(name: str, values: Any, dtype: DType) -> HostArray:
    """Values of the host as elements of a type: floats are rounded to it, and integers must have the value."""
    array = np.asarray(values)
    if array.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            turned = array.astype(dtype.numpy)
            wrong = (turned != array) if dtype.numpy.kind in "iu" else np.zeros(array.shape, np.bool_)
        if wrong.any():
            raise GraphError(
                f"{array[wrong].flat[0].item()!r} in {name!r} is no {dtype}.",
                "pass numbers that it holds, or cast what it meets to a type that holds them.",
            )
        return turned
    return array


def canonical(values: HostArray) -> HostArray:
    """Floats without -0, tiny magnitudes and payloads of NaN; everything else as it is. Halves keep subnormals. Where
    all are canonical already it is the array itself."""
    if values.dtype == np.float16:
        bits = values.view(np.uint16)
        bits = np.where(bits == 0x8000, np.uint16(0), bits)
        return np.where((bits & 0x7FFF) > 0x7C00, np.uint16(0x7E00), bits).view(np.float16)
    return _canonical_floats(values) if values.dtype.kind == "f" else values


def _canonical_floats(values: HostArray) -> HostArray:
    flat, result = values.reshape(-1), values
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        if not _is_canonical(piece):
            if result is values:
                result = np.array(values, order="C")
            result.reshape(-1)[start : start + _PIECE] = canon(piece)
    return result


def _is_canonical(piece: HostArray) -> bool:
    """Whether all values are 0, infinite, or of magnitudes that count; so that no NaN is among them."""
    form = format_of(piece)
    bits = bits_of(piece)
    # Unsigned: what is below the threshold wraps to the largest numbers.
    beyond = (bits & form.magnitude) - form.tiny
    most = form.infinity - form.tiny
    return bool(beyond.max() <= most) or not ((beyond > most) & (bits != 0)).any()
