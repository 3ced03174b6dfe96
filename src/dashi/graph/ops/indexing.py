"""Ops that pick elements by index: gather along an axis, element by element, and by tuples of indices.

All become a list of flat places and one gather of single elements (`take`); what lies past an end is 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import MOST_ELEMENTS, Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops._compositions import composition
from dashi.graph.ops._places import (
    Index,
    axis_of,
    counted,
    flat_places,
    narrowed,
    resolved,
    strides_of,
    widened,
)
from dashi.graph.ops.elementwise import minimum
from dashi.graph.ops.movement import expand, slice_
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


@checked
def gather(table: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """Slices of a table along an axis: result[..., i, ...] = table[..., index[i], ...]. The axes of the index stand
    where the axis was. Signed indices count from the end where they are negative; past the end are zeros."""
    place = axis_of(table, axis)
    attributes: dict[str, Any] = {"axis": place} if place else {}
    return table.builder.add(GATHER, table, resolved(index, table.shape[place]), **attributes)


@checked
def gather_elements(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """result[i, j, ...] = x[index[i, j, ...], j, ...] for axis 0, and alike for others: the result has the shape of the
    index, which reaches no farther than x along the other axes. Negative indices and those past the end as in
    `gather`."""
    place = axis_of(x, axis)
    return x.builder.add(GATHER_ELEMENTS, x, resolved(index, x.shape[place]), axis=place)


@checked
def gather_nd(x: Tensor, index: Tensor, batch_axes: int = 0) -> Tensor:
    """result[i, ...] = x[index[i, 0], index[i, 1], ...]: the last axis of the index has an index for each of the first
    axes of x behind `batch_axes`, which both have in common. Negative indices and those past an end as in `gather`."""
    width = index.shape[-1] if index.shape else 0
    lengths = x.shape[batch_axes : batch_axes + width]
    known = resolved(index, lengths) if len(lengths) == width else index
    return x.builder.add(GATHER_ND, x, known, batch_axes=batch_axes)


def take(x: Tensor, places: Tensor) -> Tensor:
    """The elements of x at flat places (uint32), in the shape of those; 0 past the end."""
    moved = x if x.dtype.name in kernels.get("gather").dtypes else widened(x)
    flat = x.builder.add(TAKE, moved.reshape(-1), places.reshape(-1))
    return narrowed(flat.reshape(*places.shape), x.node.type)


def _require_index(index: TensorType) -> None:
    if index.dtype.name != "u32":
        raise GraphError(f"the index is {index}.", "pass indices of uint32.")


def _node_axis(node: Node, rank: int) -> int:
    axis = node.integer("axis") if node.get("axis") is not None else 0
    if not 0 <= axis < rank:
        raise GraphError(f"there is no axis {axis} among {rank}.", "count axes from 0.")
    return axis


def _infer_gather(node: Node, types: Sequence[TensorType]) -> TensorType:
    table, index = types
    if index.dtype.name != "u32" or not table.shape:
        raise GraphError(f"{table} cannot be gathered by {index}.", "pass a table with rows, and an index of uint32.")
    axis = _node_axis(node, len(table.shape))
    return TensorType((*table.shape[:axis], *index.shape, *table.shape[axis + 1 :]), table.dtype)


def _gather(node: Node, table: HostArray, index: Any) -> HostArray:
    axis = _node_axis(node, table.ndim)
    front = np.moveaxis(table, axis, 0)
    inside = index < len(front)
    rows = np.zeros((*index.shape, *front.shape[1:]), table.dtype)
    rows[inside] = front[index[inside].astype(np.int64)]
    return np.moveaxis(rows, range(index.ndim), range(axis, axis + index.ndim))


def _expand_gather(node: Node, table: Tensor, index: Tensor) -> Tensor:
    """Flat places, outer rows width + index width + column, and a gather of single elements."""
    axis = _node_axis(node, len(table.shape))
    outer, rows, width = math.prod(table.shape[:axis]), table.shape[axis], math.prod(table.shape[axis + 1 :])
    builder = table.builder
    if outer == 1 and (rows + 1) * width <= MOST_ELEMENTS:
        # The minimum keeps what is past the end from wrapping round: rows width is past the end of all.
        columns = builder.constant(np.arange(width, dtype=np.uint32))
        chosen = expand(index.reshape(*index.shape, 1), (*index.shape, width))
        return take(table, minimum(chosen, rows) * width + columns).reshape(*node.shape)
    offsets = [counted(builder, 3, 0, outer, rows * width), counted(builder, 3, 2, width, 1)]
    chosen = Index(index.reshape(1, -1, 1), rows, width)
    places = flat_places(builder, (outer, math.prod(index.shape), width), offsets, [chosen])
    return take(table, places).reshape(*node.shape)


def element_places(shape: Shape, index: Tensor, axis: int) -> Tensor:
    """The flat places in an array of a shape of [i, index[i, j], j] (for axis 1), in the shape of the index."""
    rank, strides = len(shape), strides_of(shape)
    lengths = index.shape
    offsets = [
        counted(index.builder, rank, a, lengths[a], strides[a]) for a in range(rank) if a != axis and lengths[a] != 1
    ]
    return flat_places(index.builder, lengths, offsets, [Index(index, shape[axis], strides[axis])])


def require_elements_of(shape: Shape, index: TensorType, axis: int) -> None:
    """An error where an index, one for each element, does not lie within an array of a shape."""
    _require_index(index)
    others = [a for a in range(len(shape)) if a != axis]
    if len(index.shape) != len(shape) or any(index.shape[a] > shape[a] for a in others):
        raise GraphError(
            f"an index of shape {index.shape} does not lie within {shape}.",
            f"give it as many axes, and no greater lengths but along axis {axis}.",
        )


def _infer_gather_elements(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, index = types
    require_elements_of(x.shape, index, _node_axis(node, len(x.shape)))
    return TensorType(index.shape, x.dtype)


def _expand_gather_elements(node: Node, x: Tensor, index: Tensor) -> Tensor:
    return take(x, element_places(x.shape, index, _node_axis(node, len(x.shape))))


def require_tuples_of(shape: Shape, index: TensorType, batch_axes: int) -> int:
    """How many axes of an array of a shape, behind the batch, tuples of indices name; an error where they cannot."""
    _require_index(index)
    width = index.shape[-1] if index.shape else -1
    inside = 0 <= batch_axes < len(index.shape) and 0 <= width <= len(shape) - batch_axes
    if not inside or index.shape[:batch_axes] != shape[:batch_axes]:
        raise GraphError(
            f"tuples of indices of shape {index.shape} name nothing in {shape} behind {batch_axes} axes.",
            "give them the batch axes first, and an index for each axis last.",
        )
    return width


def tuple_places(shape: Shape, index: Tensor, batch_axes: int = 0) -> Tensor:
    """The flat places of the slices of an array that tuples of indices name: the index without its last axis, then the
    axes of a slice as one."""
    builder, strides = index.builder, strides_of(shape)
    width, outer = index.shape[-1], index.shape[:-1]
    rank, slices = len(outer) + 1, math.prod(shape[batch_axes + width :])
    offsets = [counted(builder, rank, a, shape[a], strides[a]) for a in range(batch_axes)]
    offsets += [counted(builder, rank, rank - 1, slices, 1)]
    starts = [0] * len(outer)
    chosen = [slice_(index, [*starts, k], [*outer, k + 1]) for k in range(width)]
    indices = [Index(c, shape[batch_axes + k], strides[batch_axes + k]) for k, c in enumerate(chosen)]
    return flat_places(builder, (*outer, slices), offsets, indices)


def _infer_gather_nd(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, index = types
    batch_axes = node.integer("batch_axes")
    width = require_tuples_of(x.shape, index, batch_axes)
    return TensorType((*index.shape[:-1], *x.shape[batch_axes + width :]), x.dtype)


def _expand_gather_nd(node: Node, x: Tensor, index: Tensor) -> Tensor:
    return take(x, tuple_places(x.shape, index, node.integer("batch_axes"))).reshape(*node.shape)


def _infer_take(node: Node, types: Sequence[TensorType]) -> TensorType:
    if len(types[0].shape) != 1 or len(types[1].shape) != 1 or types[1].dtype.name != "u32":
        raise GraphError(f"{types[0]} at {types[1]} is no list at places.", "pass lists, the second of uint32.")
    return TensorType(types[1].shape, types[0].dtype)


def _take_values(node: Node, x: HostArray, places: HostArray) -> HostArray:
    return np.asarray(kernels.get("gather").reference(x, places))


def _launch_take(node: Node, types: Sequence[TensorType]) -> Launch | None:
    return Launch(kernels.get("gather"), (types[0].shape, types[1].shape), node.shape)


GATHER: Final = Op("gather", _infer_gather, _gather, arity=(2, 2), expand=_expand_gather, canonical=False)
GATHER_ELEMENTS: Final = composition("gather_elements", _infer_gather_elements, _expand_gather_elements, (2, 2))
GATHER_ND: Final = composition("gather_nd", _infer_gather_nd, _expand_gather_nd, (2, 2))
TAKE: Final = Op("take", _infer_take, _take_values, arity=(2, 2), launch=_launch_take, canonical=False)
"""Single elements of a list: what gathers become."""
OPS: Final = (GATHER, GATHER_ELEMENTS, GATHER_ND, TAKE)
