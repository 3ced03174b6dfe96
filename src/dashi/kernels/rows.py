"""What `dashi.kernels.reduce_rows` and `row_map` compute: kinds of reductions and of maps over rows, as formulas.

A row is n elements along the reduced axes, in index order. Every element has a value, made of the operands there by the
head. Then, in the order that makes the bits (every function is the kernel of that name; sums and products go by tree64,
see docs/portability.md; maxima and minima do not depend on an order, and NaN wins):

    sum, prod, max, min    the reduction of the values
    mean                   sum / n
    l1, sumsq, l2          sum of |v|; sum of square(v); sqrt of that
    logsumexp              m + log(sum of exp(v - m)), where m is the maximum, or 0 where that is infinite
    argmax, argmin         the lowest index of the largest or smallest value; a NaN comes before all
    softmax                w / sum of w, where w = exp(v - max)
    log_softmax            w - log(sum of exp(w)), where w = v - max
    layer_norm             w reciprocal(sqrt(sum of square(w) / n + eps)), where w = v - (sum of v) / n
    rms_norm               v reciprocal(sqrt(sum of square(v) / n + eps))

1 / sqrt is taken by two functions that are correctly rounded: together they are nearer than `rsqrt`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dashi.kernels.expressions import Expression, absolute, exp, log, reciprocal, sqrt, square

__all__ = ["REDUCTIONS", "ROW_MAPS", "Reduction", "RowKind", "layer_norm", "rms_norm"]

Join = Literal["sum", "prod", "max", "min"]
Reduced = Sequence[Expression]
"""The reduced values of a row so far."""


def _same(value: Expression) -> Expression:
    return value


def _total(total: Expression, _n: Expression, _earlier: Reduced) -> Expression:
    return total


def _mean(total: Expression, n: Expression, _earlier: Reduced) -> Expression:
    return total / n


def _root(total: Expression, _n: Expression, _earlier: Reduced) -> Expression:
    return sqrt(total)


def _only_one(_value: Expression, reduced: Reduced) -> Expression:
    return reduced[0]


def _difference(value: Expression, first: Expression) -> Expression:
    return value - first


@dataclass(frozen=True)
class Reduction:
    """One reduction of a row: the `addend` of each value is joined, and `settle(total, n, earlier)` makes the reduced
    value; `earlier` has that of the reduction before, if there is one. With `finite` an infinite result becomes 0."""

    join: Join
    addend: Callable[[Expression], Expression] = _same
    settle: Callable[[Expression, Expression, Reduced], Expression] = _total
    finite: bool = False


@dataclass(frozen=True)
class RowKind:
    """One or two reductions, and what becomes of them: `result(value, reduced)` is the result of an element; for a
    reduction that of the row, which has no value. Between the two reductions `moved(value, first)` makes every value
    anew."""

    reductions: tuple[Reduction, ...]
    result: Callable[[Expression, Reduced], Expression] = _only_one
    moved: Callable[[Expression, Expression], Expression] | None = None


REDUCTIONS: Final = {
    "sum": RowKind((Reduction("sum"),)),
    "prod": RowKind((Reduction("prod"),)),
    "max": RowKind((Reduction("max"),)),
    "min": RowKind((Reduction("min"),)),
    "mean": RowKind((Reduction("sum", settle=_mean),)),
    "l1": RowKind((Reduction("sum", addend=absolute),)),
    "sumsq": RowKind((Reduction("sum", addend=square),)),
    "l2": RowKind((Reduction("sum", addend=square, settle=_root),)),
    "logsumexp": RowKind(
        (Reduction("max", finite=True), Reduction("sum", addend=exp)),
        lambda _value, reduced: reduced[0] + log(reduced[1]),
        _difference,
    ),
}
"""Reductions by name; `PLACES` are the two whose result is no value."""
PLACES: Final = ("argmax", "argmin")


def layer_norm(eps: Expression | float = 1e-5) -> RowKind:
    """(v - mean) / sqrt(variance + eps)."""

    def scale(total: Expression, n: Expression, _earlier: Reduced) -> Expression:
        return reciprocal(sqrt(total / n + eps))

    reductions = (Reduction("sum", settle=_mean), Reduction("sum", addend=square, settle=scale))
    return RowKind(reductions, lambda value, reduced: value * reduced[1], _difference)


def rms_norm(eps: Expression | float = 1e-5) -> RowKind:
    """v / sqrt(mean of squares + eps)."""

    def scale(total: Expression, n: Expression, _earlier: Reduced) -> Expression:
        return reciprocal(sqrt(total / n + eps))

    return RowKind((Reduction("sum", addend=square, settle=scale),), lambda value, reduced: value * reduced[0])


def _softmax(_eps: Expression | float) -> RowKind:
    return RowKind(
        (Reduction("max"), Reduction("sum")),
        lambda weight, reduced: weight / reduced[1],
        lambda value, largest: exp(value - largest),
    )


def _log_softmax(_eps: Expression | float) -> RowKind:
    reductions = (Reduction("max"), Reduction("sum", addend=exp, settle=lambda total, _n, _earlier: log(total)))
    return RowKind(reductions, lambda value, reduced: value - reduced[1], _difference)


ROW_MAPS: Final[dict[str, Callable[[Expression | float], RowKind]]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
}
"""Maps over rows by name, as functions of eps."""
