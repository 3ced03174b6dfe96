"""Atoms of a code: Gaussian vortices that are taken out of a field before its rest is coded, by falling gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.filament.code._zero_blocks import Coder
from dashi.filament.threads.blobs import Floats
from dashi.kernels import portable

MOST: Final = 1024
PRECISIONS: Final = ((-2, 4, 4), (0, 2, 6), (3, 1, 9))
"""How finely atoms are told: places in 2^-a of the distance between points, widths in b / 16 of a factor of two, the
largest amplitude in c bits."""
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
    """A Gaussian in whole numbers, in units of its precision: places, the logarithm of the width, amplitude."""

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


def amplitude_exponent(atoms: Sequence[Gaussian], precision: int) -> int:
    """The unit of amplitudes, as a power of two."""
    largest = max((abs(atom.amplitude) for atom in atoms), default=0.0)
    return math.frexp(largest)[1] - PRECISIONS[precision][2] if largest > 0 else 0


def places(n: int, precision: int) -> int:
    """Places along a side that the code tells apart."""
    fine = PRECISIONS[precision][0]
    return n << fine if fine >= 0 else -(-n >> -fine)


def coded(atom: Gaussian, n: int, exponent: int, precision: int) -> CodedAtom:
    """The nearest Gaussian that the code can say."""
    fine, stride, _ = PRECISIONS[precision]
    steps = round(math.log2(max(atom.width, _SMALLEST) / _SMALLEST) * _RADIUS_STEPS / stride)
    x, y = (round(math.ldexp(place, fine)) % places(n, precision) for place in (atom.x, atom.y))
    width = min(max(steps, 0), ((1 << _RADII) - 1) // stride)
    return CodedAtom(x, y, width, round(math.ldexp(atom.amplitude, -exponent)))


def decoded(atom: CodedAtom, exponent: int, precision: int) -> Gaussian:
    """The Gaussian that whole numbers stand for."""
    fine, stride, _ = PRECISIONS[precision]
    whole, rest = divmod(atom.width * stride, _RADIUS_STEPS)
    width = math.ldexp(_SMALLEST * _STEPS[rest], whole)
    x, y = (math.ldexp(float(place), -fine) for place in (atom.x, atom.y))
    return Gaussian(x, y, width, math.ldexp(float(atom.amplitude), exponent))


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


def write(coder: Coder, atom: CodedAtom, n: int, first: int, precision: int) -> dict[str, int]:
    """Codes an atom; the bits that its parts take, before the range coder."""
    length = (places(n, precision) - 1).bit_length()
    for value in (atom.x, atom.y):
        _write_even(coder, value, length)
    radii = _radius_bits(precision)
    place = 1
    for shift in reversed(range(radii)):
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
    return {"geometry": 2 * length, "internal": radii, "carrier": max(amount, 1) + 1}


def _radius_bits(precision: int) -> int:
    return _RADII + 1 - PRECISIONS[precision][1].bit_length()


def read(coder: Coder, n: int, first: int, precision: int) -> CodedAtom:
    """Decodes an atom."""
    count = places(n, precision)
    length = (count - 1).bit_length()
    x, y = _read_even(coder, length) % count, _read_even(coder, length) % count
    radii = _radius_bits(precision)
    place = 1
    for _ in range(radii):
        place = place * 2 + coder.bit(first + place)
    amount = 0
    while amount < _LENGTHS - 1 and coder.bit(first + (1 << _RADII) + amount):
        amount += 1
    size = (1 << (amount - 1)) + _read_even(coder, amount - 1) if amount else 0
    negative = coder.even() if amount else 0
    return CodedAtom(x, y, place - (1 << radii), -size if negative else size)


def _write_even(coder: Coder, value: int, length: int) -> None:
    for shift in reversed(range(length)):
        coder.even(value >> shift & 1)


def _read_even(coder: Coder, length: int) -> int:
    value = 0
    for _ in range(length):
        value = value * 2 + coder.even()
    return value


def render(atom: CodedAtom, n: int, exponent: int, precision: int) -> Floats:
    """The field of a coded atom."""
    return drawn(decoded(atom, exponent, precision), n)
