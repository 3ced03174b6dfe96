"""Contractions over any axes, and products of rows with the matrix of their group: written as products of matrices,
whose sums are tree64 over what is contracted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType, tensor_type
from dashi.graph.op import Launch, Op
from dashi.graph.ops._compositions import composition
from dashi.graph.ops.elementwise import one_dtype
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

Axes = tuple[Sequence[int], Sequence[int]]


@checked
def dot_general(a: Tensor, b: Tensor, contracting: Axes, batch: Axes = ((), ())) -> Tensor:
    """Sums of products over the contracting axes of a and of b, pair by pair, for each place along their batch axes.
    The axes of the result are those of the batch, then the others of a, then the others of b. Sums are tree64 over the
    contracting axes in the order in which they are named, the last the fastest."""
    named = {"a": _from_front(contracting[0], a), "b": _from_front(contracting[1], b)}
    batches = {"a": _from_front(batch[0], a), "b": _from_front(batch[1], b)}
    return a.builder.add(
        DOT, a, b, contract_a=named["a"], contract_b=named["b"], batch_a=batches["a"], batch_b=batches["b"]
    )


@checked
def grouped_matmul(x: Tensor, w: Tensor, group: Tensor) -> Tensor:
    """x[i] w[group[i]] for x (m, k), w (groups, k, n) and group (m,) of uint32: each row times the matrix of its group
    (its expert). A row of a group that there is not is 0. Packed matrices are read packed where w is the transpose of
    (groups, n, k): `packed_param(...).transpose(0, 2, 1)`."""
    return x.builder.add(GROUPED, x, w, group)


def _from_front(axes: Sequence[int], x: Tensor) -> tuple[int, ...]:
    return tuple(axis + len(x.shape) if axis < 0 else axis for axis in axes)


def _axes(node: Node, a: Shape, b: Shape) -> list[list[tuple[int, ...]]]:
    """Batch, free and contracting axes of a, and of b."""
    listed: list[list[tuple[int, ...]]] = []
    for name, shape in (("a", a), ("b", b)):
        contract, batch = node.integers(f"contract_{name}"), node.integers(f"batch_{name}")
        used = contract + batch
        if len(set(used)) != len(used) or any(not 0 <= axis < len(shape) for axis in used):
            raise GraphError(f"{used} are no different axes of {shape}.", "name each at most once, from 0 on.")
        listed.append([batch, tuple(axis for axis in range(len(shape)) if axis not in used), contract])
    return listed


def _infer_dot(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind, (a, b) = one_dtype(types), (t.shape for t in types)
    if kind.dtype.name not in ("f32", "f64"):
        raise GraphError(f"there is no product of {kind.dtype}.", "cast to float32.")
    left, right = _axes(node, a, b)
    for what, k in (("batch", 0), ("contracting", 2)):
        sizes = [a[axis] for axis in left[k]], [b[axis] for axis in right[k]]
        if sizes[0] != sizes[1]:
            raise GraphError(f"{what} axes of {sizes[0]} and {sizes[1]} do not fit.", "pair axes of one length.")
    shape = [a[axis] for axis in left[0] + left[1]] + [b[axis] for axis in right[1]]
    return tensor_type(shape, kind.dtype)


def _expand_dot(node: Node, a: Tensor, b: Tensor) -> Tensor:
    (batch_a, free_a, sum_a), (batch_b, free_b, sum_b) = _axes(node, a.shape, b.shape)
    batch = [a.shape[axis] for axis in batch_a]
    m, n, k = (
        math.prod(s[axis] for axis in axes) for s, axes in ((a.shape, free_a), (b.shape, free_b), (a.shape, sum_a))
    )
    left = a.transpose(*batch_a, *free_a, *sum_a) if a.shape else a
    right = b.transpose(*batch_b, *sum_b, *free_b) if b.shape else b
    product = left.reshape(*batch, m, k) @ right.reshape(*batch, k, n)
    return product.reshape(*node.shape)


def _infer_grouped(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, w, group = types
    kind = one_dtype(types[:2])
    if kind.dtype.name not in ("f32", "f64") or group.dtype.name != "u32":
        raise GraphError(f"{kind.dtype} in groups of {group.dtype}.", "pass floats, and groups of uint32.")
    if len(x.shape) != 2 or len(w.shape) != 3 or x.shape[1] != w.shape[1] or group.shape != x.shape[:1]:
        raise GraphError(
            f"rows {x.shape}, matrices {w.shape} and groups {group.shape} do not fit.",
            "pass (m, k), (groups, k, n) and (m,).",
        )
    if not w.shape[0]:
        raise GraphError("there are no groups.", "pass a matrix for one group at least.")
    return TensorType((x.shape[0], w.shape[2]), kind.dtype)


def _evaluate_grouped(node: Node, x: HostArray, w: HostArray, group: HostArray) -> HostArray:
    return np.asarray(kernels.get("gemv_grouped").reference(x, w, group))


def _launch_grouped(node: Node, types: Sequence[TensorType]) -> Launch:
    return Launch(kernels.get("gemv_grouped"), tuple(kind.shape for kind in types), node.shape)


DOT: Final = composition("dot_general", _infer_dot, _expand_dot, (2, 2))
GROUPED: Final = Op("grouped_matmul", _infer_grouped, _evaluate_grouped, arity=(3, 3), launch=_launch_grouped)
OPS: Final = (DOT, GROUPED)
