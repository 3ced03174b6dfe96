"""Ops that move no bits: reshape, transpose, slice, expand, stop_gradient. Each is an index map into its input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph._views import (
    attribute_view,
    expanded,
    is_dense,
    read_through,
    require_inside,
    reshaped,
    sliced,
    transposed,
)
from dashi.graph.ir import Graph, Node, TensorType
from dashi.graph.op import Op
from dashi.kernels.abi import View
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

MOST_PARTS: Final = 1 << 16
"""Values that `split` makes: each is a node."""


@checked
def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """All elements in C order under another shape; one length may be -1."""
    return x.reshape(*shape)


@checked
def transpose(x: Tensor, axes: Sequence[int] = ()) -> Tensor:
    """Axes in another order; reversed where none are named."""
    return x.transpose(*axes)


@checked
def slice_(x: Tensor, starts: Sequence[int], stops: Sequence[int | None], steps: Sequence[int] | None = None) -> Tensor:
    """x[start:stop:step] along the first axes, as in NumPy."""
    return x.builder.add(SLICE, x, starts=starts, stops=stops, steps=[1] * len(starts) if steps is None else steps)


@checked
def expand(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Axes of length 1, and new ones in front, repeated, as in NumPy's broadcast_to."""
    return x.builder.add(EXPAND, x, shape=shape)


