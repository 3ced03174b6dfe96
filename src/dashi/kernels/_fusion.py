"""Fused kernels: formulas become one dispatch, by filling a template with calls to functions that it holds.

The NumPy twin of a fused kernel is the composition of the twins; the device gives the bits of the kernels one after
another. `_fused_abi` has the interface and the plan, `spirv/_emit` the machinery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.kernels import _build as build
from dashi.kernels import _fused_abi as abi
from dashi.kernels._formulas import Formula, emit, formula
from dashi.kernels._ops import OPS
from dashi.kernels._registry import templates
from dashi.kernels._validate import validate
from dashi.kernels.abi import Call, Kernel, Limits, Number, Operand, Plan, Scalar, View
from dashi.kernels.expressions import Expression
from dashi.kernels.patterns import HEAVY, cases
from dashi.kernels.spirv._emit import Emission, Template
from dashi.kernels.spirv._module import parse
from dashi.types import Cost, HostArray, Shape

FAMILY: Final = "fused"
_TEMPLATE: Final = "fused"
_SHAPES: Final[tuple[Shape, ...]] = ((1,), (63,), (64,), (257,), (5, 7), (3, 4, 11), (4099,))
_EXAMPLES: Final = (1.5, -0.3, 1.0e-30, 0.0)
_WHOLE_EXAMPLES: Final = (3, 1, 0)


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
        whole = body.load(body.parameters[0])
        arguments = [body.extract(whole, k) for k in range(len(self.formula.inputs))]
        results = emit(body, self.formula, variant, kind, arguments)
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
