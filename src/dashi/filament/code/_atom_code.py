"""Atoms of a code: Gaussian vortices that are taken out of a field before its rest is coded, by falling gain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.filament.code._zero_blocks import Coder
from dashi.filament.threads.blobs import Floats
from dashi.kernels import portable

MOST: Final = 1024
AMPLITUDES: Final = 9
"""Bits of the largest amplitude."""
_FINE: Final = 3
"""A place is told to 2^-3 of the distance between points."""
_RADII: Final = 7
_RADIUS_STEPS: Final = 16
"""Radii for a factor of two."""
_SMALLEST: Final = 0.5
"""The smallest radius, in distances between points."""
_LENGTHS: Final = 24
"""The longest amplitude in bits is below this; a hostile code cannot say a longer one."""
CONTEXTS: Final = (1 << _RADII) + _LENGTHS


@dataclass(frozen=True)
class Gaussian:
    """amplitude exp(-r^2 / (2 width^2)) on a periodic grid, in distances between points."""

    x: float
    y: float
    width: float
    amplitude: float

    @property
    def gain(self) -> float:
        """The squares that it holds."""
        return self.amplitude * self.amplitude * self.width * self.width


@dataclass(frozen=True)
class CodedAtom:
    """A Gaussian in whole numbers: places in 1/8 of the distance between points, widths by logarithm, amplitude in
    units that the header names."""

    x: int
    y: int
    width: int
    amplitude: int


def profile(centre: float, width: float, n: int) -> Floats:
    """A Gaussian along one axis of a periodic grid."""
    offsets = np.arange(n) - centre
    offsets = offsets - n * np.rint(offsets / n)
    return np.asarray(portable.exp(-(offsets * offsets) / (2.0 * width * width)), np.float64)


def drawn(atom: Gaussian, n: int) -> Floats:
    """The field of a Gaussian."""
    return (atom.amplitude * profile(atom.y, atom.width, n))[:, None] * profile(atom.x, atom.width, n)[None]


def amplitude_exponent(atoms: Sequence[Gaussian]) -> int:
    """The unit of amplitudes, as a power of two."""
    largest = max((abs(atom.amplitude) for atom in atoms), default=0.0)
    return math.frexp(largest)[1] - AMPLITUDES if largest > 0 else 0


def coded(atom: Gaussian, n: int, exponent: int) -> CodedAtom:
    """The nearest Gaussian that the code can say."""
    places = n << _FINE
    steps = round(math.log2(max(atom.width, _SMALLEST) / _SMALLEST) * _RADIUS_STEPS)
    return CodedAtom(
        round(atom.x * (1 << _FINE)) % places, round(atom.y * (1 << _FINE)) % places,
        min(max(steps, 0), (1 << _RADII) - 1), round(math.ldexp(atom.amplitude, -exponent)),
    )  # fmt: skip


def decoded(atom: CodedAtom, exponent: int) -> Gaussian:
    """The Gaussian that whole numbers stand for."""
    whole, rest = divmod(atom.width, _RADIUS_STEPS)
    width = math.ldexp(_SMALLEST * _STEPS[rest], whole)
    return Gaussian(atom.x / (1 << _FINE), atom.y / (1 << _FINE), width, math.ldexp(float(atom.amplitude), exponent))


def _roots() -> tuple[float, ...]:
    """2^(k / 16), from square roots, which are rounded the same everywhere."""
    values = {0: 1.0, _RADIUS_STEPS: 2.0}
    stride = _RADIUS_STEPS
    while stride > 1:
        for k in range(0, _RADIUS_STEPS, stride):
            values[k + stride // 2] = math.sqrt(values[k] * values[k + stride])
        stride //= 2
    return tuple(values[k] for k in range(_RADIUS_STEPS))


_STEPS: Final = _roots()


def write(coder: Coder, atom: CodedAtom, n: int, first: int) -> dict[str, int]:
    """Codes an atom; the bits that its parts take, before the range coder."""
    bits = (n << _FINE) - 1
    length = bits.bit_length()
    for value in (atom.x, atom.y):
        _write_even(coder, value, length)
    place = 1
    for shift in reversed(range(_RADII)):
        place = place * 2 + coder.bit(first + place, atom.width >> shift & 1)
    size = abs(atom.amplitude)
    amount = size.bit_length()
    for k in range(amount):
        coder.bit(first + (1 << _RADII) + k, 1)
    coder.bit(first + (1 << _RADII) + amount, 0)
    if amount > 1:
        _write_even(coder, size & ((1 << (amount - 1)) - 1), amount - 1)
    if amount:
        coder.even(int(atom.amplitude < 0))
    return {"geometry": 2 * length, "internal": _RADII, "carrier": max(amount, 1) + 1}


def read(coder: Coder, n: int, first: int) -> CodedAtom:
    """Decodes an atom."""
    places = n << _FINE
    length = (places - 1).bit_length()
    x, y = _read_even(coder, length) % places, _read_even(coder, length) % places
    place = 1
    for _ in range(_RADII):
        place = place * 2 + coder.bit(first + place)
    amount = 0
    while amount < _LENGTHS - 1 and coder.bit(first + (1 << _RADII) + amount):
        amount += 1
    size = (1 << (amount - 1)) + _read_even(coder, amount - 1) if amount else 0
    negative = coder.even() if amount else 0
    return CodedAtom(x, y, place - (1 << _RADII), -size if negative else size)


def _write_even(coder: Coder, value: int, length: int) -> None:
    for shift in reversed(range(length)):
        coder.even(value >> shift & 1)


def _read_even(coder: Coder, length: int) -> int:
    value = 0
    for _ in range(length):
        value = value * 2 + coder.even()
    return value


def render(atoms: Iterator[CodedAtom] | Sequence[CodedAtom], n: int, exponent: int) -> Floats:
    """The field of coded atoms, one after another."""
    field = np.zeros((n, n))
    for atom in atoms:
        field = field + drawn(decoded(atom, exponent), n)
    return field
