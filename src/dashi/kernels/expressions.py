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
    "Expression", "absolute", "apply", "arguments", "atan", "atan2", "ceil", "clamp", "constant", "cos", "equal", "erf",
    "exp", "floor", "log", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "not_equal",
    "quotient", "reciprocal", "relu", "round_to_even", "rsqrt", "scalars", "sigmoid", "sign", "sin", "softplus", "sqrt",
    "square", "tanh", "trunc", "where",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Expression:
    """A value: an argument, a scalar, a constant, or a function of others. `+ - * / % **`, `< <= > >=` and `abs` make
    new ones; `equal(x, y)` and `not_equal(x, y)` compare, since `==` asks whether two are the same expression.

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

    def __mod__(self, other: Expression | float) -> Expression:
        return apply("mod", self, other)

    def __rmod__(self, other: float) -> Expression:
        return apply("mod", other, self)

    def __pow__(self, other: Expression | float) -> Expression:
        return apply("pow", self, other)

    def __rpow__(self, other: float) -> Expression:
        return apply("pow", other, self)

    def __lt__(self, other: Expression | float) -> Expression:
        return apply("less", self, other)

    def __le__(self, other: Expression | float) -> Expression:
        return apply("less_equal", self, other)

    def __gt__(self, other: Expression | float) -> Expression:
        return apply("greater", self, other)

    def __ge__(self, other: Expression | float) -> Expression:
        return apply("greater_equal", self, other)

    def __neg__(self) -> Expression:
        return apply("neg", self)

    def __abs__(self) -> Expression:
        return apply("abs", self)

    def __bool__(self) -> bool:
        raise InputError(
            "an expression is neither true nor false: it has no value yet.",
            "choose between values with where, maximum, minimum, clamp or relu.",
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


def atan(x: Expression | float) -> Expression:
    """Inverse tangent in radians."""
    return apply("atan", x)


def atan2(y: Expression | float, x: Expression | float) -> Expression:
    """Angle of the point (x, y) in radians, in (-pi, pi]."""
    return apply("atan2", y, x)


def ceil(x: Expression | float) -> Expression:
    """The smallest integer not below x."""
    return apply("ceil", x)


def erf(x: Expression | float) -> Expression:
    """Error function."""
    return apply("erf", x)


def floor(x: Expression | float) -> Expression:
    """The largest integer not above x."""
    return apply("floor", x)


def round_to_even(x: Expression | float) -> Expression:
    """The nearest integer, halves to the even one."""
    return apply("round", x)


def trunc(x: Expression | float) -> Expression:
    """x cut to an integer towards 0."""
    return apply("trunc", x)


def quotient(x: Expression | float, y: Expression | float) -> Expression:
    """x / y of integers, towards 0; 0 where y is 0."""
    return apply("quotient", x, y)


def equal(x: Expression | float, y: Expression | float) -> Expression:
    """1 where x is y, else 0. NaN is equal to nothing."""
    return apply("equal", x, y)


def not_equal(x: Expression | float, y: Expression | float) -> Expression:
    """1 where x is not y, else 0."""
    return apply("not_equal", x, y)


def logical_and(x: Expression | float, y: Expression | float) -> Expression:
    """1 where neither is 0, else 0. NaN is not 0."""
    return apply("logical_and", x, y)


def logical_or(x: Expression | float, y: Expression | float) -> Expression:
    """1 where x or y is not 0, else 0."""
    return apply("logical_or", x, y)


def logical_xor(x: Expression | float, y: Expression | float) -> Expression:
    """1 where one of them is 0 and the other not, else 0."""
    return apply("logical_xor", x, y)


def logical_not(x: Expression | float) -> Expression:
    """1 where x is 0, else 0."""
    return apply("logical_not", x)


def where(condition: Expression | float, x: Expression | float, y: Expression | float) -> Expression:
    """x where the condition is not 0, else y; what is not chosen does not matter, NaN neither."""
    return apply("where", condition, x, y)
