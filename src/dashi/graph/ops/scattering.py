"""Ops that take values to places that indices name: scatters by element, by tuples of indices, and of slices.

All become a list of flat places and one scatter of single elements (`put`). Values that come to one place are joined in
the order in which they come: the last one wins, or they are added and multiplied by tree64; past an end they are
ignored."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops._compositions import composition
from dashi.graph.ops._places import Index, axis_of, counted, flat_places, narrowed, resolved, widened
from dashi.graph.ops.elementwise import BOOL, one_dtype
from dashi.graph.ops.indexing import element_places, require_elements_of, require_tuples_of, tuple_places
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

Join = Literal["none", "add", "mul", "min", "max"]
_KERNELS: Final[dict[str, str]] = {
    "none": "scatter",
    "add": "scatter_add_sorted",
    "mul": "scatter_mul_sorted",
    "min": "scatter_min_sorted",
    "max": "scatter_max_sorted",
}
_INTEGERS: Final[dict[str, Any]] = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


@checked
def scatter_elements(base: Tensor, index: Tensor, values: Tensor, axis: int = 0, join: Join = "none") -> Tensor:
    """base with result[index[i, j, ...], j, ...] = values[i, j, ...] for axis 0, and alike for others; the last of
    several values wins, or `join` says how they and the element of the base become one: add, mul, min or max. Negative
    indices count from the end; values past it are ignored."""
    place = axis_of(base, axis)
    return base.builder.add(SCATTER_ELEMENTS, base, resolved(index, base.shape[place]), values, axis=place, join=join)


@checked
def scatter_nd(base: Tensor, index: Tensor, values: Tensor, join: Join = "none") -> Tensor:
    """base with result[index[i, 0], index[i, 1], ...] = values[i]: the last axis of the index has an index for each of
    the first axes of the base, and values are elements or slices. Joined as by `scatter_elements`."""
    width = index.shape[-1] if index.shape else 0
    lengths = base.shape[:width]
    known = resolved(index, lengths) if len(lengths) == width else index
    return base.builder.add(SCATTER_ND, base, known, values, join=join)


@checked
def scatter_add(base: Tensor, index: Tensor, values: Tensor, axis: int = 0) -> Tensor:
    """base with values[..., i, ...] added to result[..., index[i], ...] along an axis: what `gather` picks, the other
    way round. The axes of the index stand in `values` where the axis is in the base."""
    place = axis_of(base, axis)
    return base.builder.add(SCATTER_ADD, base, resolved(index, base.shape[place]), values, axis=place)


def _join(node: Node, kind: TensorType) -> str:
    join = node.get("join")
    if join not in _KERNELS or (join != "none" and kind.dtype == BOOL):
        raise GraphError(
            f"values of {kind.dtype} are not joined by {join!r}.", f"use one of {', '.join(_KERNELS)}; none for bool."
        )
    return str(join)


def _require_values(values: TensorType, shape: Sequence[int]) -> None:
    if values.shape != tuple(shape):
        raise GraphError(f"the values are of shape {values.shape}.", f"pass values of shape {tuple(shape)}.")


def _infer_elements(node: Node, types: Sequence[TensorType]) -> TensorType:
    base, index, values = types
    axis = node.integer("axis")
    if not 0 <= axis < len(base.shape):
        raise GraphError(f"there is no axis {axis} of {base}.", "count axes from 0.")
    require_elements_of(base.shape, index, axis)
    _require_values(values, index.shape)
    _join(node, one_dtype([base, values]))
    return base


def _expand_elements(node: Node, base: Tensor, index: Tensor, values: Tensor) -> Tensor:
    return put(base, element_places(base.shape, index, node.integer("axis")), values, _join(node, base.node.type))


def _infer_nd(node: Node, types: Sequence[TensorType]) -> TensorType:
    base, index, values = types
    width = require_tuples_of(base.shape, index, 0)
    _require_values(values, (*index.shape[:-1], *base.shape[width:]))
    _join(node, one_dtype([base, values]))
    return base


def _expand_nd(node: Node, base: Tensor, index: Tensor, values: Tensor) -> Tensor:
    return put(base, tuple_places(base.shape, index), values, _join(node, base.node.type))


def _infer_add(node: Node, types: Sequence[TensorType]) -> TensorType:
    base, index, values = types
    axis = node.integer("axis")
    if not 0 <= axis < len(base.shape) or index.dtype.name != "u32":
        raise GraphError(
            f"{index} does not name slices of {base} along axis {axis}.", "pass uint32, and an axis of it."
        )
    _require_values(values, (*base.shape[:axis], *index.shape, *base.shape[axis + 1 :]))
    if one_dtype([base, values]).dtype == BOOL:
        raise GraphError("truth values are not added.", "cast them to float32 or int32.")
    return base


def _expand_add(node: Node, base: Tensor, index: Tensor, values: Tensor) -> Tensor:
    axis = node.integer("axis")
    outer, rows, width = math.prod(base.shape[:axis]), base.shape[axis], math.prod(base.shape[axis + 1 :])
    offsets = [counted(base.builder, 3, 0, outer, rows * width), counted(base.builder, 3, 2, width, 1)]
    shape = (outer, math.prod(index.shape), width)
    places = flat_places(base.builder, shape, offsets, [Index(index.reshape(1, -1, 1), rows, width)])
    return put(base, places, values, "add")


def put(base: Tensor, places: Tensor, values: Tensor, join: str) -> Tensor:
    """base with values at flat places (uint32), joined."""
    lists = (widened(base).reshape(-1), places.reshape(-1), widened(values).reshape(-1))
    return narrowed(base.builder.add(PUT, *lists, join=join).reshape(*base.shape), base.node.type)


def _infer_put(node: Node, types: Sequence[TensorType]) -> TensorType:
    base, places, values = types
    if any(len(kind.shape) != 1 for kind in types) or places.dtype.name != "u32" or places.shape != values.shape:
        raise GraphError(f"{values} at {places} of {base} are no lists that fit.", "pass lists, the places of uint32.")
    _join(node, one_dtype([base, values]))
    return base


def _put_values(node: Node, base: HostArray, places: Any, values: HostArray) -> HostArray:
    join = str(node.get("join"))
    if join == "none" or base.dtype.kind == "f":
        return np.asarray(kernels.get(_KERNELS[join]).reference(base, places, values))
    result, inside = base.copy(), places < base.size
    at: Callable[..., None] = _INTEGERS[join].at
    at(result, places[inside].astype(np.int64), values[inside])
    return result


def _launch_put(node: Node, types: Sequence[TensorType]) -> Launch | None:
    kernel = kernels.get(_KERNELS[str(node.get("join"))])
    if types[0].dtype.name not in kernel.dtypes:
        return None
    return Launch(kernel, tuple(kind.shape for kind in types), node.shape)


PUT: Final = Op("put", _infer_put, _put_values, arity=(3, 3), launch=_launch_put, canonical=False)
"""A list with single elements anew: what scatters become."""
SCATTER_ELEMENTS: Final = composition("scatter_elements", _infer_elements, _expand_elements, (3, 3))
SCATTER_ND: Final = composition("scatter_nd", _infer_nd, _expand_nd, (3, 3))
SCATTER_ADD: Final = composition("scatter_add", _infer_add, _expand_add, (3, 3))
OPS: Final = (SCATTER_ELEMENTS, SCATTER_ND, SCATTER_ADD, PUT)
