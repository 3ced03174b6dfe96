"""Leaves: inputs, params, constants, and params in the order in which their kernels read them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph._values import as_stored, canonical, canonical_input
from dashi.graph._views import attribute_view, read_through, require_inside
from dashi.graph.ir import Node, TensorType, attributes_of, tensor_type
from dashi.graph.op import Op
from dashi.types import DType, HostArray
from dashi.types import dtype as dtype_of

_LARGEST: Final = 1 << 53
"""Formulas hold numbers as fp64."""
_MOST_BYTES: Final = 1 << 30
"""Bytes of one constant: larger ones would take a text of one line to fill memory."""


def constant_node(name: str, values: HostArray, dtype: DType | None = None) -> Node:
    """A constant: one number where all elements are the same, else its bytes. Its type is that of the array, unless
    `dtype` names another that has such values on the host: bf16."""
    kind = tensor_type(values.shape, dtype or values.dtype)
    _require_small(name, kind)
    array = canonical_input(values, kind.dtype)
    flat = array.reshape(-1)
    if kind.size and (flat.view(np.uint8).reshape(kind.size, -1) == flat[:1].view(np.uint8)).all():
        number = flat[0].item()
        if number == number and abs(number) != float("inf"):
            return Node(name, "constant", (), kind, attributes_of({"value": number}))
    data = base64.b64encode(kind.dtype.to_stored(array).tobytes()).decode("ascii")
    return Node(name, "constant", (), kind, attributes_of({"data": data}))


def constant_values(node: Node) -> HostArray:
    """The values of a constant."""
    number = _checked_number(node)
    if number is not None:
        return canonical(np.full(node.shape, number, node.dtype.numpy))
    stored = np.frombuffer(_bytes(node), np.uint8)
    return canonical(node.dtype.from_bytes(stored).reshape(node.shape))


def require_constant(node: Node) -> Node:
    """The constant itself, if it has values of its type. No memory is taken for a number that all elements are."""
    if _checked_number(node) is None:
        _bytes(node)
    return node


def _checked_number(node: Node) -> int | float | None:
    """The number that all elements of a constant are; None where its attribute is no such number."""
    _require_small(node.name, node.type)
    number = node.get("value")
    if len(node.attributes) != 1 or not isinstance(number, (int, float)):
        return None
    _require_exact(node, number)
    return number


def _bytes(node: Node) -> bytes:
    data = node.get("data")
    try:
        raw = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except ValueError:  # no base64, or not ASCII
        raw = b""
    if not isinstance(data, str) or len(raw) != node.type.nbytes or len(node.attributes) != 1:
        raise GraphError(
            f"the constant {node.name!r} has no values for {node.type}.",
            "give it a number as `value`, or all its bytes in base64 as `data`.",
        )
    return raw


def _require_small(name: str, kind: TensorType) -> None:
    if kind.nbytes > _MOST_BYTES:
        raise GraphError(
            f"the constant {name!r} ({kind}) has {kind.nbytes} bytes.",
            f"use at most {_MOST_BYTES}: make it a param, or expand a number.",
        )


def uniform(node: Node) -> int | float | None:
    """The number that all elements of a constant are; None where they differ, where formulas could not hold it, or it
    is no constant."""
    number = node.get("value")
    if node.op != "constant" or len(node.attributes) != 1 or not isinstance(number, (int, float)):
        return None
    _require_exact(node, number)
    return number if abs(number) <= _LARGEST else None


def _require_exact(node: Node, number: float) -> None:
    with np.errstate(all="ignore"):
        element = as_stored(np.asarray(number).astype(node.dtype.numpy), node.dtype)
    if element.item() != number:
        raise GraphError(f"the constant {node.name!r} is {number!r}, which no {node.dtype} is.", "round it first.")


def packed_values(node: Node, values: HostArray) -> HostArray:
    """A param in the order, and the type, in which its kernel reads it."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(read_through(attribute_view(node.get("view")), values)).astype(node.dtype.numpy)


def _infer_leaf(node: Node, types: Sequence[TensorType]) -> TensorType:
    return node.type


def _infer_packed(node: Node, types: Sequence[TensorType]) -> TensorType:
    view = attribute_view(node.get("view"))
    if view is None:
        raise GraphError("a packed param has no view.", "say which elements of the param it consists of.")
    require_inside(view, types[0].size)
    to = node.get("to")
    dtype = types[0].dtype if to is None else dtype_of(str(to))
    if dtype != types[0].dtype and not (dtype.is_float and types[0].dtype.is_float):
        raise GraphError(f"{types[0].dtype} is not packed as {dtype}.", "keep its type, or name another float.")
    return TensorType(view.shape, dtype)


def _no_evaluation(node: Node, *values: HostArray) -> HostArray:
    raise GraphError(f"{node.name!r} is a leaf: nothing computes it.", "pass its values.")


_LEAVES: Final = ("input", "param", "constant")
PACKED: Final = Op("packed", _infer_packed, packed_values, arity=(1, 1))
OPS: Final = (*(Op(name, _infer_leaf, _no_evaluation, "leaf", arity=(0, 0)) for name in _LEAVES), PACKED)
