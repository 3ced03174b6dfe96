"""Ops of order: places of the largest and smallest, sorting, the first few of many. NaN comes last, whichever way is
sorted, and first among maxima and minima; equal elements stay in the order in which they came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops._places import axis_of, widened
from dashi.graph.ops.elementwise import BOOL, cast, equal, is_narrow, less, logical_and, logical_or, not_equal, where
from dashi.graph.ops.indexing import gather_elements, take
from dashi.graph.ops.movement import expand, narrow, reverse, swap_with_last
from dashi.graph.ops.rows import sum_
from dashi.kernels.abi import Kernel
from dashi.kernels.expressions import arguments
from dashi.kernels.sort._order import sorted_places
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

_U32: Final = dtype_of("u32")
_WIDE_FLOATS: Final = ("f32", "f64")
_PLACES: Final = ("argmax", "argmin")
_SHORT: Final = 1024
"""Elements of rows that are sorted by comparing all pairs: two dispatches, where radix sorts take dozens."""
_MOST_PAIRS: Final = 1 << 24
"""Comparisons of all rows together: more take longer than a radix sort."""


@checked
def argmax(x: Tensor, axis: int, keepdims: bool = False, last: bool = False) -> Tensor:
    """The index (uint32) of the largest element along an axis: the first of equal ones, or the `last`; NaN is larger
    than all."""
    return _extreme("argmax", x, axis, keepdims, last)


@checked
def argmin(x: Tensor, axis: int, keepdims: bool = False, last: bool = False) -> Tensor:
    """The index (uint32) of the smallest element along an axis: the first of equal ones, or the `last`; NaN is smaller
    than all."""
    return _extreme("argmin", x, axis, keepdims, last)


@checked
def argsort(x: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """The indices (uint32) along an axis that put it in order; stable both ways, NaN last."""
    place = axis_of(x, axis)
    return _first(x, x.shape[place], place, descending)


@checked
def sort(x: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """The elements along an axis in order; NaN last."""
    return gather_elements(x, argsort(x, axis, descending), axis)


@checked
def top_k(x: Tensor, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along an axis, in order, and their indices (uint32): the first of equal
    ones, and NaN when numbers run out."""
    place = axis_of(x, axis)
    if not 0 <= k <= x.shape[place]:
        raise GraphError(
            f"{k} of the {x.shape[place]} elements of {x.name!r} along axis {place} are asked for.",
            f"pass a k of 0 to {x.shape[place]}.",
        )
    places = _first(x, k, place, largest)
    return gather_elements(x, places, place), places


def _first(x: Tensor, count: int, axis: int, descending: bool) -> Tensor:
    ordered = x.builder.apply("argsort", swap_with_last(x, axis), count=count, descending=descending)
    return swap_with_last(ordered, axis)


def _extreme(op: str, x: Tensor, axis: int, keepdims: bool, last: bool) -> Tensor:
    place = axis_of(x, axis)
    first = x.builder.apply(op, reverse(x, place) if last else x, axis=place, keepdims=keepdims)
    return (x.shape[place] - 1) - first if last else first


