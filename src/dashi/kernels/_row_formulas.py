"""Formulas of a kernel over rows: put together from a kind, a head and a tail; evaluated in NumPy; put into a template.

The NumPy twin is the composition of the kernels' references and of the sums of `dashi.kernels.portable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dashi.errors import InputError, LimitError
from dashi.kernels import _rows_abi as abi
from dashi.kernels._formulas import Formula, emit, formula
from dashi.kernels.abi import Number
from dashi.kernels.expressions import Expression, arguments, scalars
from dashi.kernels.portable import canon, prod64, sum64
from dashi.kernels.rows import Reduction, RowKind
from dashi.kernels.spirv._emit import Body, Emission
from dashi.types import HostArray

VALUE, TOTAL, COUNT, FIRST, SECOND = "row:value", "row:total", "row:count", "row:first", "row:second"
"""Names in formulas that no operand can have."""
_MOST: Final = 2
_JOINS: Final[dict[str, Callable[[HostArray], HostArray]]] = {
    "sum": sum64,
    "prod": prod64,
    "max": lambda values: np.maximum.reduce(values, axis=-1, initial=-np.inf),
    "min": lambda values: np.minimum.reduce(values, axis=-1, initial=np.inf),
}


@dataclass(frozen=True)
class RowFormulas:
    """What a kernel over rows computes. `inputs` and `scalars` are those of the call, in order; `tail` has one result
    for each output, and is a formula of elements if `maps`, else of rows."""

    head: Formula
    joins: tuple[str, ...]
    finite: tuple[bool, ...]
    addends: tuple[Formula, ...]
    settles: tuple[Formula, ...]
    moved: Formula | None
    tail: Formula
    maps: bool
    inputs: tuple[str, ...]
    scalars: tuple[str, ...]

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.head, *self.addends, *self.settles, *((self.moved,) if self.moved else ()), self.tail)

    @property
    def tail_inputs(self) -> tuple[str, ...]:
        """Operands that the tail reads."""
        return tuple(name for name in self.tail.inputs if name in self.inputs)

    @property
    def text(self) -> str:
        """What is computed: equal kernels have equal text."""
        shape = f"joins {self.joins} finite {self.finite} maps {self.maps} inputs {self.inputs} scalars {self.scalars}"
        return "\n".join([shape, *(part.text for part in self.parts)])

    def evaluate(self, arrays: Mapping[str, HostArray], numbers: Mapping[str, Number]) -> list[HostArray]:
        """The results by NumPy, of operands of shape (..., n): of that shape if `maps`, else (...)."""
        n = next(iter(arrays.values())).shape[-1]
        given = {**numbers, COUNT: n}
        (value,) = self.head.evaluate({name: arrays[name] for name in self.head.inputs}, given)
        reduced: dict[str, HostArray] = {}
        for stage, join in enumerate(self.joins):
            if stage and self.moved:
                (value,) = self.moved.evaluate({VALUE: value, **reduced}, given)
            (addends,) = self.addends[stage].evaluate({VALUE: value}, given)
            total = canon(_JOINS[join](canon(addends)))[..., None]
            (settled,) = self.settles[stage].evaluate({TOTAL: total, **reduced}, given)
            settled = canon(settled)
            reduced[(FIRST, SECOND)[stage]] = np.where(np.isinf(settled) & self.finite[stage], 0, settled)
        columns = {name: arrays[name] if self.maps else arrays[name][..., :1] for name in self.tail_inputs}
        results = self.tail.evaluate({VALUE: value, **reduced, **columns}, given)
        shape = value.shape if self.maps else value.shape[:-1]
        return [canon(np.broadcast_to(r if self.maps else r[..., 0], shape)) for r in results]


def row_formulas(
    kind: RowKind,
    head: Expression,
    tails: Sequence[Callable[..., Expression]],
    maps: bool,
    inputs: Sequence[str] | None,
) -> RowFormulas:
    """The formulas of a kind, with these operands; each tail makes an output of the kind's result."""
    value, total, first, second = arguments(f"{VALUE} {TOTAL} {FIRST} {SECOND}")
    (count,) = scalars(COUNT)
    reduced = (first, second)[: len(kind.reductions)]
    result = kind.result(value, reduced)
    top = formula((head,), None)
    tail = formula([make(result) for make in tails] or [result], None)
    settles = [formula((r.settle(total, count, reduced[:k]),), None) for k, r in enumerate(kind.reductions)]
    moved = formula((kind.moved(value, first),), None) if kind.moved else None
    if not 1 <= len(kind.reductions) <= _MOST or (moved is None) != (len(kind.reductions) == 1):
        raise InputError(
            f"a kind of kernels over rows has {len(kind.reductions)} reductions, and moves values: {moved is not None}.",
            "give it one reduction, or two with `moved` between them.",
        )
    if not maps and VALUE in tail.inputs:
        raise InputError("the result of a reduction is made of an element's value.", "use reduced values, or row_map.")
    own = (VALUE, TOTAL, FIRST, SECOND)
    names = tuple(dict.fromkeys(n for part in (top, tail) for n in part.inputs if n not in own))
    numbers = tuple(dict.fromkeys(n for part in (top, tail, *settles) for n in part.scalars if n != COUNT))
    for what, listed, most in (("operands", names, abi.INPUTS), ("scalars", numbers, abi.SCALARS)):
        if len(listed) > most:
            raise LimitError(f"head and tail have {len(listed)} {what}; a kernel over rows has at most {most}.",
                             "split it.")  # fmt: skip
    # Every part numbers the scalars of the call alike; behind them stands the number of elements.
    padded = (*numbers, *(f"row:none{k}" for k in range(abi.SCALARS - len(numbers))), COUNT)

    def numbered(part: Formula) -> Formula:
        return replace(part, scalars=padded)

    return RowFormulas(
        numbered(top),
        tuple(r.join for r in kind.reductions),
        tuple(r.finite for r in kind.reductions),
        tuple(numbered(formula((r.addend(value),), None)) for r in kind.reductions),
        tuple(numbered(part) for part in settles),
        numbered(moved) if moved else None,
        numbered(tail),
        maps,
        tuple(inputs) if inputs else names,
        numbers,
    )


