"""Scales of a periodic field: one band of wave numbers for each octave, and the scale that the energy has.

Wave numbers are in units of 2 pi / L. Scale j is the octave from 2^j to 2^(j + 1); there are as many as end below the
grid's n / 2. Two families of bands divide a field:

- `shannon`: the modes with 2^j <= max(|kx|, |ky|) < 2^(j + 1), which is the detail of the orthogonal Shannon wavelets.
  A mode belongs to one band alone: bands share nothing but what the field itself relates.
- `gaussian`: the difference of two Gaussian low passes, a factor 2 apart, with its maximum in the middle of the octave.
  Bands overlap: a mode half an octave away still counts by two thirds.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.flow.grid import columns, counted, rows, squares
from dashi.kernels.fft._roots import require_length
from dashi.kernels.portable import exp, sqrt

Floats = npt.NDArray[Any]
FAMILIES: Final = ("shannon", "gaussian")
LEAST: Final = 16
"""Points along a side: below that there are no three scales."""
_PEAK: Final = math.sqrt(8.0 / 3.0 * math.log(4.0))
"""Where exp(-k^2 / 8) - exp(-k^2 / 2) is largest."""


def require_side(n: int) -> None:
    """Refuses grids that have too few scales, or no transform."""
    if n < LEAST:
        raise InputError(f"{n} x {n} points have fewer than three octaves.", f"pass fields of {LEAST} points or more.")
    require_length(n)


def scale_count(n: int) -> int:
    """Octaves that end at n / 2 or below."""
    return (n // 2).bit_length() - 1


def lower_edges(n: int) -> tuple[float, ...]:
    """Where the octaves begin: 1, 2, 4, ..."""
    return tuple(2.0**j for j in range(scale_count(n)))


def centres(n: int) -> tuple[float, ...]:
    """The middle of every octave, the geometric mean of its ends."""
    return tuple(edge * math.sqrt(2.0) for edge in lower_edges(n))


def octave_numbers(n: int) -> npt.NDArray[np.int64]:
    """The scale of every mode (n, n/2 + 1) by max(|kx|, |ky|): -1 for the mean, `scale_count` for what is finer than
    all scales."""
    largest = np.maximum(np.abs(rows(n))[:, None], columns(n)[None, :])
    number = np.full(largest.shape, -1, np.int64)
    for edge in range(scale_count(n) + 1):
        number[largest >= 1 << edge] = edge
    return number


def band_tables(n: int, family: str) -> Floats:
    """What every mode counts in every band, (scales, n, n/2 + 1). The mean and modes of n / 2 count nowhere."""
    if family not in FAMILIES:
        raise InputError(f"there are no bands {family!r}.", f"use {' or '.join(FAMILIES)}.")
    numbers = octave_numbers(n)
    if family == "shannon":
        return np.stack([(numbers == j).astype(np.float64) for j in range(scale_count(n))])
    square = squares(n).astype(np.float64)
    tables = np.zeros((scale_count(n), *square.shape))
    for number, centre in enumerate(centres(n)):
        scaled = square * (_PEAK / centre) ** 2
        tables[number] = exp(-scaled / 8.0) - exp(-scaled / 2.0)
    tables[:, rows(n) == n // 2] = 0.0
    tables[:, :, columns(n) == n / 2] = 0.0
    return tables


def mode_counts(n: int) -> tuple[int, ...]:
    """Independent real numbers of every octave: the modes of the whole spectrum in it."""
    numbers, weight = octave_numbers(n), counted(n)
    return tuple(int(weight[numbers == j].sum()) for j in range(scale_count(n)))


def energy_tables(n: int) -> Floats:
    """What |w|^2 of a mode adds to the energy, and to the energy over the wave number: (2, n, n/2 + 1)."""
    square = squares(n).astype(np.float64)
    inside = (square > 0) & (octave_numbers(n) <= scale_count(n))
    filled = np.where(inside, square, 1.0)
    energy = np.where(inside, counted(n) / filled, 0.0)
    return np.stack([energy, energy / sqrt(filled)])
