"""Blobs: what is counted as one vortex in a frame of vorticity on a periodic square.

A blob is a region of one sign, at least `threshold` strong, around a peak. Regions of steepest ascent are joined where
the saddle between them is nearly as high as the lower peak (the dip is at most `depth` of that peak): two vortices are
two until the dip between them has gone. Circulation is counted in whole quanta, point by point: what all blobs have and
what lies around them add up to the total, exactly, in whichever order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError, ShapeError
from dashi.types import HostArray

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_BITS: Final = 24
"""A point carries at most 2^24 quanta, so that the sums of 2^24 points and their moments fit into 64 bits."""
LARGEST: Final = 4096
"""Points along a side."""
_NEIGHBOURS: Final = ((0, 1), (1, -1), (1, 0), (1, 1))
"""Half of the eight neighbours of a point, as rows and columns; the others are their opposites."""


@dataclass(frozen=True, eq=False)
class Blobs:
    """The blobs of a frame, by falling circulation, then by place. Lengths are those of the box."""

    labels: npt.NDArray[np.int32]
    """(n, n): 0 around the blobs, 1 for points of the first blob, and so on."""
    gamma: Integers
    """Signed circulation in quanta."""
    x: Floats
    y: Floats
    radius: Floats
    """The root of the mean squared distance from the centre, by vorticity."""
    points: Integers
    around: int
    """Signed circulation of all that is in no blob, in quanta."""

    def __len__(self) -> int:
        return len(self.gamma)


def quantum_of(largest: float, n: int, length: float) -> float:
    """A power of two that the circulation of every point is counted in, for vorticity of at most `largest`."""
    cell = largest * (length / n) ** 2
    return 0.0 if cell == 0.0 else math.ldexp(1.0, math.frexp(cell)[1] - _BITS)


def quanta(field: Floats, length: float, quantum: float) -> Integers:
    """The circulation of every point in whole quanta. Raises InputError for a quantum that it does not fit."""
    cell = (length / field.shape[-1]) ** 2
    largest = float(np.abs(field).max(initial=0.0)) * cell
    if not (quantum > 0 and math.isfinite(quantum)) and largest > 0:
        raise InputError(f"`quantum=` is {quantum!r:.40}.", "pass a positive circulation, or leave it away.")
    if largest > 0 and not quantum * 2 <= largest <= quantum * 2.0 ** (_BITS + 8):
        word = "coarse" if quantum * 2 > largest else "fine"
        raise InputError(
            f"a quantum of {quantum:g} is too {word} for this field: its strongest point has a circulation of "
            f"{largest:g}.",
            f"use one near {quantum_of(largest / cell, field.shape[-1], length):g}, or leave `quantum=` away.",
        )
    return np.rint(field * (cell / quantum)).astype(np.int64) if largest > 0 else np.zeros(field.shape, np.int64)


def require_field(field: Any) -> Floats:
    """A square field of finite numbers in float64. Raises ShapeError or InputError."""
    values: HostArray = np.asarray(field)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not 4 <= values.shape[0] <= LARGEST:
        raise ShapeError(
            f"a field has the shape {values.shape}.", f"pass a square of 4 to {LARGEST} points along a side."
        )
    if values.dtype.kind not in "fiu":
        raise InputError(f"the field holds {values.dtype}.", "convert it to float32 or float64.")
    floats = values.astype(np.float64)
    if not np.isfinite(floats).all():
        many = int((~np.isfinite(floats)).sum())
        raise InputError(f"{many} values of the field are not finite.", "fill gaps, or pass another field.")
    return floats


def find_blobs(
    field: Floats, length: float, quantum: float, threshold: float, *, depth: float = 0.15, min_points: int = 4
) -> Blobs:
    """The blobs of a frame of vorticity."""
    n = field.shape[-1]
    counted = quanta(field, length, quantum)
    labels = _labels(field, threshold, depth)
    sizes = np.bincount(labels.ravel())
    small = sizes < min_points
    small[0] = False
    labels[small[labels]] = 0
    return _measure(labels, field, counted, n, length)


def _labels(field: Floats, threshold: float, depth: float) -> npt.NDArray[np.int32]:
    """Points by blob, numbered in any order; 0 around them."""
    n = field.shape[-1]
    size = np.abs(field).ravel()
    active = np.flatnonzero(size >= threshold)
    # Ranks by falling strength, then place: no two points are equal.
    order = active[np.argsort(-size[active], kind="stable")]
    ranks = np.full(n * n, -1, np.int64)
    ranks[order] = np.arange(len(order))
    pairs = _neighbours(ranks.reshape(n, n), np.signbit(field))
    uphill = np.arange(len(order))
    for a, b in pairs:
        np.minimum.at(uphill, a, b)
        np.minimum.at(uphill, b, a)
    while True:
        further = uphill[uphill]
        if np.array_equal(further, uphill):
            break
        uphill = further
    peaks = _joined(uphill, pairs, size[order], depth)
    labels = np.zeros(n * n, np.int32)
    labels[order] = np.unique(peaks, return_inverse=True)[1].astype(np.int32) + 1
    return labels.reshape(n, n)


def _neighbours(ranks: Integers, negative: npt.NDArray[np.bool_]) -> list[tuple[Integers, Integers]]:
    """Ranks of points and of their neighbours of the same sign, in four directions."""
    pairs: list[tuple[Integers, Integers]] = []
    for row, column in _NEIGHBOURS:
        other = np.roll(ranks, (-row, -column), (0, 1))
        both = (ranks >= 0) & (other >= 0) & (negative == np.roll(negative, (-row, -column), (0, 1)))
        pairs.append((ranks[both], other[both]))
    return pairs


def _joined(basins: Integers, pairs: list[tuple[Integers, Integers]], strength: Floats, depth: float) -> Integers:
    """The peak that every point belongs to, once regions with shallow saddles between them are joined."""
    first = np.concatenate([a for a, _ in pairs])
    second = np.concatenate([b for _, b in pairs])
    low, high = np.minimum(basins[first], basins[second]), np.maximum(basins[first], basins[second])
    apart = low != high
    saddles = np.maximum(first, second)[apart]
    low, high = low[apart], high[apart]
    order = np.lexsort((high, low, saddles))
    above: dict[int, int] = {}

    def peak(rank: int) -> int:
        while rank in above:
            rank = above[rank]
        return rank

    # From the highest saddle down. A pair that is not joined at its highest saddle is joined at none.
    tried: set[tuple[int, int]] = set()
    for index in order.tolist():
        pair = (int(low[index]), int(high[index]))
        if pair in tried:
            continue
        tried.add(pair)
        a, b = sorted((peak(pair[0]), peak(pair[1])))
        if a != b and strength[saddles[index]] >= (1.0 - depth) * strength[b]:
            above[b] = a
    roots = np.arange(len(strength))
    for rank in sorted(above):
        roots[rank] = peak(rank)
    return roots[basins]


def _measure(labels: npt.NDArray[np.int32], field: Floats, counted: Integers, n: int, length: float) -> Blobs:
    """Circulation, centre and radius of every blob, and the blobs in their order."""
    flat = labels.ravel()
    inside = np.flatnonzero(flat)
    by_blob = inside[np.argsort(flat[inside], kind="stable")]
    values, starts = np.unique(flat[by_blob], return_index=True)
    if not len(values):
        empty = np.zeros(0)
        none = np.zeros(0, np.int64)
        return Blobs(np.zeros_like(labels), none, empty, empty, empty, none, int(counted.sum()))
    points = np.diff(np.append(starts, len(by_blob)))
    q = counted.ravel()[by_blob]
    weight = np.abs(q)
    total = np.add.reduceat(weight, starts)
    # Offsets from a point of the blob: a centre is the same wherever the border of the box lies.
    strongest = _strongest(np.abs(field).ravel()[by_blob], starts, points)
    anchor = np.repeat(by_blob[strongest], points)
    rows = _wrapped(by_blob // n - anchor // n, n)
    columns = _wrapped(by_blob % n - anchor % n, n)
    mean_row = np.add.reduceat(weight * rows, starts) / np.maximum(total, 1)
    mean_column = np.add.reduceat(weight * columns, starts) / np.maximum(total, 1)
    squares = np.add.reduceat((weight >> 2) * (rows * rows + columns * columns), starts) * 4.0 / np.maximum(total, 1)
    spread = np.sqrt(np.maximum(squares - mean_row * mean_row - mean_column * mean_column, 0.25))
    gamma = np.add.reduceat(q, starts)
    place = by_blob[strongest]
    step = length / n
    x = np.mod((place % n + mean_column) * step, length)
    y = np.mod((place // n + mean_row) * step, length)
    order = np.lexsort((place, -np.abs(gamma)))
    renumbered = np.zeros(int(flat.max(initial=0)) + 1, np.int32)
    renumbered[values[order]] = np.arange(1, len(order) + 1)
    around = int(counted.sum()) - int(gamma.sum())
    return Blobs(
        renumbered[labels], gamma[order], x[order], y[order], (spread * step)[order],
        points[order].astype(np.int64), around,
    )  # fmt: skip


def _strongest(strength: Floats, starts: Integers, points: Integers) -> Integers:
    """The strongest point of every run of points, the first of several."""
    most = np.repeat(np.maximum.reduceat(strength, starts), points)
    places = np.where(strength == most, np.arange(len(strength)), len(strength))
    return np.minimum.reduceat(places, starts)


def _wrapped(offsets: Integers, n: int) -> Integers:
    """Offsets in points, the shorter way round."""
    return (offsets + n // 2) % n - n // 2
