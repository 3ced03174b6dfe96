"""Fused kernels: formulas become one dispatch, by filling a template with calls to functions that it holds.

The NumPy twin of a fused kernel is the composition of the twins; the device gives the bits of the kernels one after
another. `_fused_abi` has the interface and the plan, `spirv/_emit` the machinery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.kernels import _build as build
from dashi.kernels import _fused_abi as abi
from dashi.kernels._edges import Edges, edges_of
from dashi.kernels._formulas import Formula, emit, formula
from dashi.kernels._fused_glsl import width
from dashi.kernels._ops import OPS
from dashi.kernels._registry import templates
from dashi.kernels._storage import any_values, load, store
from dashi.kernels._validate import validate
from dashi.kernels.abi import Call, Case, Kernel, Limits, Number, Operand, Plan, Scalar, View
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
class Emitted:
    """The binaries of a fused kernel, made when they are asked for: some milliseconds each."""

    formula: Formula
    edges: Edges
    key: str

    def words(self, shader: str, variant: str) -> bytes:
        """The template with the formula in it."""
        compute = self.edges.compute_of(variant)
        mixed = shader.startswith(abi.MIXED)
        emission = Emission(_template(abi.MIXED + abi.ending(compute) if mixed else shader, compute))
        inputs, outputs = len(self.formula.inputs), len(self.formula.results)
        if mixed:
            reading, writing = self.edges.storages(variant)
            abi.fill_mixed_loads(emission, reading)
            abi.fill_mixed_stores(emission, writing)
        else:
            abi.fill_loads(emission, inputs)
            abi.fill_stores(emission, outputs)
        self._apply(emission, compute)
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
    types: Mapping[str, str] | None = None,
    compute: str | None = None,
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
    edges = edges_of(computed, named, types or {}, compute)
    digest = hashlib.sha256((computed.text + edges.text).encode()).hexdigest()
    kernel = _kernel(computed, edges, through, name or f"fused_{digest[:12]}", digest)
    validate(kernel)
    return kernel


def _check_view(argument: str, view: View) -> None:
    if len(view.shape) != len(view.strides) or any(n < 0 for n in view.shape):
        raise InputError(
            f"the view of {argument} has the shape {view.shape} and the strides {view.strides}.",
            "give a length of 0 or more, and a stride, for each axis.",
        )


def _kernel(computed: Formula, edges: Edges, views: Mapping[str, View], name: str, digest: str) -> Kernel:
    operands = tuple(
        Operand(argument, edges.inputs[argument], view=views.get(argument)) for argument in computed.inputs
    )
    outputs = tuple(edges.outputs)
    ops = [OPS[node.kind] for node in computed.nodes if node.kind in OPS]

    def plan(call: Call) -> Plan:
        through = {o.name: o.view or abi.dense(call.shapes[o.name]) for o in operands}
        numbers = [call.scalars[s] for s in computed.scalars]
        variant = call.dtype.name
        if edges.uniform(variant):
            return abi.plan(call, list(through.values()), outputs, computed.inputs, numbers)
        widths = {output: width(kind) for output, kind in zip(outputs, edges.storages(variant)[1], strict=True)}
        return abi.mixed_plan(call, through, widths, edges.compute_of(variant), numbers)

    def cost(call: Call) -> Cost:
        size, variant = call.size(outputs[0]), call.dtype.name
        flops = size * sum(op.flops(edges.compute_of(variant)) for op in ops)
        reading, writing = edges.storages(variant)
        kinds = zip((*computed.inputs, *outputs), (*reading, *writing), strict=True)
        moved = sum(call.size(operand) * width(kind) for operand, kind in kinds)
        return Cost(flops=flops, bytes=moved, dispatches=int(size > 0))

    def prefer(limits: Limits, variant: str) -> str:
        heavy = limits.software or sum(op.flops(edges.compute_of(variant)) for op in ops) >= HEAVY
        return "wide1" if heavy else "wide2"

    described = ", ".join(f"{n} = {_words(computed, r)}" for n, r in zip(outputs, computed.results, strict=True))
    return Kernel(
        summary=f"fused: {described}",
        inputs=operands,
        outputs=tuple(Operand(output, kind) for output, kind in edges.outputs.items()),
        shaders={
            **abi.shaders(len(operands), len(outputs), [v for v in edges.variants if edges.uniform(v)]),
            **abi.mixed_shaders(len(operands), len(outputs), edges.mixed),
        },
        dtypes=edges.variants,
        plan=plan,
        reference=_reference(computed, edges, operands),
        cost=cost,
        cases=_cases(computed, edges, operands),
        scalars=tuple(Scalar(scalar) for scalar in computed.scalars),
        in_place=not views and edges.same_widths,
        broadcasts=True,
        tunings=abi.TUNINGS,
        prefer=prefer,
        name=name,
        family=FAMILY,
        binaries=Emitted(computed, edges, digest),
    )


def _reference(
    computed: Formula, edges: Edges, operands: Sequence[Operand]
) -> Callable[..., HostArray | tuple[HostArray, ...]]:
    """The composition of the twins, with conversions at its edges."""

    def reference(*arrays: HostArray, **numbers: Number) -> HostArray | tuple[HostArray, ...]:
        variant = edges.variant_of([array.dtype for array in arrays])
        compute = edges.compute_of(variant)
        reading, writing = edges.storages(variant)
        viewed = {
            o.name: load(_through(o.view, values), kind, compute)
            for o, values, kind in zip(operands, arrays, reading, strict=True)
        }
        shape = np.broadcast_shapes(*(values.shape for values in viewed.values()))
        with np.errstate(all="ignore"):
            results = computed.evaluate(viewed, numbers)
        # A result of scalars alone, or of some of the arguments, is stretched to the shape of all.
        full = tuple(
            store(np.broadcast_to(v, shape or (1,)).reshape(shape).copy(), kind)
            for v, kind in zip(results, writing, strict=True)
        )
        return full[0] if len(full) == 1 else full

    return reference


def _cases(computed: Formula, edges: Edges, operands: Sequence[Operand]) -> tuple[Case, ...]:
    """Small cases; arrays of fixed integer types hold any bits."""
    examples = [dict.fromkeys(computed.scalars, number) for number in _numbers(edges.variants)]
    fill = {o.name: any_values(o.dtype) for o in operands if o.dtype != "T" and not DTYPES[o.dtype].is_float}
    trials = tuple(replace(trial, fill=fill) for trial in cases(computed.inputs, examples, _SHAPES))
    views = [o.view for o in operands if o.view]
    if not views:
        return trials
    whole = {o.name: (o.view.bounds()[1] + 1,) if o.view else views[0].shape for o in operands}
    return tuple(replace(trial, shapes=whole) for trial in trials[:2])


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
