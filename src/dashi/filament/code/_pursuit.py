"""Atoms for a field: pursuit over places and widths, then sweeps of least squares, one atom after another.

The pursuit takes the Gaussian that lowers the error most, subtracts it, and goes on (S. G. Mallat and Z. Zhang 1993,
doi:10.1109/78.258082). In a sweep every atom is put back in turn and fitted anew: two Gauss-Newton steps for place,
width and amplitude, of which one that raises the error is not taken. Sums have a fixed order, transforms are those of
`dashi.fft`: the same field gives the same atoms everywhere.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

import dashi.fft
from dashi.filament.code._atom_code import Gaussian, drawn, profile
from dashi.filament.threads.blobs import Floats
from dashi.kernels import portable

_WIDTHS: Final = 2
"""Widths that are tried for a factor of two."""
_LARGEST_SHARE: Final = 8
"""The largest width is so small a part of the box: its images do not count."""
_SMALLEST: Final = 1.0
_SWEEPS: Final = 3
_STEPS: Final = 2
_REACH: Final = 4.5
"""A fit looks at so many widths around an atom."""


def pursue(field: Floats, count: int) -> list[Gaussian]:
    """Up to so many atoms, in the order in which they are taken."""
    n = field.shape[0]
    widths = _widths(n)
    if not count or not widths or not np.any(field):
        return []
    products = [_products(field, width) for width in widths]
    weights = [1.0 / (math.pi * width * width) for width in widths]
    atoms: list[Gaussian] = []
    for _ in range(count):
        atom = _best(products, widths, weights, n)
        if atom.amplitude == 0.0:
            break
        atoms.append(atom)
        for index, width in enumerate(widths):
            squares = atom.width * atom.width + width * width
            common = 2.0 * math.pi * (atom.width * atom.width) * (width * width) / squares
            spread = math.sqrt(squares)
            products[index] -= drawn(Gaussian(atom.x, atom.y, spread, atom.amplitude * common), n)
    return atoms


def _widths(n: int) -> list[float]:
    widths: list[float] = []
    k = 0
    while (width := _SMALLEST * 2.0 ** (k // _WIDTHS) * (math.sqrt(2.0) if k % _WIDTHS else 1.0)) <= n / _LARGEST_SHARE:
        widths.append(width)
        k += 1
    return widths


def _products(field: Floats, width: float) -> Floats:
    """Inner products of a field with the Gaussian of this width around every point."""
    n = field.shape[0]
    line = profile(0.0, width, n)
    kernel = line[:, None] * line[None]
    modes = dashi.fft.rfft2(field, device="cpu") * dashi.fft.rfft2(kernel, device="cpu").real
    return np.array(dashi.fft.irfft2(modes, s=(n, n), device="cpu"), np.float64)


def _best(products: list[Floats], widths: list[float], weights: list[float], n: int) -> Gaussian:
    """The Gaussian that lowers the error most, on the grid of places and widths."""
    peaks = [int(np.argmax(np.abs(one))) for one in products]
    gains = [float(one.ravel()[at]) ** 2 * weight for one, at, weight in zip(products, peaks, weights, strict=True)]
    index = int(np.argmax(gains))
    at = peaks[index]
    value = float(products[index].ravel()[at])
    return Gaussian(float(at % n), float(at // n), widths[index], value * weights[index])


def fitted(field: Floats, atoms: list[Gaussian]) -> list[Gaussian]:
    """The atoms after sweeps of least squares, by falling gain."""
    n = field.shape[0]
    left = np.array(field)
    for atom in atoms:
        left -= drawn(atom, n)
    fits = [*atoms]
    for _ in range(_SWEEPS):
        for index, atom in enumerate(fits):
            left += drawn(atom, n)
            fits[index] = _fit(left, atom, n)
            left -= drawn(fits[index], n)
    order = sorted(range(len(fits)), key=lambda index: (-fits[index].gain, index))
    return [fits[index] for index in order if fits[index].amplitude != 0.0]


def _fit(field: Floats, atom: Gaussian, n: int) -> Gaussian:
    """One atom fitted to a field by Gauss-Newton steps."""
    for _ in range(_STEPS):
        reach = min(n // 2 - 1, math.ceil(_REACH * atom.width) + 1)
        row, column = round(atom.y), round(atom.x)
        offsets = np.arange(-reach, reach + 1)
        part = field[np.ix_((row + offsets) % n, (column + offsets) % n)]
        dy: Floats = (offsets - (atom.y - row)).astype(np.float64)
        dx: Floats = (offsets - (atom.x - column)).astype(np.float64)
        before = _misfit(part, dx, dy, atom.width, atom.amplitude)
        step = _step(part, dx, dy, atom)
        if step is None:
            return atom
        x, y, width, amplitude = step
        if not (0.7 <= width / atom.width <= 1.4 and _SMALLEST / 2 <= width <= n / _LARGEST_SHARE):
            return atom
        after = _misfit(part, dx - x, dy - y, width, amplitude)
        if not after < before:
            return atom
        atom = Gaussian((atom.x + x) % n, (atom.y + y) % n, width, amplitude)
    return atom


def _gaussian(d: Floats, width: float) -> Floats:
    return np.asarray(portable.exp(-(d * d) / (2.0 * width * width)), np.float64)


def _misfit(part: Floats, dx: Floats, dy: Floats, width: float, amplitude: float) -> float:
    left = part - (amplitude * _gaussian(dy, width))[:, None] * _gaussian(dx, width)[None]
    return float(np.cumsum(left * left)[-1])


def _step(part: Floats, dx: Floats, dy: Floats, atom: Gaussian) -> tuple[float, float, float, float] | None:
    """A Gauss-Newton step: moves along x and y, the new width and amplitude; None where it has no solution.

    Derivatives are products of functions of x and of y, so all inner products come from four sums along each axis."""
    width = atom.width
    gx, gy = _gaussian(dx, width), _gaussian(dy, width)
    ux, uy = dx / width, dy / width
    # Along x: 1, u, u^2; the same along y.
    along_x, along_y = [gx, ux * gx, ux * ux * gx], [gy, uy * gy, uy * uy * gy]
    rows = [np.cumsum(part * one[None], axis=1)[:, -1] for one in along_x]
    data = [[float(np.cumsum(b * one)[-1]) for b in along_y] for one in rows]
    square_x = [[float(np.cumsum(a * b)[-1]) for b in along_x] for a in along_x]
    square_y = [[float(np.cumsum(a * b)[-1]) for b in along_y] for a in along_y]
    # Functions as sums of terms (factor, power along x, power along y): amplitude, x, y, logarithm of the width.
    a = atom.amplitude
    terms = [
        [(1.0, 0, 0)], [(a / width, 1, 0)], [(a / width, 0, 1)], [(a, 2, 0), (a, 0, 2)],
    ]  # fmt: skip
    matrix = [
        [sum(p * q * square_x[i][k] * square_y[j][m] for p, i, j in left for q, k, m in right) for right in terms]
        for left in terms
    ]
    target = [sum(p * (data[i][j] - a * square_x[i][0] * square_y[j][0]) for p, i, j in left) for left in terms]
    solution = _solved(matrix, target)
    if solution is None:
        return None
    change, x, y, growth = solution
    return x, y, width * (1.0 + growth), a + change


def _solved(matrix: list[list[float]], target: list[float]) -> list[float] | None:
    """The solution of a small symmetric positive system by elimination; None where it is singular."""
    rows = [[*row, value] for row, value in zip(matrix, target, strict=True)]
    size = len(rows)
    scale = max(row[index] for index, row in enumerate(rows))
    for pivot in range(size):
        if not rows[pivot][pivot] > 1e-13 * scale:
            return None
        for below in range(pivot + 1, size):
            factor = rows[below][pivot] / rows[pivot][pivot]
            rows[below] = [b - factor * a for a, b in zip(rows[pivot], rows[below], strict=True)]
    values = [0.0] * size
    for pivot in reversed(range(size)):
        known = sum(rows[pivot][k] * values[k] for k in range(pivot + 1, size))
        values[pivot] = (rows[pivot][size] - known) / rows[pivot][pivot]
    return values
