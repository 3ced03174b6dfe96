"""Bilinear samples of a plane: NumPy twin of `_include/bilinear.glsl`.

Pixel (x, y) has its centre at the coordinates (x, y) exactly. With i = floor(u), the weight of column i + 1 is u - i;
a neighbour of weight 0 is not looked at, so samples at whole coordinates are the pixels themselves. Neighbours are
mixed as p + weight (q - p): along x first, then along y, so a constant plane stays constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels.portable._bits import Floats, canon, mul

CLAMP: Final = 0
ZERO: Final = 1
WRAP: Final = 2
BORDERS: Final = ("clamp", "zero", "wrap")
"""What lies outside the plane: its nearest pixel, zeros, or the plane again."""
FAR: Final = 2.0**30
"""Coordinates at or beyond it are outside every plane; wrapped, they have no place, and the sample is NaN."""


@dataclass(frozen=True)
class _Place:
    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    weight: Floats
    has_low: npt.NDArray[Any]
    has_high: npt.NDArray[Any]
    lost: npt.NDArray[Any]


def require_border(kernel: str, border: float) -> None:
    """Refuses a border that does not exist."""
    if border not in (CLAMP, ZERO, WRAP):
        named = ", ".join(f"{i} ({name})" for i, name in enumerate(BORDERS))
        raise InputError(f"kernel {kernel!r}: there is no border {border}.", f"pass border as one of {named}.")


def bilinear(field: Floats, u: Floats, v: Floats, border: int) -> Floats:
    """Samples of a plane (h, w), not empty, at columns u and rows v; canonical values."""
    values = canon(field)
    nothing, nan = np.zeros((), values.dtype), np.full((), np.nan, values.dtype)
    with np.errstate(all="ignore"):
        x, y = _place(u, field.shape[1], border), _place(v, field.shape[0], border)

        def texel(column: Any, row: Any, counts: Any) -> Floats:
            return np.where(counts, values[row, column], nothing)

        upper = _between(
            texel(x.low, y.low, x.has_low & y.has_low), texel(x.high, y.low, x.has_high & y.has_low), x.weight
        )
        lower = _between(
            texel(x.low, y.high, x.has_low & y.has_high), texel(x.high, y.high, x.has_high & y.has_high), x.weight
        )
        made = _between(upper, lower, y.weight)
    return canon(np.where(x.lost | y.lost, nan, made))


def _place(u: Floats, size: int, border: int) -> _Place:
    beyond = ~(np.abs(u) < FAR)
    near: Floats = np.where(beyond, np.copysign(np.full((), FAR, u.dtype), u), u)
    i = near.astype(np.int64)
    i -= i.astype(u.dtype) > near
    weight = near - i.astype(u.dtype)
    everywhere = np.ones(u.shape, np.bool_)
    if border == WRAP:
        return _Place(i % size, (i + 1) % size, weight, everywhere, everywhere, beyond)
    low, high = np.clip(i, 0, size - 1), np.clip(i + 1, 0, size - 1)
    if border == CLAMP:
        return _Place(low, high, weight, everywhere, everywhere, np.isnan(u))
    return _Place(low, high, weight, low == i, high == i + 1, np.isnan(u))


def _between(p: Floats, q: Floats, weight: Floats) -> Floats:
    return np.where(weight == 0, p, p + mul(weight, q - p))
