"""An orthonormal wavelet transform of periodic squares, in float64, with the same bits everywhere.

The filter is the least asymmetric one of Daubechies with 8 vanishing moments and 16 taps ("symlet 8"; I. Daubechies
1993, doi:10.1137/0524031, section 2), from the spectral factorisation in 40 digits. Sums go over taps in a fixed
order, by operations that IEEE 754 rounds correctly. A square of n = 2^a m points has at most a levels.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dashi.filament.threads.blobs import Floats, Integers

LOW: Final = (
    -0.0033824159510050028, -0.0005421323318000107, 0.03169508781152599, 0.007607487324976609, -0.14329423835127267,
    -0.061273359067811076, 0.4813596512590534, 0.777185751699628, 0.36444189483617895, -0.0519458381078818,
    -0.027219029917103486, 0.04913717967373029, 0.0038087520138944896, -0.014952258337062199, -0.0003029205147241331,
    0.001889950332767689,
)  # fmt: skip
_TAPS: Final = len(LOW)
HIGH: Final = tuple((-1) ** k * LOW[_TAPS - 1 - k] for k in range(_TAPS))
_COARSEST: Final = 4
"""Points along a side of the coarsest level, at least."""


def level_count(n: int) -> int:
    """How often a side is halved."""
    levels = 0
    while n % 2 == 0 and n // 2 >= _COARSEST:
        n //= 2
        levels += 1
    return levels


def to_wavelets(field: Floats) -> Floats:
    """Coefficients of a square, (n, n): means in the upper left corner, details in blocks around it."""
    out = np.array(field, np.float64)
    size = out.shape[0]
    for _ in range(level_count(size)):
        part = _analysed(_analysed(out[:size, :size], 1), 0)
        out[:size, :size] = part
        size //= 2
    return out


def from_wavelets(coefficients: Floats) -> Floats:
    """The square of these coefficients."""
    out = np.array(coefficients, np.float64)
    n = out.shape[0]
    levels = level_count(n)
    for level in reversed(range(levels)):
        size = n >> level
        out[:size, :size] = _synthesised(_synthesised(out[:size, :size], 0), 1)
    return out


def _analysed(values: Floats, axis: int) -> Floats:
    """Means and details along an axis, one behind the other."""
    moved = np.moveaxis(values, axis, -1)
    n = moved.shape[-1]
    at: Integers = np.arange(0, n, 2, dtype=np.int64)
    low, high = np.zeros((*moved.shape[:-1], n // 2)), np.zeros((*moved.shape[:-1], n // 2))
    for k in range(_TAPS):
        shifted = moved[..., (at + k) % n]
        low += LOW[k] * shifted
        high += HIGH[k] * shifted
    return np.moveaxis(np.concatenate([low, high], axis=-1), -1, axis)


def _synthesised(values: Floats, axis: int) -> Floats:
    moved = np.moveaxis(values, axis, -1)
    n = moved.shape[-1]
    half = n // 2
    low, high = moved[..., :half], moved[..., half:]
    out = np.zeros(moved.shape)
    at: Integers = np.arange(0, n, 2, dtype=np.int64)
    for k in range(_TAPS):
        # Within a tap no place is met twice.
        out[..., (at + k) % n] += LOW[k] * low + HIGH[k] * high
    return np.moveaxis(out, -1, axis)
