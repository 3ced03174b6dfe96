"""The one canonical summation order, tree64: runs of 64 in index order from +0, then the run sums by the same rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import DTypeError, ShapeError
from dashi.kernels._work import RUN, ceil_div
from dashi.kernels.portable._bits import Floats, Format, canon, format_of, mul

_BLOCK: Final = 1 << 18
"""Elements of the largest temporary in `contract`: it fits the cache, and is large enough to hide the loop."""


def _padded(values: Floats, fill: int = 0) -> Floats:
    """The last axis extended with +0 to a whole number of runs: adding +0 changes no sum that started from +0; or, for
    products, with 1."""
    short = -values.shape[-1] % RUN
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, short)], constant_values=fill) if short else values


def sum64(values: npt.ArrayLike, axis: int = -1) -> Floats:
    """tree64 sum along an axis. The addends are taken as they are: they must be canonical already."""
    level = np.moveaxis(np.asarray(values), axis, -1)
    kind = format_of(level).float
    if level.shape[-1] == 0:
        return np.zeros(level.shape[:-1], kind)
    with np.errstate(all="ignore"):
        while True:
            level = _padded(level)
            runs = level.reshape(*level.shape[:-1], level.shape[-1] // RUN, RUN)
            total = np.zeros(runs.shape[:-1], kind)
            for i in range(RUN):
                np.add(total, runs[..., i], out=total)
            if runs.shape[-2] == 1:
                return total[..., 0]
            level = total


def prod64(values: npt.ArrayLike, axis: int = -1) -> Floats:
    """Product along an axis in the order tree64, from 1 and by `mul`. The factors must be canonical already."""
    level = np.moveaxis(np.asarray(values), axis, -1)
    kind = format_of(level).float
    if level.shape[-1] == 0:
        return np.ones(level.shape[:-1], kind)
    while True:
        level = _padded(level, 1)
        runs = level.reshape(*level.shape[:-1], level.shape[-1] // RUN, RUN)
        total = np.ones(runs.shape[:-1], kind)
        for i in range(RUN):
            total = mul(total, runs[..., i])
        if runs.shape[-2] == 1:
            return total[..., 0]
        level = total


def prefix64(values: npt.ArrayLike) -> Floats:
    """Inclusive scan of a list: prefix sums from +0 within runs of 64, plus the carry of the run: the scan, by the
    same rule, of the run totals before it (+0 for the first run)."""
    array = np.asarray(values)
    kind = format_of(array).float
    if array.ndim != 1:
        raise ShapeError(f"prefix64 scans a list, not an array of shape {array.shape}.", "pass one row at a time.")
    if array.size == 0:
        return np.zeros(0, kind)
    runs = _padded(array).reshape(-1, RUN)
    local = np.empty_like(runs)
    total = np.zeros(len(runs), kind)
    with np.errstate(all="ignore"):
        for i in range(RUN):
            np.add(total, runs[:, i], out=total)
            local[:, i] = total
        carry = np.zeros(len(runs), kind)
        if len(runs) > 1:
            carry[1:] = prefix64(total)[:-1]
        return (carry[:, None] + local).reshape(-1)[: array.size]


def _smallest_exponent(values: Floats, form: Format) -> int:
    """Biased exponent of the smallest nonzero magnitude (canonical values: all others are normal)."""
    size: npt.NDArray[Any] = np.ascontiguousarray(values).view(form.word) & form.magnitude
    return int(np.min(size, initial=form.infinity, where=size != 0)) >> form.fraction_bits


@dataclass(frozen=True, eq=False)
class Matrix:
    """A canonical matrix cut into runs of 64 rows: what `contract` needs of its right side, made once."""

    tiles: Floats
    depth: int
    smallest: int

    @property
    def form(self) -> Format:
        return format_of(self.tiles)


def prepare(a: npt.ArrayLike) -> Matrix:
    """The right side of many contractions, for instance of the steps of a rollout."""
    matrix = canon(a)
    if matrix.ndim != 2:
        raise ShapeError(f"contract needs a matrix, not an array of shape {matrix.shape}.", "pass a of shape (k, n).")
    depth, columns = matrix.shape
    runs = max(1, ceil_div(depth, RUN))
    tiles = np.pad(matrix, ((0, runs * RUN - depth), (0, 0))).reshape(runs, RUN, columns)
    return Matrix(tiles, depth, _smallest_exponent(matrix, format_of(matrix)))


def contract(x: npt.ArrayLike, a: npt.ArrayLike | Matrix) -> Floats:
    """Row vector times matrix: out[..., j] = tree64 over k of mul(x[..., k], a[k, j]), for x of shape (k,) or (m, k).

    Where no product can be below the threshold the flush is skipped: it would change nothing.
    """
    matrix = a if isinstance(a, Matrix) else prepare(a)
    rows = canon(np.atleast_2d(np.asarray(x)))
    form = matrix.form
    if np.ndim(x) > 2 or rows.shape[1] != matrix.depth:
        raise ShapeError(
            f"contract cannot multiply rows of shape {np.shape(x)} with a matrix of {matrix.depth} rows.",
            "pass x of shape (k,) or (m, k) and a of shape (k, n).",
        )
    if rows.dtype != matrix.tiles.dtype:
        raise DTypeError(f"contract mixes {rows.dtype} with {matrix.tiles.dtype}.", "convert one of them.")
    flush = _smallest_exponent(rows, form) + matrix.smallest < form.tiny_exponent + 2 * form.bias
    runs, _, columns = matrix.tiles.shape
    short = runs * RUN - matrix.depth
    pieces = np.pad(rows, ((0, 0), (0, short))).reshape(len(rows), runs, RUN)
    out = np.empty((len(rows), columns), form.float)
    wide = max(1, min(columns, _BLOCK // runs))
    tall = max(1, _BLOCK // (runs * wide))
    for top in range(0, len(rows), tall):
        for left in range(0, columns, wide):
            block = _run_sums(pieces[top : top + tall], matrix.tiles[:, :, left : left + wide], flush)
            out[top : top + tall, left : left + wide] = sum64(block, axis=1)
    return out if np.ndim(x) == 2 else out[0]


def _run_sums(pieces: Floats, tiles: Floats, flush: bool) -> Floats:
    """Sums of each run of products: (m, runs, 64) with (runs, 64, n) gives (m, runs, n)."""
    form = format_of(tiles)
    total: npt.NDArray[Any] = np.zeros((*pieces.shape[:2], tiles.shape[2]), tiles.dtype)
    product = np.empty_like(total)
    size = np.empty(total.shape, form.word)
    with np.errstate(all="ignore"):
        for i in range(RUN):
            np.multiply(pieces[:, :, i, None], tiles[None, :, i, :], out=product)
            if flush:
                np.bitwise_and(product.view(form.word), form.magnitude, out=size)
                np.copyto(product, 0, where=size < form.tiny)
            np.add(total, product, out=total)
    return total
