"""Formulas in nodes: lines of elementwise ops, in NumPy, as types, and as expressions of `dashi.kernels`.

A line is an op and its operands: names of values (`in0`, `value`, `v0` for the first line, ...) or numbers (`f32:0.5`).
The last line is the result. A formula is computed in one type; truth values are 0 and 1 of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from dashi.errors import GraphError
from dashi.graph._values import canonical
from dashi.graph.ir import Attribute, Node, TensorType, attributes_of
from dashi.graph.ops.elementwise import OPS as ELEMENTWISE
from dashi.graph.ops.elementwise import is_narrow
from dashi.kernels._ops import OPS as FUNCTIONS
from dashi.kernels._storage import COMPUTE
from dashi.kernels.expressions import Expression, apply, constant, not_equal
from dashi.types import DTYPES, HostArray
from dashi.types import dtype as dtype_of

_BY_NAME: Final = {op.name: op for op in ELEMENTWISE}
_MOVES: Final = ("copy", "cast")
"""Ops of formulas that are no functions of values."""
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class BodyLine:
    """One value of a formula: an op of operands; a cast says to which type."""

    op: str
    operands: tuple[str, ...]
    to: str = ""

    def __str__(self) -> str:
        return " ".join((f"{self.op}:{self.to}" if self.to else self.op, *self.operands))


def line_of(node: Node, operands: Sequence[str]) -> BodyLine:
    """A node as a line."""
    return BodyLine(node.op, tuple(operands), node.dtype.name if node.op == "cast" else "")


def number_operand(number: float, dtype: str) -> str:
    """A number in a line; truth values are 0 and 1."""
    return f"{dtype}:{+number!r}"


def parse_lines(body: Attribute) -> tuple[BodyLine, ...]:
    """The lines that an attribute lists."""
    if not isinstance(body, tuple):
        raise GraphError(f"{body!r} is no list of lines.", "give a list of text.")
    return tuple(_line(text) for text in body)


def _line(text: Attribute) -> BodyLine:
    words = (text.split() if isinstance(text, str) else []) or [""]
    op, _, to = words[0].partition(":")
    if len(words) < 2 or op not in _BY_NAME or (op not in FUNCTIONS and op not in _MOVES):
        raise GraphError(f"{text!r} is no line of a formula.", "write an elementwise op and its operands.")
    _BY_NAME[op].require_inputs(len(words) - 1)
    return BodyLine(op, tuple(words[1:]), to)


def fusable(node: Node, types: Sequence[TensorType]) -> bool:
    """Whether formulas can have a node: all its numbers are of one type, beside truth values, and have its function."""
    numbers = {kind.dtype.name for kind in (*types, node.type)} - {"bool"}
    if len(numbers) > 1 or not numbers <= COMPUTE.keys():
        return False
    if node.op in _MOVES:
        return True
    function = FUNCTIONS.get(node.op)
    return function is not None and (DTYPES[compute_type(numbers)].is_float or function.for_integers)


def compute_type(dtypes: Iterable[str]) -> str:
    """The type that a formula over values of one type of numbers, and truth values, is computed in."""
    return COMPUTE[min({*dtypes} - {"bool"}, default="u32")]


def walk(
    lines: Sequence[BodyLine],
    values: Mapping[str, _Value],
    number: Callable[[float, str], _Value],
    compute: Callable[[BodyLine, Sequence[_Value]], _Value],
) -> _Value:
    """The last line's value; that of `value` where there are no lines."""
    known = dict(values)
    for place, line in enumerate(lines):
        operands: list[_Value] = []
        for word in line.operands:
            if word not in known and ":" not in word:
                raise GraphError(f"line {str(line)!r} names {word!r}, which is nothing.", "name values before it.")
            kind, _, digits = word.partition(":")
            operands.append(known[word] if word in known else number(_number(digits), kind))
        known[f"v{place}"] = compute(line, operands)
    last = f"v{len(lines) - 1}" if lines else "value"
    if last not in known:
        raise GraphError("a formula without lines has no value.", "write at least one line.")
    return known[last]


def _number(digits: str) -> float:
    try:
        return float(digits)
    except ValueError as error:
        raise GraphError(f"{digits!r} is no number.", "write it as Python does.") from error


def _node(line: BodyLine, kind: TensorType) -> Node:
    return Node(str(line), line.op, (), kind, attributes_of({"to": line.to} if line.to else {}))


def infer_lines(lines: Sequence[BodyLine], values: Mapping[str, TensorType]) -> TensorType:
    """The type of a formula."""

    def compute(line: BodyLine, operands: Sequence[TensorType]) -> TensorType:
        kind = _BY_NAME[line.op].infer(_node(line, operands[0]), operands)
        if line.op in FUNCTIONS and line.op != "where" and is_narrow(kind.dtype):
            # What a formula computes is not made narrow again between its lines.
            raise GraphError(f"line {str(line)!r} computes in {kind.dtype}.", "cast, compute and cast back.")
        return kind

    return walk(lines, values, lambda _, kind: TensorType((), dtype_of(kind)), compute)


def evaluate_lines(lines: Sequence[BodyLine], values: Mapping[str, HostArray]) -> HostArray:
    """The values of a formula in NumPy: the definitions of its ops, one after another."""

    def compute(line: BodyLine, operands: Sequence[HostArray]) -> HostArray:
        types = [TensorType(o.shape, dtype_of(o.dtype)) for o in operands]
        kind = _BY_NAME[line.op].infer(_node(line, types[0]), types)
        return _BY_NAME[line.op].evaluate(_node(line, kind), *operands)

    return walk(lines, values, lambda n, kind: canonical(np.asarray(n, dtype_of(kind).numpy)), compute)


def express_lines(lines: Sequence[BodyLine], values: Mapping[str, Expression]) -> Expression:
    """A formula as an expression of kernels."""

    def compute(line: BodyLine, operands: Sequence[Expression]) -> Expression:
        if line.op == "cast" and line.to == "bool":
            return not_equal(operands[0], 0.0)
        return operands[0] if line.op in _MOVES else apply(line.op, *operands)

    return walk(lines, values, lambda n, _: constant(n), compute)
