"""Bases of a residual: which bands of coefficients it has, and how they lie in the array of all."""

from __future__ import annotations

from typing import Final

import numpy as np

from dashi.filament.code._modes import from_modes, to_modes
from dashi.filament.code._wavelets import from_wavelets, level_count, to_wavelets
from dashi.filament.code._zero_blocks import CoefficientBand
from dashi.filament.threads.blobs import Floats

BASES: Final = ("wavelets", "modes")
Place = tuple[int | slice, ...]


def coefficients_of(basis: str, field: Floats) -> Floats:
    """The coefficients of a square field in an orthonormal basis."""
    return to_wavelets(field) if basis == "wavelets" else to_modes(field)


def field_of(basis: str, coefficients: Floats) -> Floats:
    """The field of these coefficients."""
    return from_wavelets(coefficients) if basis == "wavelets" else from_modes(coefficients)


def empty(basis: str, n: int) -> Floats:
    """Coefficients that are all 0."""
    return np.zeros((n, n)) if basis == "wavelets" else np.zeros((2, n, n // 2 + 1))


def places(basis: str, n: int) -> list[tuple[Place, int | None]]:
    """Where each band lies in the array of coefficients, and the number of its parent: coarse ones first."""
    if basis == "modes":
        return [((0,), None), ((1,), 0)]
    levels = level_count(n)
    size = n >> levels
    bands: list[tuple[Place, int | None]] = [((slice(0, size), slice(0, size)), None)]
    for level in range(levels):
        low, high = slice(0, size), slice(size, 2 * size)
        for place in ((low, high), (high, low), (high, high)):
            bands.append((place, len(bands) - 3 if level else None))
        size *= 2
    return bands


def bands_of(basis: str, n: int, truth: Floats | None = None) -> tuple[list[CoefficientBand], list[Place]]:
    """The bands of a basis; an encoder knows their coefficients, in whole numbers of the finest plane."""
    bands: list[CoefficientBand] = []
    wheres: list[Place] = []
    shape = empty(basis, n)
    for place, parent in places(basis, n):
        part = shape[place] if truth is None else truth[place]
        rows, columns = part.shape
        bands.append(
            CoefficientBand((rows, columns), None if parent is None else bands[parent], None if truth is None else part)
        )
        wheres.append(place)
    return bands, wheres
