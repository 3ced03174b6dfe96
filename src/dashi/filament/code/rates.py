"""Rate and distortion: how many bits a field takes at which error, as modes, as wavelets, and with atoms in front.

Every error is a code of its own; with atoms it has as many as make it short. Coherent vortex extraction keeps the
wavelet coefficients above a threshold that follows from the field alone: sqrt(2 s^2 ln N), where s^2 is the mean square
of those below it (A. Azzalini, M. Farge and K. Schneider 2005, doi:10.1016/j.acha.2004.10.001).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.filament.code._wavelets import from_wavelets, to_wavelets
from dashi.filament.code.packing import Packed, pack, unpack
from dashi.filament.threads.blobs import Floats, require_field

ERRORS: Final = (0.5, 0.3, 0.2, 0.1, 0.05)
CODES: Final = ("atoms", "modes", "wavelets")
_ROUNDS: Final = 50
_GAIN: Final = 0.98
"""Atoms make a code shorter where it has less than this share of the bits of the other two."""


@dataclass(frozen=True)
class RatePoint:
    """A code of a field: bits, the error that was asked for and the one that it has, over the norm of the field; the
    correlation with the field; and the difference of the spectra of enstrophy, summed over shells, over their sum."""

    code: str
    asked: float
    bits: int
    error: float
    correlation: float
    spectrum_error: float
    atoms: int = 0


@dataclass(frozen=True)
class CoherentPart:
    """What coherent vortex extraction keeps: coefficients, their share of enstrophy, and the flatness of both parts."""

    coefficients: int
    share: float
    enstrophy: float
    error: float
    bits: int
    """Bits of the wavelet code at the same error."""
    flatness: float
    rest_flatness: float


@dataclass(frozen=True, eq=False)
class Rates:
    """The rates of a field of n x n points, by code and error."""

    n: int
    flatness: float
    points: tuple[RatePoint, ...]
    coherent: CoherentPart

    def bits(self, code: str, error: float) -> int:
        """The bits of a code at an error that was asked for."""
        for point in self.points:
            if (point.code, point.asked) == (code, error):
                return point.bits
        raise InputError(f"no {code} were coded at an error of {error!r:.40}.", f"codes are {', '.join(CODES)}.")

    @property
    def crossover(self) -> float | None:
        """The largest error at which atoms no longer make the code shorter, interpolated between those that were
        asked for; None where they do at all of them, and the largest error where they do at none."""
        errors = sorted({point.asked for point in self.points}, reverse=True)
        gains = [self.bits("atoms", e) / min(self.bits("modes", e), self.bits("wavelets", e)) for e in errors]
        for index, gain in enumerate(gains):
            if gain >= _GAIN:
                if index == 0:
                    return errors[0]
                share = (_GAIN - gains[index - 1]) / (gain - gains[index - 1])
                return math.exp((1 - share) * math.log(errors[index - 1]) + share * math.log(errors[index]))
        return None

    @property
    def document(self) -> dict[str, Any]:
        """All of it for JSON."""
        return {
            "n": self.n,
            "flatness": self.flatness,
            "points": [vars(point) for point in self.points],
            "coherent": vars(self.coherent),
            "crossover": self.crossover,
        }


def rate(field: Any, errors: Sequence[float] = ERRORS, advance: Callable[[int], None] | None = None) -> Rates:
    """The rates of a field at these errors, from 0.001 to below 1. `advance` is called after every error."""
    values = require_field(field)
    asked = sorted({*errors}, reverse=True)
    if not asked or not all(1e-3 <= error < 1 for error in asked):
        raise InputError(
            f"`errors={tuple(asked)!r:.80}` cannot all be coded.", "pass one or more, from 0.001 to below 1."
        )
    if not values.any():
        raise InputError("the field is 0 everywhere.", "pass a field that is not.")
    points: list[RatePoint] = []
    for error in asked:
        for code in CODES:
            packed = pack(values, max_error=error) if code == "atoms" else _pack_alone(values, error, code)
            decoded = unpack(packed.data).field
            points.append(_point(values, code, error, decoded, 8 * len(packed.data), packed.atoms))
        if advance is not None:
            advance(1)
    points.sort(key=lambda point: (CODES.index(point.code), -point.asked))
    return Rates(values.shape[0], _flatness(values), tuple(points), _coherent(values))


def _pack_alone(field: Floats, error: float, basis: str) -> Packed:
    return pack(field, max_error=error, basis=basis, atoms=0)


def _point(field: Floats, code: str, asked: float, coded: Floats, bits: int, atoms: int) -> RatePoint:
    error = float(np.linalg.norm(coded - field) / np.linalg.norm(field))
    correlation = float(np.vdot(coded, field) / max(float(np.linalg.norm(coded) * np.linalg.norm(field)), 1e-300))
    ours, theirs = _shells(coded), _shells(field)
    return RatePoint(code, asked, bits, error, correlation, float(np.abs(ours - theirs).sum() / theirs.sum()), atoms)


def _shells(field: Floats) -> Floats:
    """The spectrum of enstrophy by shells of wave number."""
    n = field.shape[0]
    size = np.abs(np.fft.rfft2(field)) ** 2
    size[:, 1 : (n + 1) // 2] *= 2.0
    ky: Floats = np.asarray(np.fft.fftfreq(n, 1 / n), np.float64)
    kx: Floats = np.asarray(np.fft.rfftfreq(n, 1 / n), np.float64)
    shells = np.rint(np.hypot(ky[:, None], kx[None])).astype(np.int64)
    sums: Floats = np.asarray(np.bincount(shells.ravel(), weights=size.ravel()), np.float64)
    return sums


def _flatness(field: Floats) -> float:
    square = field * field
    mean = float(square.mean())
    return float((square * square).mean()) / (mean * mean) if mean > 0 else 0.0


def _coherent(field: Floats) -> CoherentPart:
    """Coherent vortex extraction."""
    coefficients = to_wavelets(field)
    squares = coefficients * coefficients
    factor = 2.0 * math.log(field.size)
    limit = factor * float(squares.mean())
    strong = squares > limit
    for _ in range(_ROUNDS):
        limit = factor * float(squares[~strong].mean()) if not strong.all() else 0.0
        before, strong = strong, squares > limit
        if np.array_equal(before, strong):
            break
    part = from_wavelets(np.where(strong, coefficients, 0.0))
    rest = field - part
    error = float(np.linalg.norm(rest) / np.linalg.norm(field))
    bits = 8 * len(_pack_alone(field, min(max(error, 1e-3), 0.99), "wavelets").data)
    return CoherentPart(
        int(strong.sum()), float(strong.mean()), 1.0 - error * error, error, bits, _flatness(part), _flatness(rest)
    )
