"""Attention over keys that are named by their position: the kernel `attention`, whose definition it shares.

Keys that do not count are left out by selection: whatever lies there, NaN too, does not matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops.elementwise import one_dtype
from dashi.kernels.abi import Number
from dashi.kernels.attention._attention import LARGEST_DEPTH as LARGEST_DEPTH
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float,
    causal: bool = False,
    window: int = 0,
    heads_last: bool = False,
) -> Tensor:
    """softmax(q k^T scale) v for q (B, H, m, d), k and v (B, G, n, d), where H is a multiple of G; with `heads_last`
    all, and the result, are (B, m, H, d). A key counts if its `mask` (B, n) is above 0, if it does not lie behind the
    query (`causal`), and if it is among the last `window` positions (unless that is 0). Rows in which no key counts are
    0. Arrays of three axes have one head."""
    inputs = (q, k, v) if mask is None else (q, k, v, mask)
    return q.builder.add(ATTENTION, *inputs, scale=scale, causal=causal, window=window, heads_last=heads_last)


def _forms(node: Node, types: Sequence[TensorType]) -> tuple[Shape, ...]:
    """The shapes as the kernel takes them: four axes, and the mask's two."""
    shapes = [t.shape for t in types]
    if len(shapes[0]) != 4:
        shapes[:3] = [(math.prod(s[:-2]), 1, *s[-2:]) for s in shapes[:3]]
    return tuple(shapes)


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind = one_dtype(types)
    if kind.dtype.name not in ("f32", "f64") or len({len(t.shape) for t in types[:3]}) > 1:
        raise GraphError("attention needs q, k and v of one float type with as many axes.", "pass such, and a mask.")
    if len(kind.shape) < 2 or (len(kind.shape) != 4 and (len(types) == 4 or node.get("heads_last"))):
        raise GraphError(f"q has {len(kind.shape)} axes.", "with a mask or heads_last, pass (B, H, m, d).")
    node.number("scale")
    axes = (0, 2, 1, 3) if node.get("heads_last") else (0, 1, 2, 3)
    q, k, v = ([s[a] for a in axes] for s in _forms(node, types)[:3])
    if k != v or q[0] != k[0] or q[3] != k[3] or not k[1] or q[1] % k[1] or not 0 < q[3] <= LARGEST_DEPTH:
        raise GraphError(
            f"q {q}, k {k} and v {v} do not fit as (B, H, S, D).", f"pass heads that fit, and D up to {LARGEST_DEPTH}."
        )
    if len(types) == 4 and types[3].shape != (k[0], k[2]):
        raise GraphError(f"{types[3]} is no mask of {k[0]} x {k[2]} keys.", "pass floats of that shape.")
    return kind


def _scalars(node: Node) -> dict[str, Number]:
    flags = {name: int(bool(node.get(name))) for name in ("causal", "heads_last")}
    window = node.get("window")
    return {"scale": node.number("scale"), "window": window if type(window) is int else 0, "offset": 0, **flags}


def _launch(node: Node, types: Sequence[TensorType]) -> Launch | None:
    shapes = _forms(node, types)
    return Launch(kernels.attention_with("mask" if len(types) == 4 else ""), shapes, shapes[0], _scalars(node))


def _evaluate(node: Node, *values: HostArray) -> HostArray:
    types = [TensorType(v.shape, node.dtype) for v in values]
    forms = [np.ascontiguousarray(v).reshape(s) for v, s in zip(values, _forms(node, types), strict=True)]
    kernel = kernels.attention_with("mask" if len(values) == 4 else "")
    scale = np.asarray(node.number("scale"), node.dtype.numpy).item()
    return np.asarray(kernel.reference(*forms, **{**_scalars(node), "scale": scale})).reshape(node.shape)


ATTENTION: Final = Op("attention", _infer, _evaluate, arity=(3, 4), launch=_launch)
OPS: Final = (ATTENTION,)
