"""Formulas: the values of expressions in the order in which they are computed, in NumPy and in SPIR-V.

`_fusion` makes elementwise kernels of them; any template that has the functions of `ops.glsl` can take one into a hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.errors import InputError, LimitError
from dashi.kernels import _fused_abi as abi
from dashi.kernels._ops import OPS
from dashi.kernels.abi import Number
from dashi.kernels.expressions import Expression
from dashi.kernels.spirv._emit import Body
from dashi.types import DTYPES, HostArray


@dataclass(frozen=True)
class FormulaNode:
    """One value of a formula: what it is, and which earlier values it is made of."""

    kind: str
    parts: tuple[int, ...] = ()
    name: str = ""
    number: float = 0.0

    def __str__(self) -> str:
        if self.kind == "constant":
            return self.number.hex()
        return self.name or f"{self.kind}({', '.join(f'v{p}' for p in self.parts)})"


@dataclass(frozen=True)
class Formula:
    """Values in the order in which they are computed, each once, and which of them are the results."""

    nodes: tuple[FormulaNode, ...]
    results: tuple[int, ...]
    inputs: tuple[str, ...]
    scalars: tuple[str, ...]

    @property
    def text(self) -> str:
        """What is computed, line by line: equal formulas have equal text."""
        lines = [f"inputs {' '.join(self.inputs)}", f"scalars {' '.join(self.scalars)}"]
        lines += [f"v{number} = {node.kind} {node}" for number, node in enumerate(self.nodes)]
        return "\n".join([*lines, f"results {' '.join(f'v{r}' for r in self.results)}"])

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The types of 32 bits and more, but for long integers, that it has a meaning for."""
        return tuple(dtype for dtype in (*abi.FLOATS, *abi.INTEGERS) if self.serves(dtype))

    def serves(self, dtype: str) -> bool:
        """Whether every function and constant has a meaning for elements of a type."""
        ops = [OPS[node.kind] for node in self.nodes if node.kind in OPS]
        constants = [node.number for node in self.nodes if node.kind == "constant"]
        kind = DTYPES[dtype]
        if kind.is_float:
            return all(op.for_floats for op in ops)
        if kind.kind == "b":
            return all(op.for_truths for op in ops) and set(constants) <= {0.0, 1.0}
        limits = np.iinfo(str(kind.numpy))
        whole = all(float(c).is_integer() and limits.min <= c <= limits.max for c in constants)
        return whole and all(op.for_integers for op in ops)

    def evaluate(self, arrays: Mapping[str, HostArray], numbers: Mapping[str, Number]) -> list[HostArray]:
        """The results by NumPy: the references of the kernels, one after another."""
        dtype = next(iter(arrays.values())).dtype
        values: list[HostArray] = []
        for node in self.nodes:
            if node.kind == "argument":
                values.append(abi.canonical(np.atleast_1d(arrays[node.name])))
            elif node.kind in ("scalar", "constant"):
                number = numbers[node.name] if node.kind == "scalar" else node.number
                exact = number if dtype.kind == "f" else int(number)
                values.append(abi.canonical(np.full(1, exact, dtype)))
            else:
                values.append(OPS[node.kind].twin(*np.broadcast_arrays(*(values[p] for p in node.parts))))
        return [values[r] for r in self.results]


def formula(results: Sequence[Expression], inputs: Sequence[str] | None) -> Formula:
    """Numbers the values of expressions; what is written twice is computed once."""
    nodes: dict[tuple[Any, ...], int] = {}
    listed: list[FormulaNode] = []
    numbers: dict[int, int] = {}
    for expression in _in_order(results):
        parts = tuple(numbers[id(part)] for part in expression.parts)
        node = FormulaNode(expression.kind, parts, expression.name, expression.number)
        key = (node.kind, parts, node.name, node.number.hex())
        if key not in nodes:
            nodes[key] = len(listed)
            listed.append(node)
        numbers[id(expression)] = nodes[key]
    appearing, scalars = (tuple(n.name for n in listed if n.kind == kind) for kind in ("argument", "scalar"))
    order = appearing if inputs is None else tuple(inputs)
    if sorted(order) != sorted(appearing):
        raise InputError(
            f"the formula has the arguments {', '.join(appearing) or 'none'}, but `inputs` names {', '.join(order)}.",
            "name each argument of the formula once.",
        )
    for what, names, most in (("arguments", order, abi.INPUTS), ("scalars", scalars, abi.SCALARS)):
        if len(names) > most:
            raise LimitError(f"the formula has {len(names)} {what}; a fused kernel has at most {most}.", "split it.")
    if not order:
        raise InputError("the formula has no argument.", "make one with arguments(...), so that there is a shape.")
    return Formula(tuple(listed), tuple(numbers[id(r)] for r in results), order, scalars)


def _in_order(results: Iterable[Expression]) -> Iterator[Expression]:
    """Every expression after those that it is made of, left to right; no recursion, since chains may be long."""
    passed: set[int] = set()
    waiting = [(expression, False) for expression in reversed(list(results))]
    while waiting:
        expression, ready = waiting.pop()
        if id(expression) in passed:
            continue
        if ready:
            passed.add(id(expression))
            yield expression
        else:
            waiting.append((expression, True))
            waiting.extend((part, False) for part in reversed(expression.parts))


def _applied(body: Body, node: FormulaNode, values: Sequence[int], zeros: set[int]) -> int:
    """A function of values. No literal 0 is multiplied with: lavapipe takes the product for 0 whatever the other factor
    is, and x - x, which is 0 or NaN as x * 0 is, for what it is."""
    parts = [values[part] for part in node.parts]
    if node.kind == "mul" and not zeros.isdisjoint(node.parts):
        other = parts[node.parts[0] in zeros]
        return body.call("op_sub", other, other)
    if node.kind == "mod" and node.parts[1] in zeros:
        parts[1] = body.call("op_sub", parts[0], parts[0])
    return body.call(f"op_{node.kind}", *parts)


def emit(body: Body, computed: Formula, variant: str, kind: int, arguments: Sequence[int]) -> list[int]:
    """The results of a formula as values of a function's body: `arguments` are those of its inputs, in their order,
    `kind` is the type of numbers. The template has the functions of `ops.glsl` and `scalars.glsl`."""
    values: list[int] = []
    zeros: set[int] = set()
    consumed = {part for node in computed.nodes for part in node.parts}
    for number, node in enumerate(computed.nodes):
        if node.kind == "argument":
            values.append(arguments[computed.inputs.index(node.name)])
        elif node.kind == "scalar":
            values.append(body.call(f"scalar{computed.scalars.index(node.name)}"))
        elif node.kind == "constant":
            exact = node.number if DTYPES[variant].is_float else int(node.number)
            rounded = abi.canonical(np.full(1, exact, DTYPES[variant].numpy))
            values.append(body.constant(kind, [int(word) for word in rounded.view(np.uint32)]))
            if DTYPES[variant].is_float and not rounded.any():
                zeros.add(number)
        else:
            value = _applied(body, node, values, zeros)
            flush = number in consumed and not OPS[node.kind].flushed
            values.append(body.call("flushed", value) if flush else value)
    return [values[r] for r in computed.results]
