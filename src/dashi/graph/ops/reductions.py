"""Reductions over axes: sums in the order tree64; maxima and minima, where NaN wins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph.builder import Tensor
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Op
from dashi.kernels.portable import canon, divide, sum64
from dashi.types import HostArray, Shape


def sum_(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Sum over axes."""
    return _reduce(SUM, x, axes, keepdims)


def mean(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Sum over axes, divided by how many elements it has."""
    return _reduce(MEAN, x, axes, keepdims)


def max_(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Maximum over axes; NaN wins."""
    return _reduce(MAX, x, axes, keepdims)


def min_(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Minimum over axes; NaN wins."""
    return _reduce(MIN, x, axes, keepdims)


def _reduce(op: Op, x: Tensor, axes: Sequence[int] | int, keepdims: bool) -> Tensor:
    return x.builder.add(op, x, axes=positive(axes, x.shape), keepdims=keepdims)


def positive(axes: Sequence[int] | int, shape: Shape) -> tuple[int, ...]:
    """Axes counted from the front, in order."""
    listed = [axes] if isinstance(axes, int) else list(axes)
    return tuple(sorted(axis + len(shape) if axis < 0 else axis for axis in listed))


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    axes, shape = node.integers("axes"), types[0].shape
    if types[0].dtype.name not in ("f32", "f64"):
        raise GraphError(f"{node.op} is not defined for {types[0].dtype}.", "cast to float32.")
    if len(set(axes)) != len(axes) or any(not 0 <= axis < len(shape) for axis in axes):
        raise GraphError(f"{axes} are no axes of {shape}, each once.", "count them from 0.")
    if node.op != "sum" and math.prod(shape[axis] for axis in axes) == 0:
        raise GraphError(f"no elements have no {node.op}.", "reduce over axes that are not empty.")
    kept = [1 if axis in axes else n for axis, n in enumerate(shape) if axis not in axes or node.get("keepdims")]
    return TensorType(tuple(kept), types[0].dtype)


def rows_of(x: HostArray, axes: Sequence[int]) -> HostArray:
    """What is reduced, in index order, as the last axis."""
    moved = np.moveaxis(x, axes, range(x.ndim - len(axes), x.ndim))
    kept = moved.shape[: x.ndim - len(axes)]
    return np.ascontiguousarray(moved).reshape(*kept, math.prod(moved.shape[len(kept) :]))


def _sum(node: Node, x: HostArray) -> HostArray:
    return canon(sum64(rows_of(x, node.integers("axes")))).reshape(node.shape)


def _mean(node: Node, x: HostArray) -> HostArray:
    count = math.prod(x.shape[axis] for axis in node.integers("axes"))
    return divide(_sum(node, x), np.asarray(count, x.dtype))


def _expand_mean(node: Node, x: Tensor) -> Tensor:
    axes = node.integers("axes")
    total = sum_(x, axes, bool(node.get("keepdims")))
    return total / float(math.prod(x.shape[axis] for axis in axes))


def _max(node: Node, x: HostArray) -> HostArray:
    return rows_of(x, node.integers("axes")).max(axis=-1).reshape(node.shape)


def _min(node: Node, x: HostArray) -> HostArray:
    return rows_of(x, node.integers("axes")).min(axis=-1).reshape(node.shape)


SUM: Final = Op("sum", _infer, _sum)
MEAN: Final = Op("mean", _infer, _mean, expand=_expand_mean)
MAX: Final = Op("max", _infer, _max)
MIN: Final = Op("min", _infer, _min)
OPS: Final = (SUM, MEAN, MAX, MIN)