def place_formulas(kind: str, head: Expression, inputs: Sequence[str] | None) -> RowFormulas:
    """The formulas of argmax and argmin, of which the template uses the head and the addend alone."""

    def sign(value: Expression) -> Expression:
        return -value if kind == "argmin" else value

    return row_formulas(RowKind((Reduction("max", addend=sign),)), head, (), False, inputs)


def fill(emission: Emission, computed: RowFormulas, variant: str, places: bool) -> None:
    """Puts the formulas into the functions of the template."""
    _function(emission, "head", computed.head, variant, _loads(computed))
    _function(emission, "first", computed.addends[0], variant, {VALUE: 0})
    if places:
        return
    names = {TOTAL: 0, FIRST: 1}
    for stage, join in enumerate(computed.joins):
        body = emission.body(f"start{stage}")
        body.finish(body.call(f"start_{join}"))
        body = emission.body(f"join{stage}")
        body.finish(body.call(f"join_{join}", *(body.load(p) for p in body.parameters)))
        _function(emission, f"settle{stage}", computed.settles[stage], variant, names, computed.finite[stage])
    if len(computed.joins) > 1:
        assert computed.moved is not None
        _function(emission, "moved", computed.moved, variant, {VALUE: 0, FIRST: 1})
        _function(emission, "second", computed.addends[1], variant, {VALUE: 0})
    _tail(emission, computed, variant)


def _loads(computed: RowFormulas) -> dict[str, int]:
    """Operands by the number of their load function, as negative numbers: parameters are those from 0 on."""
    return {name: -1 - k for k, name in enumerate(computed.inputs)}


def _function(
    emission: Emission, name: str, part: Formula, variant: str, places: Mapping[str, int], finite: bool = False
) -> None:
    body = emission.body(name)
    (result,) = emit(body, part, variant, body.result_type, [_argument(body, places[n]) for n in part.inputs])
    if finite:
        result = body.call("finite_or_zero", body.call("flushed", result))
    body.finish(result)


def _argument(body: Body, place: int) -> int:
    if place >= 0:
        return body.load(body.parameters[place])
    return body.call("flushed", body.call(f"load{-1 - place}", body.parameters[0]))


def _tail(emission: Emission, computed: RowFormulas, variant: str) -> None:
    body = emission.body("tail")
    places = {VALUE: 1, FIRST: 2, SECOND: 3, **_loads(computed)}
    given = [_argument(body, places[n]) for n in computed.tail.inputs]
    kind = emission.template.signature(emission.template.function("settle0"))[0]
    for k, result in enumerate(emit(body, computed.tail, variant, kind, given)):
        body.call(f"store{k}", body.parameters[0], body.call("canon", result))
    body.finish()
