"""Control flow without branches: loops are written out step by step, and what a condition rules is selected.

So every value has one shape and one time, memory is planned once, and what was not chosen does not matter, NaN
neither. ONNX's If, Loop and Scan are `select`, `repeat` and `scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ops.elementwise import where
from dashi.graph.ops.joining import concat
from dashi.graph.ops.movement import slice_

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

Values = Sequence["Tensor"]
MOST_STEPS: Final = 4096
"""Steps of a loop: each is written out."""


@checked
def select(condition: Tensor, then: Values, otherwise: Values) -> tuple[Tensor, ...]:
    """The values of one of two branches, both of which are computed: element by element, where `condition` (bool,
    stretched) is true those of `then`."""
    if len(then) != len(otherwise):
        raise GraphError(
            f"one branch has {len(then)} values, the other {len(otherwise)}.", "let both have the same results."
        )
    return tuple(_chosen(condition, x, y) for x, y in zip(then, otherwise, strict=True))


@checked
def repeat(
    body: Callable[..., Values],
    start: Values,
    steps: int,
    running: Callable[..., Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Values after up to `steps` steps of `body(step, *values)`, which gives as many values of the same types. Where
    `running(*values)` (bool, stretched to every value) has once been false, values stay as they are."""
    _require_steps(steps)
    values, active = tuple(start), None
    for step in range(steps):
        if running is not None:
            now = running(*values)
            active = now if active is None else where(active, now, now.builder.constant(False))
        following = _checked(values, body(step, *values))
        values = following if active is None else select(active, following, values)
    return values


@checked
def scan(
    body: Callable[..., tuple[Values, Values]],
    start: Values,
    sequences: Values,
    *,
    reverse: bool = False,
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The state after a pass over sequences along their first axis, and what the steps gave, stacked along a new first
    axis in the order of the sequences: `body(*state, *elements)` gives the next state and what a step gives. `reverse`
    goes from the end to the start."""
    lengths = {sequence.shape[0] if sequence.shape else 0 for sequence in sequences}
    if len(lengths) != 1:
        raise GraphError(f"sequences of {sorted(lengths)} steps do not go together.", "pass some of one length.")
    (steps,) = lengths
    _require_steps(steps)
    if not steps:
        raise GraphError("a scan over no elements has no results.", "pass sequences of at least one element.")
    state = tuple(start)
    rows: list[tuple[Tensor, ...]] = []
    for step in reversed(range(steps)) if reverse else range(steps):
        elements = [slice_(x, [step], [step + 1]).reshape(*x.shape[1:]) for x in sequences]
        following, results = body(*state, *elements)
        state = _checked(state, following)
        rows.append(tuple(x.reshape(1, *x.shape) for x in results))
    ordered = rows[::-1] if reverse else rows
    return state, tuple(concat(column) for column in zip(*ordered, strict=True))


def _chosen(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    if x.node.type != y.node.type:
        raise GraphError(f"{x.name!r} is {x.node.type}, {y.name!r} {y.node.type}.", "let both branches give one type.")
    chosen = where(condition, x, y)
    if chosen.shape != x.shape:
        raise GraphError(
            f"the condition {condition.name!r} ({condition.node.type}) is no condition of {x.node.type}.",
            "pass one that stretches to the values.",
        )
    return chosen


def _checked(values: Values, following: Values) -> tuple[Tensor, ...]:
    """The values of a next step, if they have the types of those before."""
    types = [[x.node.type for x in listed] for listed in (values, following)]
    if types[0] != types[1]:
        shown = [", ".join(map(str, kinds)) for kinds in types]
        raise GraphError(f"a step makes ({shown[1]}) of ({shown[0]}).", "let a step keep number, shapes and types.")
    return tuple(following)


def _require_steps(steps: int) -> None:
    if not 0 <= steps <= MOST_STEPS:
        raise GraphError(
            f"{steps} steps cannot be written out.",
            f"use 0 to {MOST_STEPS}; or compile one step, and feed its results.",
        )
