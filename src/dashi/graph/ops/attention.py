"""Attention over keys that are named by their position: the kernel `attention`, whose definition it shares.

Keys that do not count are left out by selection: whatever lies there, NaN too, does not matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph._views import attribute_view, read_through, require_inside, transposed
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops.elementwise import cast, one_dtype
from dashi.kernels.abi import Number, View
from dashi.kernels.attention._attention import EXTRAS
from dashi.kernels.attention._attention import LARGEST_DEPTH as LARGEST_DEPTH
from dashi.kernels.attention._reference import LAST_POSITION
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


@checked
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    positions: Tensor | None = None,
    causal: bool = False,
    window: int = 0,
    offset: int = 0,
    heads_last: bool = False,
) -> Tensor:
    """softmax(q k^T scale + bias) v for q (B, H, m, d), k and v (B, G, n, d), where H is a multiple of G; with
    `heads_last` all, and the result, are (B, m, H, d). Arrays of three axes have one head. The scale is 1 / sqrt(d),
    rounded to the type of q, unless another is named.

    Key j has the position j; query i of batch b has `offset` + `positions[b]` + i, where `positions` (B,) are uint32. A
    key counts if all of this holds, and is left out by selection otherwise, so that it may be NaN:

    - `mask` is true, or above 0: of keys (B, n), or stretched to (B, H, m, n);
    - j < `lengths[b]`, numbers (B,) of uint32: the keys in use;
    - it does not lie behind the query (`causal`);
    - it is among the last `window` positions up to the query, unless that is 0;
    - its score is above minus infinity; `bias`, stretched to (B, H, m, n), is added to the scaled scores.

    Rows in which no key counts are 0."""
    if mask is not None and mask.dtype == "bool":
        mask = cast(mask, q.dtype)
    if scale is None:
        scale = np.asarray(1 / math.sqrt(max(1, *q.shape[-1:])), q.dtype.numpy).item()
    named = dict(zip(EXTRAS, (mask, bias, lengths, positions), strict=True))
    extras = {name: tensor for name, tensor in named.items() if tensor is not None}
    attributes: dict[str, Any] = {"scale": scale, "causal": causal, "window": window, "heads_last": heads_last}
    attributes |= {"extras": tuple(extras)} if extras else {}
    attributes |= {"offset": offset} if offset else {}
    return q.builder.add(ATTENTION, q, k, v, *extras.values(), **attributes)


def _extras(node: Node, inputs: int) -> tuple[str, ...]:
    """The names of the inputs behind q, k and v."""
    named = node.get("extras") or ()
    listed = tuple(name for name in EXTRAS if isinstance(named, tuple) and name in named)
    if listed != named or len(listed) != inputs - 3:
        raise GraphError(
            f"extras={named!r} do not name the {inputs - 3} inputs behind q, k and v.",
            f"name each, in this order: {', '.join(EXTRAS)}.",
        )
    return listed


def views_of(node: Node, inputs: int) -> tuple[View | None, ...]:
    """How each input is read; None where as it is."""
    views = node.get("views")
    if views is None:
        return (None,) * inputs
    if not isinstance(views, tuple) or len(views) != inputs:
        raise GraphError(f"views={views!r} are none of {inputs} inputs.", "give each a view, or null.")
    listed = tuple(attribute_view(view) for view in views)
    if any(view is not None and len(view.shape) != 4 for view in listed):
        raise GraphError("attention reads through views of four axes only.", "view q, k, v, a mask or a bias.")
    return listed


def _read_types(node: Node, types: Sequence[TensorType]) -> list[TensorType]:
    """The types of the inputs as they are read."""
    read: list[TensorType] = []
    for view, kind in zip(views_of(node, len(types)), types, strict=True):
        if view is not None:
            require_inside(view, kind.size)
        read.append(kind if view is None else TensorType(view.shape, kind.dtype))
    return read


def _forms(types: Sequence[TensorType]) -> tuple[Shape, ...]:
    """The shapes as the kernel takes them: q, k and v with four axes."""
    shapes = [t.shape for t in types]
    if len(shapes[0]) != 4:
        shapes[:3] = [(math.prod(s[:-2]), 1, *s[-2:]) for s in shapes[:3]]
    return tuple(shapes)


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    types = _read_types(node, types)
    kind = one_dtype(types[:3])
    extras = _extras(node, len(types))
    if kind.dtype.name not in ("f32", "f64") or len({len(t.shape) for t in types[:3]}) > 1:
        raise GraphError("attention needs q, k and v of one float type with as many axes.", "pass such, and a mask.")
    if len(kind.shape) < 2 or (len(kind.shape) != 4 and (extras or node.get("heads_last"))):
        raise GraphError(
            f"q has {len(kind.shape)} axes.",
            "with a mask, a bias, lengths, positions or heads_last, pass (B, H, m, d).",
        )
    _scalars(node)
    axes = (0, 2, 1, 3) if node.get("heads_last") else (0, 1, 2, 3)
    q, k, v = (tuple(s[a] for a in axes) for s in _forms(types)[:3])
    if k != v or q[0] != k[0] or q[3] != k[3] or not k[1] or q[1] % k[1] or not 0 < q[3] <= LARGEST_DEPTH:
        raise GraphError(
            f"q {q}, k {k} and v {v} do not fit as (B, H, S, D).", f"pass heads that fit, and D up to {LARGEST_DEPTH}."
        )
    for name, extra in zip(extras, types[3:], strict=True):
        _require_extra(name, extra, kind, (q[0], q[1], q[2], k[2]))
    return kind


def _require_extra(name: str, extra: TensorType, kind: TensorType, scores: Shape) -> None:
    """A GraphError where an input behind q, k and v does not fit the shape of the scores, (B, H, m, n)."""
    dtype = "u32" if name in ("lengths", "positions") else kind.dtype.name
    if dtype == "u32":
        fits, shape = extra.shape == scores[:1], f"({scores[0]},)"
    else:
        full = len(extra.shape) == 4 and all(n in (1, m) for n, m in zip(extra.shape, scores, strict=True))
        keys = name == "mask" and extra.shape == (scores[0], scores[3])
        fits, shape = full or keys, f"{'(B, n) or ' if name == 'mask' else ''}(B, H, m, n) = {scores}, or 1 each"
    if not fits or extra.dtype.name != dtype:
        raise GraphError(f"{extra} is no {name} of {scores[0]} x {scores[3]} keys.", f"pass {dtype} of shape {shape}.")


def _scalars(node: Node) -> dict[str, Number]:
    flags = {name: int(bool(node.get(name))) for name in ("causal", "heads_last")}
    numbers = {name: node.integer(name) if node.get(name) is not None else 0 for name in ("window", "offset")}
    if not all(0 <= number <= LAST_POSITION for number in numbers.values()):
        raise GraphError(f"{numbers} are no positions.", f"use 0 to {LAST_POSITION}.")
    return {"scale": node.number("scale"), **numbers, **flags}


def _launch(node: Node, types: Sequence[TensorType]) -> Launch | None:
    extras = _extras(node, len(types))
    shown = {n: v for n, v in zip(("q", "k", "v", *extras), views_of(node, len(types)), strict=True) if v is not None}
    if not shown:
        shapes = _forms(types)
        return Launch(kernels.attention_with(" ".join(extras)), shapes, shapes[0], _scalars(node))
    # The kernel sees q, k and v as (B, H, S, D), whatever the layout.
    views = {n: transposed(v, (0, 2, 1, 3)) if n in "qkv" and node.get("heads_last") else v for n, v in shown.items()}
    kernel = kernels.attention_with(" ".join(extras), views)
    return Launch(kernel, tuple(kind.shape for kind in types), node.shape, _scalars(node))


def _evaluate(node: Node, *values: HostArray) -> HostArray:
    values = tuple(read_through(view, v) for view, v in zip(views_of(node, len(values)), values, strict=True))
    types = [TensorType(v.shape, node.dtype) for v in values]
    forms = [np.ascontiguousarray(v).reshape(s) for v, s in zip(values, _forms(types), strict=True)]
    kernel = kernels.attention_with(" ".join(_extras(node, len(values))))
    scale = np.asarray(node.number("scale"), node.dtype.numpy).item()
    return np.asarray(kernel.reference(*forms, **{**_scalars(node), "scale": scale})).reshape(node.shape)


ATTENTION: Final = Op("attention", _infer, _evaluate, arity=(3, 7), launch=_launch)
OPS: Final = (ATTENTION,)
