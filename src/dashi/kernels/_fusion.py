"""Fused kernels: formulas become one dispatch, by filling a template with calls to functions that it holds.

The NumPy twin of a fused kernel is the composition of the twins; the device gives the bits of the kernels one after
another. `_fused_abi` has the interface and the plan, `spirv/_emit` the machinery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np

from dashi.errors import InputError, LimitError
from dashi.kernels import _build as build
from dashi.kernels import _fused_abi as abi
from dashi.kernels._ops import OPS
from dashi.kernels._registry import templates
from dashi.kernels._validate import validate
from dashi.kernels.abi import Call, Kernel, Limits, Number, Operand, Plan, Scalar, View
from dashi.kernels.expressions import Expression
from dashi.kernels.patterns import HEAVY, cases
from dashi.kernels.spirv._emit import Emission, Template
from dashi.kernels.spirv._module import parse
from dashi.types import DTYPES, Cost, HostArray, Shape

FAMILY: Final = "fused"
_TEMPLATE: Final = "fused"
_SHAPES: Final[tuple[Shape, ...]] = ((1,), (63,), (64,), (257,), (5, 7), (3, 4, 11), (4099,))
_EXAMPLES: Final = (1.5, -0.3, 1.0e-30, 0.0)
_WHOLE_EXAMPLES: Final = (3, 1, 0)


@dataclass(frozen=True)
class Node:
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

    nodes: tuple[Node, ...]
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
        """The element types that it has a meaning for: integers, where every function and constant has."""
        ops = all(OPS[node.kind].for_integers for node in self.nodes if node.kind in OPS)
        constants = [node.number for node in self.nodes if node.kind == "constant"]

        def holds(dtype: str) -> bool:
            limits = np.iinfo(str(DTYPES[dtype].numpy))
            return all(float(c).is_integer() and limits.min <= c <= limits.max for c in constants)

        return (*abi.FLOATS, *(dtype for dtype in abi.INTEGERS if ops and holds(dtype)))

    def evaluate(self, arrays: Mapping[str, HostArray], numbers: Mapping[str, Number]) -> list[HostArray]:
        """The results by NumPy: the references of the kernels, one after another."""
        dtype = next(iter(arrays.values())).dtype
        values: list[HostArray] = []
        for node in self.nodes:
            if node.kind == "argument":
                values.append(abi.canonical(np.atleast_1d(arrays[node.name])))
            elif node.kind in ("scalar", "constant"):
                number = numbers[node.name] if node.kind == "scalar" else node.number
                values.append(abi.canonical(np.full(1, number, dtype)))
            else:
                values.append(OPS[node.kind].twin(*np.broadcast_arrays(*(values[p] for p in node.parts))))
        return [values[r] for r in self.results]


def formula(results: Sequence[Expression], inputs: Sequence[str] | None) -> Formula:
    """Numbers the values of expressions; what is written twice is computed once."""
    nodes: dict[tuple[Any, ...], int] = {}
    listed: list[Node] = []
    numbers: dict[int, int] = {}
    for expression in _in_order(results):
        parts = tuple(numbers[id(part)] for part in expression.parts)
        node = Node(expression.kind, parts, expression.name, expression.number)
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


@dataclass(frozen=True)
class Emitted:
    """The binaries of a fused kernel, made when they are asked for: some milliseconds each."""

    formula: Formula
    key: str

    def words(self, shader: str, variant: str) -> bytes:
        """The template with the formula in it."""
        emission = Emission(_template(shader, variant))
        inputs, outputs = len(self.formula.inputs), len(self.formula.results)
        abi.fill_loads(emission, inputs)
        self._apply(emission, variant)
        abi.fill_stores(emission, outputs)
        return emission.module(abi.bindings(inputs, outputs)).to_bytes()

    def _apply(self, emission: Emission, variant: str) -> None:
        body = emission.body("apply")
        (kind, *_) = body.members(body.result_type)
        arguments = body.load(body.parameters[0])
        values: list[int] = []
        consumed = {part for node in self.formula.nodes for part in node.parts}
        for number, node in enumerate(self.formula.nodes):
            if node.kind == "argument":
                values.append(body.extract(arguments, self.formula.inputs.index(node.name)))
            elif node.kind == "scalar":
                values.append(body.call(f"scalar{self.formula.scalars.index(node.name)}"))
            elif node.kind == "constant":
                rounded = abi.canonical(np.full(1, node.number, DTYPES[variant].numpy))
                values.append(body.constant(kind, [int(word) for word in rounded.view(np.uint32)]))
            else:
                value = body.call(f"op_{node.kind}", *(values[part] for part in node.parts))
                flush = number in consumed and not OPS[node.kind].flushed
                values.append(body.call("flushed", value) if flush else value)
        results = [values[r] for r in self.formula.results]
        body.finish(body.construct(body.result_type, [*results, *[None] * (abi.OUTPUTS - len(results))]))


@cache
def _template(shader: str, variant: str) -> Template:
    binary = build.Loader().load(templates().get(_TEMPLATE), shader, variant)
    return Template(parse(binary.words))


def fuse(
    *results: Expression,
    outputs: str = "",
    inputs: str = "",
    views: Mapping[str, View] | None = None,
    name: str = "",
) -> Kernel:
    """The kernel that computes these formulas in one dispatch: see `dashi.kernels.fuse`."""
    named = tuple(outputs.split()) or (
        ("result",) if len(results) == 1 else tuple(f"y{k}" for k in range(len(results)))
    )
    if not 1 <= len(results) <= abi.OUTPUTS or len(named) != len(results):
        raise InputError(
            f"{len(results)} formulas are to be fused, with {len(named)} names for results.",
            f"pass 1 to {abi.OUTPUTS} expressions, and as many names in `outputs`, if any.",
        )
    if any(not isinstance(r, Expression) for r in results):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("only expressions can be fused.", "make them with dashi.kernels.expressions.arguments(...).")
    computed = formula(results, inputs.split() or None)
    through = dict(views or {})
    if unknown := sorted(set(through) - set(computed.inputs)):
        raise InputError(f"`views` names {unknown[0]!r}, which is no argument of the formula.", "correct the name.")
    for argument, view in through.items():
        _check_view(argument, view)
    digest = hashlib.sha256(computed.text.encode()).hexdigest()
    kernel = _kernel(computed, named, through, name or f"fused_{digest[:12]}", digest)
    validate(kernel)
    return kernel


def _check_view(argument: str, view: View) -> None:
    if len(view.shape) != len(view.strides) or any(n < 0 for n in view.shape):
        raise InputError(
            f"the view of {argument} has the shape {view.shape} and the strides {view.strides}.",
            "give a length of 0 or more, and a stride, for each axis.",
        )


def _kernel(computed: Formula, outputs: Sequence[str], views: Mapping[str, View], name: str, digest: str) -> Kernel:
    operands = tuple(Operand(argument, view=views.get(argument)) for argument in computed.inputs)
    scalars = tuple(Scalar(scalar) for scalar in computed.scalars)
    ops = [OPS[node.kind] for node in computed.nodes if node.kind in OPS]

    def plan(call: Call) -> Plan:
        through = [o.view or abi.dense(call.shapes[o.name]) for o in operands]
        return abi.plan(call, through, outputs, computed.inputs, [call.scalars[s] for s in computed.scalars])

    def reference(*arrays: HostArray, **numbers: Number) -> HostArray | tuple[HostArray, ...]:
        viewed = {o.name: _through(o.view, values) for o, values in zip(operands, arrays, strict=True)}
        shape = np.broadcast_shapes(*(values.shape for values in viewed.values()))
        with np.errstate(all="ignore"):
            computed_values = computed.evaluate(viewed, numbers)
        # A result of scalars alone, or of some of the arguments, is stretched to the shape of all.
        full = tuple(np.broadcast_to(v, shape or (1,)).reshape(shape).copy() for v in computed_values)
        return full[0] if len(full) == 1 else full

    def cost(call: Call) -> Cost:
        size = call.size(outputs[0])
        flops = size * sum(op.flops(call.dtype.name) for op in ops)
        return Cost(flops=flops, bytes=call.bytes(*computed.inputs, *outputs), dispatches=int(size > 0))

    def prefer(limits: Limits, variant: str) -> str:
        heavy = limits.software or sum(op.flops(variant) for op in ops) >= HEAVY
        return "wide1" if heavy else "wide2"

    examples = [dict.fromkeys(computed.scalars, number) for number in _numbers(computed.dtypes)]
    trials = cases(computed.inputs, examples, _SHAPES)
    if views:
        whole = {o.name: (o.view.bounds()[1] + 1,) if o.view else next(iter(views.values())).shape for o in operands}
        trials = tuple(replace(trial, shapes=whole) for trial in trials[:2])
    described = ", ".join(f"{n} = {_words(computed, r)}" for n, r in zip(outputs, computed.results, strict=True))
    return Kernel(
        summary=f"fused: {described}",
        inputs=operands,
        outputs=tuple(Operand(output) for output in outputs),
        shaders=abi.shaders(len(operands), len(outputs), computed.dtypes),
        dtypes=computed.dtypes,
        plan=plan,
        reference=reference,
        cost=cost,
        cases=trials,
        scalars=scalars,
        in_place=not views,
        broadcasts=True,
        tunings=abi.TUNINGS,
        prefer=prefer,
        name=name,
        family=FAMILY,
        binaries=Emitted(computed, digest),
    )


def _numbers(dtypes: Sequence[str]) -> Sequence[Number]:
    """Scalars for the cases that every one of these types can hold."""
    return _EXAMPLES if set(dtypes) <= set(abi.FLOATS) else _WHOLE_EXAMPLES


def _through(view: View | None, values: HostArray) -> HostArray:
    return values if view is None else values.reshape(-1)[abi.indices(view)]


def _words(computed: Formula, result: int, longest: int = 100) -> str:
    """A result as a formula of the arguments; shortened, since what is used twice is written twice."""
    node = computed.nodes[result]
    if node.kind in ("argument", "scalar"):
        return node.name
    if node.kind == "constant":
        return f"{node.number:g}"
    room = max(1, longest // len(node.parts))
    inside = ", ".join(_words(computed, part, room) if longest > 4 else "..." for part in node.parts)
    return f"{node.kind}({inside})"
