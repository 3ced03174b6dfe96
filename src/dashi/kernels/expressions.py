"""Formulas over values, which `dashi.kernels.fuse` makes one kernel of.

    x, y = arguments("x y")
    (a,) = scalars("a")
    kernel = dashi.kernels.fuse(tanh(a * x + y))

Arguments are arrays of the call, scalars numbers that it passes by name; plain numbers become constants. Each function
is the kernel of that name, and gives its bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from dashi.errors import InputError
from dashi.kernels._ops import OPS

__all__ = [
    "Expression", "absolute", "apply", "arguments", "clamp", "constant", "cos", "exp", "log", "maximum", "minimum",
    "reciprocal", "relu", "rsqrt", "scalars", "sigmoid", "sign", "sin", "softplus", "sqrt", "square", "tanh",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Expression:
    """A value: an argument, a scalar, a constant, or a function of others. `+`, `-`, `*`, `/` and `abs` make new ones.

    `kind` is "argument", "scalar", "constant", or the name of a function; `name` is the argument's or scalar's."""

    kind: str
    parts: tuple[Expression, ...] = ()
    name: str = ""
    number: float = 0.0

    def __add__(self, other: Expression | float) -> Expression:
        return apply("add", self, other)

    def __radd__(self, other: float) -> Expression:
        return apply("add", other, self)

    def __sub__(self, other: Expression | float) -> Expression:
        return apply("sub", self, other)

    def __rsub__(self, other: float) -> Expression:
        return apply("sub", other, self)

    def __mul__(self, other: Expression | float) -> Expression:
        return apply("mul", self, other)

    def __rmul__(self, other: float) -> Expression:
        return apply("mul", other, self)

    def __truediv__(self, other: Expression | float) -> Expression:
        return apply("div", self, other)

    def __rtruediv__(self, other: float) -> Expression:
        return apply("div", other, self)

    def __neg__(self) -> Expression:
        return apply("neg", self)

    def __abs__(self) -> Expression:
        return apply("abs", self)

    def __bool__(self) -> bool:
        raise InputError(
            "an expression is neither true nor false: it has no value yet.",
            "choose between values with maximum, minimum, clamp or relu.",
        )

    def __repr__(self) -> str:
        if self.kind in ("argument", "scalar"):
            return f"<Expression {self.kind} {self.name}>"
        return f"<Expression {self.number!r}>" if self.kind == "constant" else f"<Expression {self.kind}(...)>"


def arguments(names: str) -> tuple[Expression, ...]:
    """Arrays of the call, by names with spaces between."""
    return tuple(Expression("argument", name=name) for name in names.split())


def scalars(names: str) -> tuple[Expression, ...]:
    """Numbers that the call passes by name; a tuple, also where there is one."""
    return tuple(Expression("scalar", name=name) for name in names.split())


def constant(number: float) -> Expression:
    """A number that is part of the kernel."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{number!r} is no expression and no number.", "pass an expression, an int or a float.")
    return Expression("constant", number=float(number))


def apply(function: str, *values: Expression | float) -> Expression:
    """A function by the name of its kernel: `apply("maximum", x, 0.0)`."""
    op = OPS.get(function)
    if op is None:
        raise InputError(f"no function {function!r} can be fused.", f"use one of {', '.join(sorted(OPS))}.")
    if len(values) != op.inputs:
        raise InputError(f"{function} takes {op.inputs} values, {len(values)} given.", f"pass {op.inputs}.")
    return Expression(function, tuple(v if isinstance(v, Expression) else constant(v) for v in values))


def absolute(x: Expression | float) -> Expression:
    """|x|, like `abs(x)`."""
    return apply("abs", x)


def clamp(x: Expression | float, lo: Expression | float, hi: Expression | float) -> Expression:
    """x, but at least lo and at most hi; NaN stays NaN. lo <= hi is for the caller to keep."""
    if not isinstance(lo, Expression) and not isinstance(hi, Expression) and not lo <= hi:
        raise InputError(f"clamp: there is nothing between lo={lo} and hi={hi}.", "pass lo <= hi.")
    return minimum(maximum(x, lo), hi)


def maximum(x: Expression | float, y: Expression | float) -> Expression:
    """The larger; NaN wins."""
    return apply("maximum", x, y)


def minimum(x: Expression | float, y: Expression | float) -> Expression:
    """The smaller; NaN wins."""
    return apply("minimum", x, y)


def cos(x: Expression | float) -> Expression:
    """Cosine of radians."""
    return apply("cos", x)


def exp(x: Expression | float) -> Expression:
    """e^x."""
    return apply("exp", x)


def log(x: Expression | float) -> Expression:
    """Natural logarithm; NaN below 0."""
    return apply("log", x)


def reciprocal(x: Expression | float) -> Expression:
    """1 / x, correctly rounded."""
    return apply("reciprocal", x)


def relu(x: Expression | float) -> Expression:
    """x where it is above 0, else 0."""
    return apply("relu", x)


def rsqrt(x: Expression | float) -> Expression:
    """1 / sqrt(x)."""
    return apply("rsqrt", x)


def sigmoid(x: Expression | float) -> Expression:
    """1 / (1 + e^-x)."""
    return apply("sigmoid", x)


def sign(x: Expression | float) -> Expression:
    """-1, 0 or 1."""
    return apply("sign", x)


def sin(x: Expression | float) -> Expression:
    """Sine of radians."""
    return apply("sin", x)


def softplus(x: Expression | float) -> Expression:
    """log(1 + e^x)."""
    return apply("softplus", x)


def sqrt(x: Expression | float) -> Expression:
    """Square root, correctly rounded; NaN below 0."""
    return apply("sqrt", x)


def square(x: Expression | float) -> Expression:
    """x x."""
    return apply("square", x)


def tanh(x: Expression | float) -> Expression:
    """Hyperbolic tangent."""
    return apply("tanh", x)
