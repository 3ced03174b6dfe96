"""Kernels over rows made of formulas: reductions with a head and a tail, and maps that see the reduced values of their
row, by filling the template `_templates/rows/rows`.

`rows` says what is computed, `_row_formulas` holds it as formulas, `_rows_abi` plans it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from dashi.errors import InputError, ShapeError
from dashi.kernels import _build as build
from dashi.kernels import _rows_abi as abi
from dashi.kernels._calls import reduced_axes
from dashi.kernels._fused_abi import dense, indices
from dashi.kernels._ops import OPS
from dashi.kernels._reductions import require_elements
from dashi.kernels._registry import templates
from dashi.kernels._row_formulas import RowFormulas, fill, place_formulas, row_formulas
from dashi.kernels._validate import validate
from dashi.kernels.abi import Call, Case, Kernel, Number, Operand, Plan, Scalar, View
from dashi.kernels.expressions import Expression
from dashi.kernels.portable import order_key
from dashi.kernels.rows import PLACES, REDUCTIONS, ROW_MAPS, RowKind
from dashi.kernels.spirv._emit import Emission, Template
from dashi.kernels.spirv._module import parse
from dashi.types import Cost, HostArray, Shape

FAMILY: Final = "rows"
_TEMPLATE: Final = "rows"
_LENGTHS: Final = (1, 17, 64, 65, 300)
_EXAMPLES: Final = (1.5, -0.3, 1.0e-30)
Tail = Callable[[Expression], Expression]


@dataclass(frozen=True)
class EmittedRows:
    """The binaries of a kernel over rows, made when they are asked for: some milliseconds each."""

    formulas: RowFormulas
    places: bool
    key: str

    def words(self, shader: str, variant: str) -> bytes:
        """The template with the formulas in it."""
        emission = Emission(_template(shader, variant))
        fill(emission, self.formulas, variant, self.places)
        outputs = len(self.formulas.tail.results)
        return emission.module(abi.bindings(len(self.formulas.inputs), outputs)).to_bytes()


@cache
def _template(shader: str, variant: str) -> Template:
    return Template(parse(build.Loader().load(templates().get(_TEMPLATE), shader, variant).words))


def reduce_rows(
    kind: str | RowKind, head: Expression, tail: Tail | None, axes: int | Sequence[int], inputs: str,
    views: Mapping[str, View] | None, name: str,
) -> Kernel:  # fmt: skip
    """See `dashi.kernels.reduce_rows`."""
    if isinstance(kind, str) and kind not in REDUCTIONS and kind not in PLACES:
        raise InputError(f"there is no reduction {kind!r}.", f"use one of {', '.join([*REDUCTIONS, *PLACES])}.")
    _check_expression(head)
    if isinstance(kind, str) and kind in PLACES:
        if tail is not None:
            raise InputError(f"{kind} has no tail: its result is an index.", "leave the tail out.")
        return _kernel(place_formulas(kind, head, inputs.split()), kind, axes, views, name, "result", places=kind)
    chosen = REDUCTIONS[kind] if isinstance(kind, str) else kind
    computed = row_formulas(chosen, head, [tail] if tail else [], False, inputs.split())
    return _kernel(computed, _label(kind), axes, views, name, "result")


def row_map(
    kind: str | RowKind, head: Expression, tails: Sequence[Tail], eps: Expression | float,
    axes: int | Sequence[int], outputs: str, inputs: str, views: Mapping[str, View] | None, name: str,
) -> Kernel:  # fmt: skip
    """See `dashi.kernels.row_map`."""
    if isinstance(kind, str) and kind not in ROW_MAPS:
        raise InputError(f"there is no map over rows {kind!r}.", f"use one of {', '.join(ROW_MAPS)}.")
    _check_expression(head)
    many = max(1, len(tails))
    named = outputs or ("result" if many == 1 else " ".join(f"y{k}" for k in range(many)))
    if many > abi.OUTPUTS or len(named.split()) != many:
        raise InputError(
            f"{many} results are to be made, with {len(named.split())} names.",
            f"pass 1 to {abi.OUTPUTS} tails, and as many names in `outputs`, if any.",
        )
    chosen = ROW_MAPS[kind](eps) if isinstance(kind, str) else kind
    return _kernel(row_formulas(chosen, head, tails, True, inputs.split()), _label(kind), axes, views, name, named)


def _label(kind: str | RowKind) -> str:
    return kind if isinstance(kind, str) else "rows"


def _check_expression(head: Expression) -> None:
    if not isinstance(head, Expression):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("the head is no expression.", "make one with dashi.kernels.expressions.arguments(...).")


def _axes(axes: int | Sequence[int]) -> tuple[int, ...]:
    listed = (axes,) if isinstance(axes, int) else tuple(axes)
    if not listed or len(set(listed)) != len(listed):
        raise InputError(f"the axes {listed} are to be reduced.", "name at least one axis, and each once.")
    return listed


def _kernel(
    computed: RowFormulas, label: str, axes: int | Sequence[int], views: Mapping[str, View] | None, name: str,
    outputs: str, places: str = "",
) -> Kernel:  # fmt: skip
    through, gone, named = dict(views or {}), _axes(axes), tuple(outputs.split())
    _check_names(computed, through)
    operands = tuple(Operand(argument, view=through.get(argument)) for argument in computed.inputs)
    work = _Work(computed, operands, named, gone, places)
    digest = hashlib.sha256(f"{places} {computed.text}".encode()).hexdigest()
    kernel = Kernel(
        summary=f"{label} over axes {', '.join(map(str, gone))} of a formula of {', '.join(computed.inputs)}",
        inputs=operands,
        outputs=tuple(Operand(output, "u32" if places else "T") for output in named),
        shaders=abi.shaders(len(operands), len(named), bool(places)),
        plan=work.plan,
        reference=work.reference,
        cost=work.cost,
        cases=work.cases(),
        scalars=tuple(Scalar(scalar) for scalar in computed.scalars),
        broadcasts=True,
        reduces=() if computed.maps else gone,
        tunings=abi.TUNINGS,
        prefer=abi.prefer,
        name=name or f"{label}_{digest[:12]}",
        family=FAMILY,
        binaries=EmittedRows(computed, bool(places), digest),
    )
    validate(kernel)
    return kernel


def _check_names(computed: RowFormulas, views: Mapping[str, View]) -> None:
    used = {n for part in (computed.head, computed.tail) for n in part.inputs if not n.startswith("row:")}
    if sorted(computed.inputs) != sorted(used):
        raise InputError(
            f"head and tail have the arguments {', '.join(sorted(used))}, but `inputs` names "
            f"{', '.join(computed.inputs)}.",
            "name each argument once.",
        )
    if unknown := sorted(set(views) - used):
        raise InputError(f"`views` names {unknown[0]!r}, which is no argument of the kernel.", "correct the name.")


@dataclass(frozen=True)
class _Work:
    """What a kernel over rows does with a call."""

    computed: RowFormulas
    operands: tuple[Operand, ...]
    outputs: tuple[str, ...]
    axes: tuple[int, ...]
    places: str

    def _views(self, shapes: Mapping[str, Shape]) -> tuple[list[View], Shape]:
        """What each operand is read through, and the shape that all are stretched to."""
        listed = [o.view or dense(shapes[o.name]) for o in self.operands]
        shape = np.broadcast_shapes(*(view.shape for view in listed))
        gone = reduced_axes(shape, self.axes)
        if not self.computed.maps:
            for operand, view in zip(self.operands, listed, strict=True):
                lengths = (1,) * (len(shape) - len(view.shape)) + view.shape
                if operand.name in self.computed.tail_inputs and any(lengths[axis] != 1 for axis in gone):
                    raise ShapeError(
                        f"the tail reads {operand.name} of shape {view.shape}, but there is one result for all "
                        f"elements of the axes {', '.join(map(str, gone))}.",
                        f"pass {operand.name} with length 1 there.",
                    )
        if not math.prod(shape[axis] for axis in gone) and not self.computed.maps and self._needs_elements():
            require_elements(0)
        return listed, shape

    def _needs_elements(self) -> bool:
        return bool(self.places) or (self.computed.joins[0] in ("max", "min") and not self.computed.finite[0])

    def plan(self, call: Call) -> Plan:
        listed, shape = self._views(call.shapes)
        folding = abi.fold(shape, self.axes, listed, self.computed.maps)
        numbers = [call.scalars[s] for s in self.computed.scalars]
        buffers = (*self.computed.inputs, *self.outputs)
        stages = len(self.computed.joins)
        return abi.plan(call, folding, buffers, numbers, stages, self.computed.maps, bool(self.places))

    def reference(self, *arrays: HostArray, **numbers: Number) -> HostArray | tuple[HostArray, ...]:
        listed, shape = self._views({o.name: a.shape for o, a in zip(self.operands, arrays, strict=True)})
        gone = reduced_axes(shape, self.axes)
        stay = tuple(axis for axis in range(len(shape)) if axis not in gone)
        rows, n = tuple(shape[a] for a in stay), math.prod(shape[a] for a in gone)
        folded = {
            o.name: np.broadcast_to(a.reshape(-1)[indices(v)], shape).transpose(*stay, *gone).reshape(*rows, n)
            for o, v, a in zip(self.operands, listed, arrays, strict=True)
        }
        with np.errstate(all="ignore"):
            if self.places:
                return self._place(folded, numbers)
            results = self.computed.evaluate(folded, numbers)
        if self.computed.maps:
            back = np.argsort((*stay, *gone))
            whole = (*rows, *(shape[a] for a in gone))
            results = [np.ascontiguousarray(r.reshape(whole).transpose(*back)) for r in results]
        return results[0] if len(results) == 1 else tuple(results)

    def _place(self, folded: Mapping[str, HostArray], numbers: Mapping[str, Number]) -> HostArray:
        (value,) = self.computed.head.evaluate(folded, numbers)
        (signed,) = self.computed.addends[0].evaluate({self.computed.addends[0].inputs[0]: value}, numbers)
        return order_key(signed).argmax(axis=-1).astype(np.uint32)

    def cost(self, call: Call) -> Cost:
        _, shape = self._views(call.shapes)
        computed, dtype = self.computed, call.dtype.name
        per_element = [computed.head, *computed.addends, *([computed.moved] if computed.moved else [])]
        per_element += [computed.tail] if computed.maps else []
        ops = (OPS[node.kind].flops(dtype) for part in per_element for node in part.nodes if node.kind in OPS)
        flops = math.prod(shape) * (sum(ops) + len(computed.joins))
        moved = call.bytes(*computed.inputs) + sum(call.size(o) for o in self.outputs) * (
            4 if self.places else call.dtype.size
        )
        return Cost(flops=flops, bytes=moved, dispatches=int(bool(call.size(self.outputs[0]))))

    def cases(self) -> tuple[Case, ...]:
        """Shapes round the lengths of runs; where views fix them, those."""
        scalars = [dict.fromkeys(self.computed.scalars, number) for number in _EXAMPLES]
        if any(o.view for o in self.operands):
            shape = np.broadcast_shapes(*(o.view.shape for o in self.operands if o.view))
            whole = {o.name: (o.view.bounds()[1] + 1,) if o.view else self._shape(o, shape) for o in self.operands}
            return (Case(whole, scalars[0]),)
        rank = max([2, *(axis + 1 if axis >= 0 else -axis for axis in self.axes)])
        listed: list[Case] = []
        for number, length in enumerate(_LENGTHS):
            shape = [3 + axis for axis in range(rank)]
            shape[reduced_axes(tuple(shape), self.axes)[-1]] = length
            full = tuple(shape)
            listed.append(Case({o.name: self._shape(o, full) for o in self.operands}, scalars[number % len(scalars)]))
        return tuple(listed)

    def _shape(self, operand: Operand, shape: Shape) -> Shape:
        """The shape itself, or that of its rows for what the tail of a reduction reads."""
        if self.computed.maps or operand.name not in self.computed.tail_inputs:
            return shape
        gone = reduced_axes(shape, self.axes)
        return tuple(1 if axis in gone else length for axis, length in enumerate(shape))
