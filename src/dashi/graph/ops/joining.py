"""Concat: values one behind another along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Copies, Op
from dashi.graph.ops._places import axis_of
from dashi.graph.ops.elementwise import one_dtype
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


@checked
def concat(parts: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Values one behind another along an axis."""
    if not parts:
        raise GraphError("there are no parts to join.", "pass one or more.")
    return parts[0].builder.add(CONCAT, *parts, axis=axis_of(parts[0], axis))


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
CONCAT: Final = Op("concat", _infer_concat, _concat, arity=(1, None), expand=_expand_concat, canonical=False)
OPS: Final = (CONCAT, JOIN)
