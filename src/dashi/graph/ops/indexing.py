"""Ops that move whole elements: gather, concat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph.ir import MOST_ELEMENTS, Node, TensorType
from dashi.graph.op import Copies, Launch, Op
from dashi.graph.ops.elementwise import minimum, one_dtype
from dashi.graph.ops.movement import expand
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


def gather(table: Tensor, index: Tensor) -> Tensor:
    """Rows of a table: result[i, ...] = table[index[i], ...]; zeros where the index (uint32) is past the end."""
    return table.builder.add(GATHER, table, index)


def concat(parts: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Values one behind another along an axis."""
    return parts[0].builder.add(CONCAT, *parts, axis=axis + len(parts[0].shape) if axis < 0 else axis)


def _infer_gather(node: Node, types: Sequence[TensorType]) -> TensorType:
    table, index = types
    if index.dtype.name != "u32" or not table.shape:
        raise GraphError(f"{table} cannot be gathered by {index}.", "pass a table with rows, and an index of uint32.")
    return TensorType((*index.shape, *table.shape[1:]), table.dtype)


def _gather(node: Node, table: HostArray, index: Any) -> HostArray:
    inside = index < len(table)
    rows = np.zeros((*index.shape, *table.shape[1:]), table.dtype)
    rows[inside] = table[index[inside].astype(np.int64)]
    return rows


def _expand_gather(node: Node, table: Tensor, index: Tensor) -> Tensor:
    """Flat places, min(index, rows) width + column, and a gather of single elements. The minimum keeps what is past
    the end from wrapping round."""
    width = math.prod(table.shape[1:])
    builder = table.builder
    rows = expand(index.reshape(*index.shape, 1), (*index.shape, width))
    columns = builder.constant(np.arange(width, dtype=np.uint32))
    places = minimum(rows, table.shape[0]) * width + columns
    flat = builder.add(TAKE, table.reshape(-1), places.reshape(-1))
    return flat.reshape(*node.shape)


def can_expand(table: TensorType) -> bool:
    """Whether the places of all elements, and those past the end, can be counted in 32 bits, by kernels that exist."""
    width = math.prod(table.shape[1:])
    known = table.dtype.name in kernels.get("gather").dtypes
    return known and width > 0 and (table.shape[0] + 1) * width <= MOST_ELEMENTS


def _infer_take(node: Node, types: Sequence[TensorType]) -> TensorType:
    if len(types[0].shape) != 1 or len(types[1].shape) != 1 or types[1].dtype.name != "u32":
        raise GraphError(f"{types[0]} at {types[1]} is no list at places.", "pass lists, the second of uint32.")
    return TensorType(types[1].shape, types[0].dtype)


def _launch_take(node: Node, types: Sequence[TensorType]) -> Launch | None:
    return Launch(kernels.get("gather"), (types[0].shape, types[1].shape), node.shape)


def _infer_concat(node: Node, types: Sequence[TensorType]) -> TensorType:
    axis, first = node.integer("axis"), one_dtype(types)
    others = {t.shape[:axis] + t.shape[axis + 1 :] for t in types}
    if not 0 <= axis < len(first.shape) or len(others) != 1 or len({len(t.shape) for t in types}) != 1:
        raise GraphError(
            f"{', '.join(map(str, types))} do not fit along axis {axis}.", "let all other lengths be equal."
        )
    length = sum(t.shape[axis] for t in types)
    return TensorType((*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype)


def _concat(node: Node, *parts: HostArray) -> HostArray:
    return np.concatenate(parts, axis=node.integer("axis"))


def _expand_concat(node: Node, *parts: Tensor) -> Tensor:
    """The axis in front, lists joined, and the axis back in its place, which costs nothing: it is a view."""
    axis, rank = node.integer("axis"), len(node.shape)
    order = (axis, *(a for a in range(rank) if a != axis))
    joined = parts[0].builder.add(JOIN, *(part.transpose(*order).reshape(-1) for part in parts))
    turned = joined.reshape(*(node.shape[a] for a in order))
    return turned.transpose(*(order.index(a) for a in range(rank)))


def _infer_join(node: Node, types: Sequence[TensorType]) -> TensorType:
    if any(len(kind.shape) != 1 for kind in types):
        raise GraphError("only lists are joined.", "reshape values to one axis.")
    return TensorType((sum(kind.size for kind in types),), one_dtype(types).dtype)


def _join(node: Node, *parts: HostArray) -> HostArray:
    return np.concatenate(parts)


def _launch_join(node: Node, types: Sequence[TensorType]) -> Copies:
    return Copies(tuple(accumulate((kind.size for kind in types[:-1]), initial=0)))


JOIN: Final = Op("join", _infer_join, _join, arity=(1, None), launch=_launch_join, canonical=False)
"""Lists one behind another: what concat becomes."""
GATHER: Final = Op("gather", _infer_gather, _gather, arity=(2, 2), expand=_expand_gather, canonical=False)
TAKE: Final = Op("take", _infer_take, _gather, arity=(2, 2), launch=_launch_take, canonical=False)
"""Single elements of a list: what a gather of rows becomes."""
CONCAT: Final = Op("concat", _infer_concat, _concat, arity=(1, None), expand=_expand_concat, canonical=False)
OPS: Final = (GATHER, TAKE, CONCAT, JOIN)
