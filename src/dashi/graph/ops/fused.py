"""Chains of elementwise ops as one node: `map`, which the pass `fuse` makes.

Its attribute `body` has a line for each value: an op and its operands, which are `in0`, `in1`, ... (the node's inputs,
each read through its view in `views`), `v0`, `v1`, ... (the lines before) or numbers, `f32:0.5`. The last line is the
result. So a map is what its lines are, one after another, and has their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeVar

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph.ir import Attribute, Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops.elementwise import OPS as ELEMENTWISE
from dashi.graph.values import canonical
from dashi.graph.views import attribute_view, read_through, require_inside, view_attribute
from dashi.kernels import expressions
from dashi.kernels._ops import OPS as FUNCTIONS
from dashi.kernels.abi import Kernel, View
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

_BY_NAME: Final = {op.name: op for op in ELEMENTWISE}
_FLOATS: Final = ("f32", "f64")
_INTEGERS: Final = ("i32", "u32")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Line:
    """One value of a map: an op of operands."""

    op: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.op, *self.operands))


def fusable(node: Node, types: Sequence[TensorType]) -> bool:
    """Whether formulas of `dashi.kernels` have a function for a node."""
    names = {node.dtype.name, *(kind.dtype.name for kind in types)}
    if len(names) != 1 or not names <= {*_FLOATS, *_INTEGERS}:
        return False
    if node.op == "copy":
        return True
    function = FUNCTIONS.get(node.op)
    return function is not None and (names <= set(_FLOATS) or function.for_integers)


def number_operand(number: float, dtype: str) -> str:
    """A number in a line."""
    return f"{dtype}:{number!r}"


def map_attributes(lines: Sequence[Line], views: Sequence[View | None]) -> dict[str, object]:
    """The attributes of a map."""
    return {"body": [str(line) for line in lines], "views": [view_attribute(view) for view in views]}


def lines_of(node: Node) -> tuple[Line, ...]:
    """The lines of a map."""
    return tuple(_line(text) for text in _listed(node, "body"))


def views_of(node: Node) -> tuple[View | None, ...]:
    """How a map reads each of its inputs."""
    return tuple(attribute_view(view) for view in _listed(node, "views"))


def _listed(node: Node, attribute: str) -> tuple[Attribute, ...]:
    value = node.get(attribute)
    if not isinstance(value, tuple) or not value:
        raise GraphError(f"the map {node.name!r} has no {attribute}.", "give it a list.")
    return value


def _line(text: Attribute) -> Line:
    words = text.split() if isinstance(text, str) else []
    if len(words) < 2 or words[0] not in _BY_NAME:
        raise GraphError(f"{text!r} is no line of a map.", "write an elementwise op and its operands.")
    return Line(words[0], tuple(words[1:]))


def walk(
    lines: Sequence[Line],
    inputs: Sequence[_Value],
    number: Callable[[float, str], _Value],
    apply: Callable[[Line, Sequence[_Value]], _Value],
) -> _Value:
    """The last line's value, from those of the inputs."""
    values: dict[str, _Value] = {f"in{k}": value for k, value in enumerate(inputs)}
    for place, line in enumerate(lines):
        operands: list[_Value] = []
        for word in line.operands:
            if word not in values and ":" not in word:
                raise GraphError(
                    f"line {str(line)!r} names {word!r}, which is nothing.", "name inputs and lines before."
                )
            kind, _, digits = word.partition(":")
            operands.append(values[word] if word in values else number(_number(digits), kind))
        values[f"v{place}"] = apply(line, operands)
    return values[f"v{len(lines) - 1}"]


def _number(digits: str) -> float:
    try:
        return float(digits)
    except ValueError as error:
        raise GraphError(f"{digits!r} is no number.", "write it as Python does.") from error


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    views = views_of(node)
    if len(views) != len(types):
        raise GraphError(f"{len(views)} views for {len(types)} inputs.", "give each input a view, or null.")
    read: list[TensorType] = []
    for view, kind in zip(views, types, strict=True):
        if view is not None:
            require_inside(view, kind.size)
        read.append(kind if view is None else TensorType(view.shape, kind.dtype))

    def apply(line: Line, operands: Sequence[TensorType]) -> TensorType:
        return _BY_NAME[line.op].infer(Node(node.name, line.op, (), operands[0]), operands)

    return walk(lines_of(node), read, lambda _, kind: TensorType((), dtype_of(kind)), apply)


def _evaluate(node: Node, *values: HostArray) -> HostArray:
    def apply(line: Line, operands: Sequence[HostArray]) -> HostArray:
        kind = TensorType(operands[0].shape, dtype_of(operands[0].dtype))
        return _BY_NAME[line.op].evaluate(Node(node.name, line.op, (), kind), *operands)

    read = [read_through(view, value) for view, value in zip(views_of(node), values, strict=True)]
    return walk(lines_of(node), read, lambda number, kind: canonical(np.asarray(number, dtype_of(kind).numpy)), apply)


@cache
def _kernel(lines: tuple[Line, ...], views: tuple[View | None, ...]) -> Kernel:
    def apply(line: Line, operands: Sequence[expressions.Expression]) -> expressions.Expression:
        return operands[0] if line.op == "copy" else expressions.apply(line.op, *operands)

    names = [f"in{k}" for k in range(len(views))]
    result = walk(lines, expressions.arguments(" ".join(names)), lambda n, _: expressions.constant(n), apply)
    through = {name: view for name, view in zip(names, views, strict=True) if view is not None}
    return kernels.fuse(result, inputs=" ".join(names), views=through)


def _launch(node: Node, types: Sequence[TensorType]) -> Launch | None:
    kernel = _kernel(lines_of(node), views_of(node))
    return Launch(kernel, tuple(kind.shape for kind in types), node.shape)


MAP: Final = Op("map", _infer, _evaluate, launch=_launch)
OPS: Final = (MAP,)
