"""Attention in NumPy: the definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.kernels._work import RUN, ceil_div
from dashi.kernels.portable import canon, contract, divide, exp, mul, sum64
from dashi.types import HostArray

LAST_POSITION: Final = 1 << 30
_THRESHOLD_ROOTS: Final = {4: 2.0**-51, 8: 2.0**-484}


@dataclass(frozen=True)
class Rules:
    """Which keys count for which queries, and what is added to scores; arrays are stretched to full shape, or None."""

    scale: float
    causal: bool
    window: int
    offset: int
    mask: HostArray | None = None
    """(B, H, Sq, Sk): a key counts where it is above 0."""
    bias: HostArray | None = None
    """(B, H, Sq, Sk), added to the scores."""
    lengths: HostArray | None = None
    """(B,): keys from there on do not count."""
    positions: HostArray | None = None
    """(B,): the position of the first query, less `offset`."""

    def counts(self, batch: int, heads: slice, queries: int, keys: int) -> HostArray:
        """Whether key j counts for query i of each head, of the shape (heads, queries, keys)."""
        first = min(self.offset, LAST_POSITION)
        first += 0 if self.positions is None else min(int(self.positions[batch]), LAST_POSITION)
        position = first + np.arange(queries)[:, None]
        key = np.arange(keys)[None, :]
        counted = np.ones((heads.stop - heads.start, queries, keys), bool)
        if self.lengths is not None:
            counted &= key < int(self.lengths[batch])
        if self.causal:
            counted &= key <= position
        if self.window:
            counted &= key + self.window > position
        if self.mask is not None:
            counted &= canon(self.mask[batch, heads]) > 0
        return counted


def attend(q: HostArray, k: HostArray, v: HostArray, rules: Rules) -> HostArray:
    """Attention of q (B, H, Sq, D) to k and v (B, Hkv, Sk, D), of the shape of q."""
    batches, heads, queries, depth = q.shape
    shared = heads // k.shape[1] if k.shape[1] else 1
    result = np.zeros(q.shape, q.dtype)
    for z in range(batches):
        for head in range(k.shape[1]):
            those = slice(head * shared, (head + 1) * shared)
            counted = rules.counts(z, those, queries, k.shape[2]).reshape(shared * queries, k.shape[2])
            rows = q[z, those].reshape(shared * queries, depth)
            bias = None if rules.bias is None else rules.bias[z, those].reshape(counted.shape)
            scores = _scores(rows, k[z, head], bias, rules.scale)
            result[z, those] = _mean(scores, counted, v[z, head]).reshape(shared, queries, depth)
    return result


def _scores(rows: HostArray, keys: HostArray, bias: HostArray | None, scale: float) -> HostArray:
    """canon(scale (q . k)), the products summed over D in the order tree64, plus the bias."""
    dots = canon(contract(rows, keys.T))
    scores = canon(mul(np.asarray(scale, rows.dtype), dots))
    return scores if bias is None else canon(scores + canon(bias))


def _mean(scores: HostArray, counted: HostArray, values: HostArray) -> HostArray:
    """The mean of values (Sk, D) with the weights exp(score), run by run; 0 where no key counts."""
    rows, keys = scores.shape
    runs = ceil_div(keys, RUN)
    if rows * runs == 0:
        return np.zeros((rows, values.shape[1]), scores.dtype)
    padded = ((0, 0), (0, runs * RUN - keys))
    scores = np.pad(scores, padded).reshape(rows, runs, RUN)
    counted = np.pad(counted, padded).reshape(rows, runs, RUN) & (scores != -np.inf)
    tiles = np.pad(canon(values), padded[::-1]).reshape(runs, RUN, -1)
    peaks = np.where(counted, scores, -np.inf).max(axis=2)
    weights = np.zeros_like(scores)
    np.copyto(weights, exp(np.where(counted, scores - peaks[:, :, None], 0)), where=counted)
    peak = peaks.max(axis=1, keepdims=True)
    there = peaks != -np.inf
    factors = np.where(there, exp(np.where(there, peaks - peak, 0)), 0)
    whole = sum64(mul(factors, canon(_sums_in_order(weights))), axis=1)
    parts = canon(_weighted_sums(weights, counted, tiles))
    means = divide(sum64(mul(factors[:, :, None], parts), axis=1), whole[:, None])
    return canon(np.where(there.any(axis=1)[:, None], means, 0))


def _sums_in_order(weights: HostArray) -> HostArray:
    total = np.zeros(weights.shape[:2], weights.dtype)
    for i in range(RUN):
        np.add(total, weights[:, :, i], out=total)
    return total


def _weighted_sums(weights: HostArray, counted: HostArray, tiles: HostArray) -> HostArray:
    """(rows, runs, 64) weights with (runs, 64, D) values gives (rows, runs, D): each run in order. What does not count
    is left out, not multiplied by 0."""
    total = np.zeros((*weights.shape[:2], tiles.shape[2]), tiles.dtype)
    root = _THRESHOLD_ROOTS[tiles.dtype.itemsize]
    small = any(bool(np.any((np.abs(x) < root) & (x != 0))) for x in (weights, tiles))
    careful = small or not np.isfinite(tiles).all()
    product: HostArray = np.empty_like(total)
    for i in range(RUN):
        if careful:
            product = np.where(counted[:, :, i, None], mul(weights[:, :, i, None], tiles[None, :, i, :]), 0)
        else:
            np.multiply(weights[:, :, i, None], tiles[None, :, i, :], out=product)
        np.add(total, product, out=total)
    return total
