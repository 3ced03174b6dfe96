"""The functions of values that formulas are made of: those of kernels of the elementwise family, compares, selection,
and what only integers have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from dashi.kernels import portable
from dashi.kernels._calls import resolve_call
from dashi.kernels._registry import default
from dashi.kernels.abi import Kernel
from dashi.types import DTYPES, HostArray

Twin = Callable[..., Any]


@dataclass(frozen=True)
class ValueFunction:
    """A function of values. Without `floats` it is the kernel of that name; with it, that is what it makes of canonical
    floats in NumPy, and `operations` how many it counts for. `flushed`: given values that are canonical, or any NaN, it
    returns such; after other functions what is too small, or -0, must become +0 before it is used."""

    name: str
    inputs: int
    flushed: bool = False
    floats: Twin | None = None
    operations: int = 0

    @property
    def kernel(self) -> Kernel:
        """The kernel of that name: the definition, with its NumPy twin."""
        return default().get(self.name)

    def twin(self, *values: HostArray) -> HostArray:
        """What it makes of values in NumPy; a truth value is 0 or 1 of their type."""
        kind = values[-1].dtype
        if kind.kind != "f":
            return np.asarray(_INTEGERS[self.name](*values)).astype(kind)
        if self.floats is not None:
            return np.asarray(self.floats(*values)).astype(kind)
        return np.asarray(self.kernel.reference(*values))

    @property
    def for_floats(self) -> bool:
        """Whether it is defined for floats."""
        return self.name not in _INTEGERS_ONLY

    @property
    def for_integers(self) -> bool:
        """Whether it is defined for integers, which wrap round."""
        return self.name in _INTEGERS

    @property
    def for_truths(self) -> bool:
        """Whether it makes sense of truth values alone."""
        return self.name in _TRUTHS

    def flops(self, variant: str) -> int:
        """Operations per element."""
        if self.operations or not DTYPES[variant].is_float:
            return self.operations or 1
        return self.kernel.cost(resolve_call(self.kernel, variant, [(1,)] * self.inputs)).flops


def _true(x: Any) -> Any:
    return x != 0


def _logical_and(x: Any, y: Any) -> Any:
    return _true(x) & _true(y)


def _logical_or(x: Any, y: Any) -> Any:
    return _true(x) | _true(y)


def _logical_xor(x: Any, y: Any) -> Any:
    return _true(x) ^ _true(y)


def _logical_not(x: Any) -> Any:
    return ~_true(x)


def _where(condition: Any, x: Any, y: Any) -> Any:
    return cast("Any", np.where(_true(condition), x, y))


def _mod(x: Any, y: Any) -> Any:
    return portable.canon(x - portable.mul(y, portable.floor(portable.divide(x, y))))


def _relu(x: Any) -> Any:
    return np.maximum(x, np.zeros_like(x))


def _divisor(y: Any) -> Any:
    return cast("Any", np.where(y == 0, y.dtype.type(1), y))


def _integer_mod(x: Any, y: Any) -> Any:
    return np.where(y == 0, 0, np.mod(x, _divisor(y)))


def _quotient(x: Any, y: Any) -> Any:
    """The division towards 0; 0 by 0."""
    divisor = _divisor(y)
    floored = np.floor_divide(x, divisor)
    beyond = (np.mod(x, divisor) != 0) & ((x < 0) != (divisor < 0))
    return np.where(y == 0, 0, floored + beyond.astype(x.dtype))


def _shift_left(x: Any, y: Any) -> Any:
    return np.left_shift(x, y & y.dtype.type(8 * y.dtype.itemsize - 1))


def _shift_right(x: Any, y: Any) -> Any:
    return np.right_shift(x, y & y.dtype.type(8 * y.dtype.itemsize - 1))


_COMPARES: Final[dict[str, Twin]] = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": _logical_and, "logical_or": _logical_or, "logical_xor": _logical_xor,
}  # fmt: skip
_INTEGERS_ONLY: Final[dict[str, Twin]] = {
    "quotient": _quotient, "bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor,
    "bit_not": np.bitwise_not, "shift_left": _shift_left, "shift_right": _shift_right,
}  # fmt: skip
_INTEGERS: Final[dict[str, Twin]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "neg": np.negative, "relu": _relu, "sign": np.sign, "square": np.square, "abs": np.abs, "mod": _integer_mod,
    "logical_not": _logical_not, "where": _where, **_COMPARES, **_INTEGERS_ONLY,
}  # fmt: skip
_TRUTHS: Final = frozenset({*_COMPARES, "logical_not", "where", "maximum", "minimum"})

OPS: Final = {
    op.name: op
    for op in (
        *(ValueFunction(name, 2) for name in ("add", "sub", "div", "pow", "atan2")),
        *(ValueFunction(name, 2, flushed=True) for name in ("mul", "maximum", "minimum")),
        *(ValueFunction(name, 1, flushed=True) for name in ("abs", "relu", "sign", "square")),
        *(ValueFunction(name, 1) for name in "cos exp log neg reciprocal rsqrt sigmoid sin softplus sqrt tanh".split()),
        *(ValueFunction(name, 1) for name in "atan ceil erf floor round trunc".split()),
        *(ValueFunction(name, 2, flushed=True, floats=twin, operations=1) for name, twin in _COMPARES.items()),
        ValueFunction("logical_not", 1, flushed=True, floats=_logical_not, operations=1),
        ValueFunction("where", 3, flushed=True, floats=_where, operations=1),
        ValueFunction("mod", 2, floats=_mod, operations=40),
        *(ValueFunction(name, 1 if name == "bit_not" else 2, operations=1) for name in _INTEGERS_ONLY),
    )
}
