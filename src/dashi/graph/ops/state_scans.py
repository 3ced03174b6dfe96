"""Scans over sequences whose state each channel has for itself: Mamba, Mamba-2, the gated delta rule, step by step.

The result is two values: a row of channels for each step, and the state behind the last, which is the next call's
start: (batch, n, channels), so that channels are neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops.elementwise import one_dtype
from dashi.graph.ops.movement import slice_
from dashi.kernels.sequence._scans import MOST_STATES
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


@checked
def selective_scan(
    x: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    skip: Tensor | None = None,
    start: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Mamba's scan: for each channel h = exp(delta a) h + (delta x) b and y = h c + skip x, for x (batch, steps,
    channels). delta (batch, steps, heads) and skip (heads) may be shared by the channels of a head, b and c (batch,
    steps, groups, n), or (batch, steps, n), by the heads of a group. `a` is (heads, n), or (heads) as Mamba-2 has it.
    Gives y, and the state (batch, n, channels)."""
    if len(x.shape) != 3 or len(b.shape) not in (3, 4) or len(a.shape) not in (1, 2):
        raise GraphError(
            f"selective_scan: x {x.shape}, a {a.shape}, b {b.shape}.",
            "pass x (batch, steps, channels), a (heads, n) or (heads), b and c (batch, steps, groups, n).",
        )
    builder, n = x.builder, b.shape[-1]
    rates = a.reshape(*a.shape, 1) if len(a.shape) == 1 else a
    straight = builder.constant(np.zeros(a.shape[0]), x.dtype) if skip is None else skip
    inputs = (x, delta, rates, _grouped(b), _grouped(c), straight, _start(x, n, start))
    return _parts(builder.add(SELECTIVE_SCAN, *inputs), x.shape[1])


@checked
def gated_delta(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor, start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The gated delta rule: s = exp(log_decay) s, then s = s + k (beta (v - s k)), and y = s q, for q and k (batch,
    steps, groups, n), v (batch, steps, channels), log_decay and beta (batch, steps, heads). Channels belong to heads,
    and heads to groups, as many side by side as their numbers fit. Gives y, and the state (batch, n, channels)."""
    if len(v.shape) != 3 or not q.shape or len(k.shape) != 4:
        raise GraphError(
            f"gated_delta: q {q.shape}, k {k.shape}, v {v.shape}.",
            "pass q and k (batch, steps, groups, n), v (batch, steps, channels).",
        )
    inputs = (q, k, v, log_decay, beta, _start(v, k.shape[-1], start))
    return _parts(v.builder.add(GATED_DELTA, *inputs), v.shape[1])


def _grouped(weights: Tensor) -> Tensor:
    return weights if len(weights.shape) != 3 else weights.reshape(*weights.shape[:2], 1, weights.shape[2])


def _start(x: Tensor, n: int, start: Tensor | None) -> Tensor:
    batch, _, channels = x.shape
    return x.builder.constant(np.zeros((batch, n, channels)), x.dtype) if start is None else start


def _parts(both: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Rows of the steps, and the state."""
    return slice_(both, [0, 0], [None, steps]), slice_(both, [0, steps], [None, None])


def _require_fit(node: Node, types: Sequence[TensorType], shapes: bool, heads: int, groups: int, n: int) -> TensorType:
    """The type of the result for x or v, the first of the types, if all fit."""
    kind = one_dtype(types)
    batch, steps, channels = kind.shape
    counted = heads > 0 and groups > 0 and channels % heads == 0 and heads % groups == 0 and 0 < n <= MOST_STATES
    if kind.dtype.name not in ("f32", "f64") or not shapes or not counted:
        raise GraphError(
            f"{', '.join(map(str, types))} do not fit: {channels} channels, {heads} heads, {groups} groups, {n} each.",
            f"pass floats; heads divide channels, groups divide heads, with up to {MOST_STATES} states.",
        )
    return TensorType((batch, steps + n, channels), kind.dtype)


def _infer_scan(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, delta, a, b, c, skip, start = (kind.shape for kind in types)
    if len(x) != 3 or len(b) != 4 or len(a) != 2:
        raise GraphError(f"x {x}, a {a} and b {b} have other axes.", "pass 3, 2 and 4 axes.")
    (batch, steps, channels), (heads, rates), (groups, n) = x, a, b[2:]
    fits = (delta, b, c, skip, start) == (
        (batch, steps, heads), (batch, steps, groups, n), b, (heads,), (batch, n, channels)
    )  # fmt: skip
    return _require_fit(node, types, fits and rates in (1, n), heads, groups, n)


def _infer_delta(node: Node, types: Sequence[TensorType]) -> TensorType:
    q, k, v, decay, beta, start = (kind.shape for kind in types)
    if len(v) != 3 or len(k) != 4 or len(beta) != 3:
        raise GraphError(f"k {k}, v {v} and beta {beta} have other axes.", "pass 4, 3 and 3 axes.")
    (batch, steps, channels), heads, (groups, n) = v, beta[2], k[2:]
    fits = (q, k, decay, beta, start) == (
        k, (batch, steps, groups, n), beta, (batch, steps, heads), (batch, n, channels)
    )  # fmt: skip
    return _require_fit(node, [types[2], *types], fits, heads, groups, n)


def _launch(node: Node, types: Sequence[TensorType]) -> Launch | None:
    scalars = {"rows": node.shape[1]}
    return Launch(kernels.get(node.op), tuple(kind.shape for kind in types), node.shape, scalars)


def _evaluate(node: Node, *values: HostArray) -> HostArray:
    return np.asarray(kernels.get(node.op).reference(*values, rows=node.shape[1]))


SELECTIVE_SCAN: Final = Op("selective_scan", _infer_scan, _evaluate, arity=(7, 7), launch=_launch)
GATED_DELTA: Final = Op("gated_delta", _infer_delta, _evaluate, arity=(6, 6), launch=_launch)
OPS: Final = (SELECTIVE_SCAN, GATED_DELTA)