@checked
def narrow(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """So many elements from `start` on along an axis."""
    lengths = x.shape[axis : axis + 1] if axis >= 0 else x.shape[axis:][:1]
    if len(lengths) != 1 or not 0 <= start <= start + length <= lengths[0]:
        raise GraphError(
            f"{x.name!r} of shape {x.shape} has no {length} elements from {start} on along axis {axis}.",
            "name an axis of it, and elements inside.",
        )
    place = axis % len(x.shape)
    return slice_(x, [0] * place + [start], [*x.shape[:place], start + length])


@checked
def split(x: Tensor, lengths: Sequence[int] | int, axis: int = 0) -> list[Tensor]:
    """Parts of these lengths along an axis, one behind another; or so many parts of one length, where only the last
    may be shorter."""
    whole = x.shape[axis] if -len(x.shape) <= axis < len(x.shape) else -1
    if isinstance(lengths, int):
        if lengths > MOST_PARTS:
            raise GraphError(f"{x.name!r} is not split into {lengths} parts.", f"ask for {MOST_PARTS} at most.")
        each = -(-whole // lengths) if lengths > 0 else -1
        listed = [max(0, min(each, whole - k * each)) for k in range(lengths)]
    else:
        listed = list(lengths)
    if whole < 0 or sum(listed) != whole or min(listed, default=0) < 0:
        raise GraphError(
            f"{x.name!r} of shape {x.shape} is not split into {lengths} along axis {axis}.",
            "name an axis of it, and lengths that make up the whole.",
        )
    return [narrow(x, axis, sum(listed[:k]), length) for k, length in enumerate(listed)]


@checked
def reverse(x: Tensor, axes: Sequence[int] | int) -> Tensor:
    """The elements along these axes in the opposite order."""
    rank = len(x.shape)
    listed = [axes] if isinstance(axes, int) else list(axes)
    if any(not -rank <= axis < rank for axis in listed):
        raise GraphError(f"{x.name!r} of shape {x.shape} has no axes {listed}.", "name axes that it has.")
    turned = {axis % rank for axis in listed}
    starts = [length - 1 if axis in turned else 0 for axis, length in enumerate(x.shape)]
    stops = [None if axis in turned else length for axis, length in enumerate(x.shape)]
    return slice_(x, starts, stops, [-1 if axis in turned else 1 for axis in range(rank)])


def swap_with_last(x: Tensor, axis: int) -> Tensor:
    """x with an axis, counted from 0, in the last one's place, and that one in its."""
    order = list(range(len(x.shape)))
    order[axis], order[-1] = order[-1], order[axis]
    return x if axis == len(order) - 1 else x.transpose(*order)


@checked
def stop_gradient(x: Tensor) -> Tensor:
    """x itself: an alias of its bytes. There are no gradients here; models that mark where theirs end can be read."""
    return x.builder.apply("stop_gradient", x)


def _infer_reshape(node: Node, types: Sequence[TensorType]) -> TensorType:
    shape = list(node.integers("shape"))
    if shape.count(-1) == 1:
        others = -math.prod(shape)
        shape[shape.index(-1)] = types[0].size // others if others else 0
    if any(length < 0 for length in shape) or math.prod(shape) != types[0].size:
        raise GraphError(
            f"{types[0].size} elements are no array of shape {node.integers('shape')}.", "keep their number."
        )
    return TensorType(tuple(shape), types[0].dtype)


def _infer_transpose(node: Node, types: Sequence[TensorType]) -> TensorType:
    axes = node.integers("axes")
    if sorted(axes) != list(range(len(types[0].shape))):
        raise GraphError(f"{axes} does not name each of {len(types[0].shape)} axes once.", "name them from 0 on.")
    return TensorType(tuple(types[0].shape[axis] for axis in axes), types[0].dtype)


def _infer_slice(node: Node, types: Sequence[TensorType]) -> TensorType:
    kept = [len(range(length)[part]) for length, part in zip(types[0].shape, _parts(node, types[0].shape), strict=True)]
    return TensorType(tuple(kept), types[0].dtype)


def _infer_expand(node: Node, types: Sequence[TensorType]) -> TensorType:
    shape = node.integers("shape")
    last = shape[len(shape) - len(types[0].shape) :]
    fits = len(shape) >= len(types[0].shape)
    if not fits or any(n not in (1, m) for n, m in zip(types[0].shape, last, strict=True)):
        raise GraphError(f"{types[0].shape} cannot be stretched to {shape}.", "repeat axes of length 1 only.")
    return TensorType(shape, types[0].dtype)


def _parts(node: Node, shape: Shape) -> list[slice]:
    """The slice along each axis."""
    starts, steps, stops = node.integers("starts"), node.integers("steps"), node.get("stops")
    if not isinstance(stops, tuple) or not len(starts) == len(steps) == len(stops) <= len(shape) or 0 in steps:
        raise GraphError(
            f"starts={starts}, stops={stops}, steps={steps} are no slices of {shape}.",
            "give a start, a stop (or None) and a step other than 0 for each of the first axes.",
        )
    parts = [slice(a, b if type(b) is int else None, s) for a, b, s in zip(starts, stops, steps, strict=True)]
    return parts + [slice(None)] * (len(shape) - len(parts))


def _slice_view(node: Node, source: View) -> View:
    ranges = [range(n)[part] for n, part in zip(source.shape, _parts(node, source.shape), strict=True)]
    return sliced(source, [r.start for r in ranges], [r.step for r in ranges], node.shape)


def _slice_values(node: Node, x: HostArray) -> HostArray:
    return x[tuple(_parts(node, x.shape))]


def _infer_view(node: Node, types: Sequence[TensorType]) -> TensorType:
    view = node_view(node)
    require_inside(view, types[0].size)
    return TensorType(view.shape, types[0].dtype)


def node_view(node: Node) -> View:
    """The index map of a `view` node."""
    view = attribute_view(node.get("view"))
    if view is None:
        raise GraphError(f"the view {node.name!r} says nothing.", "give it view=[shape, strides, offset].")
    return view


def is_alias(graph: Graph, node: Node) -> bool:
    """Whether a node is a view that shows all bytes of its source in order."""
    return node.op == "view" and node.type.size == graph[node.inputs[0]].type.size and is_dense(node_view(node))


def _reshape_values(node: Node, x: HostArray) -> HostArray:
    return x.reshape(node.shape)


def _transpose_values(node: Node, x: HostArray) -> HostArray:
    return x.transpose(node.integers("axes"))


def _expand_values(node: Node, x: HostArray) -> HostArray:
    return np.broadcast_to(x, node.shape)


def _view_values(node: Node, x: HostArray) -> HostArray:
    return read_through(node_view(node), x)


def _same_type(node: Node, types: Sequence[TensorType]) -> TensorType:
    return types[0]


def _same_values(node: Node, x: HostArray) -> HostArray:
    return x


def _same_view(node: Node, source: View) -> View:
    return source


def _reshape_view(node: Node, source: View) -> View | None:
    return reshaped(source, node.shape)


def _transpose_view(node: Node, source: View) -> View:
    return transposed(source, node.integers("axes"))


def _expand_view(node: Node, source: View) -> View:
    return expanded(source, node.shape)


RESHAPE: Final = Op("reshape", _infer_reshape, _reshape_values, "view", arity=(1, 1), view=_reshape_view)
TRANSPOSE: Final = Op("transpose", _infer_transpose, _transpose_values, "view", arity=(1, 1), view=_transpose_view)
SLICE: Final = Op("slice", _infer_slice, _slice_values, "view", arity=(1, 1), view=_slice_view)
EXPAND: Final = Op("expand", _infer_expand, _expand_values, "view", arity=(1, 1), view=_expand_view)
STOP_GRADIENT: Final = Op("stop_gradient", _same_type, _same_values, "view", arity=(1, 1), view=_same_view)
VIEW: Final = Op("view", _infer_view, _view_values, "view", arity=(1, 1))
"""What passes make of the others: the elements of a value that an index map names."""

OPS: Final = (RESHAPE, TRANSPOSE, SLICE, EXPAND, STOP_GRADIENT, VIEW)
