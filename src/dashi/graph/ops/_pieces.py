"""What the pass `cut` makes of values that a device cannot bind whole: windows into them, and wholes made of pieces.

Neither costs a step: a window is bytes of its source, a piece is computed where it lies in the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Op
from dashi.graph.ops.elementwise import one_dtype
from dashi.types import HostArray


def _infer_window(node: Node, types: Sequence[TensorType]) -> TensorType:
    first, count = node.integer("first"), node.integer("count")
    if first < 0 or count < 0 or first + count > types[0].size:
        raise GraphError(f"{count} elements from {first} on are not within {types[0]}.", "keep the window inside.")
    return TensorType((count,), types[0].dtype)


def _window(node: Node, x: HostArray) -> HostArray:
    first = node.integer("first")
    return x.reshape(-1)[first : first + node.integer("count")]


def _infer_pieces(node: Node, types: Sequence[TensorType]) -> TensorType:
    shape, kind = node.integers("shape"), one_dtype(types)
    if sum(t.size for t in types) != math.prod(shape):
        raise GraphError(f"{', '.join(map(str, types))} are not all of {shape}.", "leave no element out.")
    return TensorType(shape, kind.dtype)


def _pieces(node: Node, *parts: HostArray) -> HostArray:
    return np.concatenate([part.reshape(-1) for part in parts]).reshape(node.shape)


WINDOW: Final = Op("window", _infer_window, _window, arity=(1, 1), canonical=False)
"""Elements one behind another of a value, as a list."""
PIECES: Final = Op("pieces", _infer_pieces, _pieces, arity=(1, None), canonical=False)
"""A value whose elements are those of its inputs, one behind another in C order."""
OPS: Final = (WINDOW, PIECES)
IN_PLACE: Final = ("view", WINDOW.name, PIECES.name)
"""Ops that no step computes."""
