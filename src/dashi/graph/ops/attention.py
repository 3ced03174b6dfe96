"""Attention over keys that are named by their position.

Run r holds the positions 64 r to 64 r + 63. In a run: the maximum m_r over the keys that count, the weights
exp(s - m_r), and the tree64 sums of weights and of weights times values. Runs are joined by tree64 with the factors
exp(m_r - M), where M is the largest m_r. Keys that do not count are left out by selection: whatever lies there, NaN
too, does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph.builder import Tensor
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Op
from dashi.graph.ops.elementwise import broadcast, compute
from dashi.graph.ops.products import product
from dashi.kernels._work import RUN
from dashi.kernels.portable import canon, divide, mul, sum64
from dashi.types import BOOL, HostArray


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float) -> Tensor:
    """softmax(q k^T scale) v for q (..., m, d), k and v (..., n, d); the keys that count are those whose mask, which is
    stretched to (..., m, n), is true. Rows in which no key counts are 0."""
    inputs = (q, k, v) if mask is None else (q, k, v, mask)
    return q.builder.add(ATTENTION, *inputs, scale=scale)


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    if len(types) not in (3, 4) or any(len(t.shape) < 2 or t.dtype.name != "f32" for t in types[:3]):
        raise GraphError("attention needs q, k and v of float32 with two axes or more.", "pass such, and a mask.")
    q, k, v = types[:3]
    node.number("scale")
    if k.shape[-1] != q.shape[-1] or k.shape[-2] != v.shape[-2] or not k.shape[-2]:
        raise GraphError(
            f"q {q.shape}, k {k.shape}, v {v.shape} do not fit.", "pass (..., m, d), (..., n, d), (..., n, e)."
        )
    batch = broadcast([TensorType(t.shape[:-2], t.dtype) for t in (q, k, v)])
    if len(types) == 4:
        scores = (*batch, q.shape[-2], k.shape[-2])
        if types[3].dtype != BOOL or broadcast([types[3], TensorType(scores, q.dtype)]) != scores:
            raise GraphError(f"{types[3]} is no mask of {scores}.", "pass truth values that stretch to that shape.")
    return TensorType((*batch, q.shape[-2], v.shape[-1]), q.dtype)


def _evaluate(node: Node, q: HostArray, k: HostArray, v: HostArray, mask: HostArray | None = None) -> HostArray:
    scale = canon(np.asarray(node.number("scale"), q.dtype))
    scores: Any = compute("mul", product(q, np.swapaxes(k, -1, -2)), scale)
    keys = scores.shape[-1]
    counts = np.broadcast_to(True if mask is None else mask, scores.shape)
    values = np.broadcast_to(v, (*scores.shape[:-2], *v.shape[-2:]))
    largest, sums, totals = [], [], []
    for start in range(0, keys, RUN):
        part = slice(start, min(start + RUN, keys))
        counted = counts[..., part]
        some = counted.any(axis=-1, keepdims=True)
        m = np.where(some, np.where(counted, scores[..., part], -np.inf).max(axis=-1, keepdims=True), -np.inf)
        weights = np.where(counted, compute("exp", compute("sub", scores[..., part], m)), 0).astype(q.dtype)
        largest.append(m)
        sums.append(sum64(weights))
        totals.append(_weighted(weights, counted, values[..., part, :]))
    return _join(np.stack(largest), np.stack(sums), np.stack(totals)).astype(q.dtype)


def _weighted(weights: HostArray, counted: HostArray, values: HostArray) -> HostArray:
    """Sums, in the order of the keys, of weights times values over the keys that count."""
    total: Any = np.zeros((*weights.shape[:-1], values.shape[-1]), weights.dtype)
    with np.errstate(all="ignore"):
        for j in range(weights.shape[-1]):
            term = mul(weights[..., j, None], values[..., None, j, :])
            total = total + np.where(counted[..., j, None], term, np.float32(0))
    return total


def _join(largest: Any, sums: Any, totals: Any) -> HostArray:
    """Runs along the first axis joined: factors exp(m_r - M), tree64 over the runs, one division."""
    top = largest.max(axis=0)
    some = top != -np.inf
    factors = np.where(largest == -np.inf, 0, compute("exp", compute("sub", largest, top))).astype(sums.dtype)
    weight = canon(sum64(np.moveaxis(mul(factors[..., 0], canon(sums)), 0, -1)))[..., None]
    total = canon(sum64(np.moveaxis(mul(factors, canon(totals)), 0, -1)))
    return np.where(some, divide(total, np.broadcast_to(weight, total.shape)), 0)


ATTENTION: Final = Op("attention", _infer, _evaluate)
OPS: Final = (ATTENTION,)