def _infer_extreme(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind, axis = types[0], node.integer("axis")
    if kind.dtype == BOOL or not 0 <= axis < len(kind.shape) or not kind.shape[axis]:
        raise GraphError(
            f"{node.op} is not defined for {kind} along axis {axis}.", "pass numbers, and an axis of some."
        )
    middle = (1,) if node.get("keepdims") else ()
    return TensorType((*kind.shape[:axis], *middle, *kind.shape[axis + 1 :]), _U32)


def _extreme_kernel(node: Node, rank: int) -> Kernel:
    (value,) = arguments("value")
    return kernels.reduce_rows(node.op, value, axes=node.integer("axis") - rank, inputs="value")


def _evaluate_extreme(node: Node, x: HostArray) -> HostArray:
    axis = node.integer("axis")
    if dtype_of(x.dtype).name in _WIDE_FLOATS:
        return np.asarray(_extreme_kernel(node, x.ndim).reference(np.ascontiguousarray(x)))
    if x.dtype == np.float16:
        return _evaluate_extreme(node, x.astype(np.float32))
    return (x.argmax(axis) if node.op == "argmax" else x.argmin(axis)).astype(np.uint32)


def _expand_extreme(node: Node, x: Tensor) -> Tensor | None:
    if x.dtype.name in _WIDE_FLOATS:
        return None
    if is_narrow(x.dtype):
        keepdims = bool(node.get("keepdims"))
        return x.builder.apply(node.op, cast(x, "f32"), axis=node.integer("axis"), keepdims=keepdims)
    return _first(x, 1, node.integer("axis"), node.op == "argmax").reshape(*node.shape)


def _launch_extreme(node: Node, types: Sequence[TensorType]) -> Launch | None:
    shape, axis = types[0].shape, node.integer("axis")
    return Launch(_extreme_kernel(node, len(shape)), (shape,), (*shape[:axis], *shape[axis + 1 :]))


def _infer_argsort(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind, count = types[0], node.integer("count")
    if not kind.shape or not 0 <= count <= kind.shape[-1]:
        raise GraphError(f"there are no {count} elements in order along the last axis of {kind}.", "pass fewer.")
    return TensorType((*kind.shape[:-1], count), _U32)


def _argsort_values(node: Node, x: HostArray) -> HostArray:
    rows = np.ascontiguousarray(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
    keys = rows.astype(np.float32) if x.dtype == np.float16 else rows.astype(np.uint8) if x.dtype == np.bool_ else rows
    places = [sorted_places(row, bool(node.get("descending"))) for row in keys]
    return np.asarray(places, np.uint32).reshape(x.shape)[..., : node.integer("count")]


def _expand_argsort(node: Node, x: Tensor) -> Tensor:
    count, descending, length = node.integer("count"), bool(node.get("descending")), x.shape[-1]
    rows = math.prod(x.shape[:-1])
    wide = cast(x, "f32") if is_narrow(x.dtype) or x.dtype == BOOL else x
    few = length <= _SHORT and rows * length * length <= _MOST_PAIRS
    if few and node.type.size and wide.dtype.name in _WIDE_FLOATS:
        return _by_pairs(wide.reshape(rows, length), count, descending).reshape(*node.shape)
    return _by_radix(widened(x).reshape(-1), rows, length, count, descending).reshape(*node.shape)


def _by_radix(keys: Tensor, rows: int, length: int, count: int, descending: bool) -> Tensor:
    """All keys are sorted, then, stably, by their rows."""
    builder = keys.builder
    places = builder.add(ORDER, keys, descending=descending)
    if rows > 1 and length:
        rows_of = builder.apply("quotient", places, length)
        places = take(places, builder.add(ORDER, rows_of, descending=False))
        starts = builder.constant(np.arange(rows, dtype=np.uint32).reshape(rows, 1) * np.uint32(length))
        places = places.reshape(rows, length) - starts
    return narrow(places.reshape(rows, length), 1, 0, count)


def _by_pairs(keys: Tensor, count: int, descending: bool) -> Tensor:
    """The rank of each key is how many come before it; then, which key has each rank. Sums of 0 and 1 are exact."""
    builder, (rows, length) = keys.builder, keys.shape
    kind = keys.dtype
    places = builder.constant(np.arange(length), kind)
    pairs = (rows, length, length)
    # All of one shape, and no arrays of truth values: so that it is the head of the sum, and no pair is stored.
    other, key = (expand(keys.reshape(rows, *shape), pairs) for shape in ((1, length), (length, 1)))
    beyond = less(key, other) if descending else less(other, key)
    key_is_nan = not_equal(key, key)
    before = logical_or(beyond, logical_and(key_is_nan, equal(other, other)))
    same = logical_or(equal(other, key), logical_and(key_is_nan, not_equal(other, other)))
    earlier = less(where(same, places, builder.constant(length, kind)), places.reshape(length, 1))
    one, zero = builder.constant(1, kind), builder.constant(0, kind)
    ranks = sum_(where(logical_or(before, earlier), one, zero), 2).reshape(rows, 1, length)
    wanted = builder.constant(np.arange(count).reshape(count, 1), kind)
    return cast(sum_(where(equal(ranks, wanted), places, zero), 2), "u32")


def _infer_order(node: Node, types: Sequence[TensorType]) -> TensorType:
    if len(types[0].shape) != 1:
        raise GraphError(f"{types[0]} is no list.", "reshape it to one axis.")
    return TensorType(types[0].shape, _U32)


def _order_values(node: Node, x: HostArray) -> HostArray:
    return sorted_places(x, bool(node.get("descending")))


def _launch_order(node: Node, types: Sequence[TensorType]) -> Launch | None:
    kernel = kernels.get("argsort")
    if types[0].dtype.name not in kernel.dtypes:
        return None
    return Launch(kernel, (node.shape,), node.shape, {"descending": int(bool(node.get("descending")))})


ARGSORT: Final = Op("argsort", _infer_argsort, _argsort_values, arity=(1, 1), expand=_expand_argsort)
ORDER: Final = Op("order", _infer_order, _order_values, arity=(1, 1), launch=_launch_order, canonical=False)
"""The places of a list in order, by radix: what argsort of long rows becomes."""
OPS: Final = (
    *(
        Op(name, _infer_extreme, _evaluate_extreme, arity=(1, 1), expand=_expand_extreme, launch=_launch_extreme)
        for name in _PLACES
    ),
    ARGSORT,
    ORDER,
)
