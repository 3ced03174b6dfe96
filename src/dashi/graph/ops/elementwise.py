"""Elementwise ops: functions of values, stretched to one shape by NumPy's rules. Each is the kernel of its name.

What `dashi.kernels.expressions` can put into a formula is fused; the others are kernels of their own, or steps of the
host."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, ParamSpec

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph._values import canonical
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.kernels._ops import OPS as FUNCTIONS
from dashi.kernels._storage import COMPUTE
from dashi.types import DType, HostArray, Shape
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.graph.builder import Operand, Tensor

_P = ParamSpec("_P")
BOOL: Final = dtype_of("bool")
_UNARY: Final = (
    "abs", "neg", "relu", "sign", "square", "cos", "exp", "log", "reciprocal", "rsqrt", "sigmoid", "sin", "softplus",
    "sqrt", "tanh", "erf", "atan", "floor", "ceil", "trunc", "round",
)  # fmt: skip
_BINARY: Final = (
    "add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2", "mod", "quotient", "bit_and", "bit_or", "bit_xor",
    "shift_left", "shift_right",
)  # fmt: skip
_LOGICAL: Final = {"logical_and": 2, "logical_or": 2, "logical_xor": 2, "logical_not": 1}
_COMPARE: Final = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip


def broadcast(types: Sequence[TensorType]) -> Shape:
    """The shape that values are stretched to."""
    try:
        return np.broadcast_shapes(*(kind.shape for kind in types))
    except ValueError as error:
        shapes = " and ".join(str(kind.shape) for kind in types)
        raise GraphError(f"shapes {shapes} do not fit.", "lengths must be equal, or 1.") from error


def one_dtype(types: Sequence[TensorType]) -> TensorType:
    """The first type, if all have the same elements."""
    if any(kind.dtype != types[0].dtype for kind in types):
        raise GraphError(f"{' and '.join(str(kind.dtype) for kind in types)} do not mix.", "cast them to one type.")
    return types[0]


def _infer_number(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind = one_dtype(types)
    function = FUNCTIONS.get(node.op)
    is_float = kind.dtype.is_float
    known = (function.for_floats if is_float else function.for_integers) if function else is_float
    if kind.dtype == BOOL or kind.dtype.name not in COMPUTE or not known:
        raise GraphError(f"{node.op} is not defined for {kind.dtype}.", f"cast to {'int' if is_float else 'float'}32.")
    return TensorType(broadcast(types), kind.dtype)


def _infer_logical(node: Node, types: Sequence[TensorType]) -> TensorType:
    if any(kind.dtype != BOOL for kind in types):
        raise GraphError(f"{node.op} is not defined for {one_dtype(types).dtype}.", "compare, or cast to bool.")
    return TensorType(broadcast(types), BOOL)


def _infer_compare(node: Node, types: Sequence[TensorType]) -> TensorType:
    one_dtype(types)
    return TensorType(broadcast(types), BOOL)


def _infer_where(node: Node, types: Sequence[TensorType]) -> TensorType:
    if types[0].dtype != BOOL:
        raise GraphError(f"the condition is {types[0].dtype}.", "compare something, to have truth values.")
    return TensorType(broadcast(types), one_dtype(types[1:]).dtype)


def _infer_cast(node: Node, types: Sequence[TensorType]) -> TensorType:
    return TensorType(types[0].shape, dtype_of(str(node.get("to"))))


def compute(op: str, *values: HostArray) -> HostArray:
    """What an op makes of values, by its kernel's reference; the shapes are stretched."""
    function = FUNCTIONS.get(op)
    if is_narrow(dtype_of(values[0].dtype)):
        own, computed = dtype_of(values[0].dtype).name, COMPUTE[dtype_of(values[0].dtype).name]
        return converted(compute(op, *(converted(v, computed) for v in values)), own)
    stretched = [np.ascontiguousarray(v) for v in np.broadcast_arrays(*values)]
    with np.errstate(all="ignore"):
        if function is not None:
            return canonical(function.twin(*stretched))
        return canonical(np.asarray(kernels.get(op).reference(*stretched)))


def _evaluate(node: Node, *values: HostArray) -> HostArray:
    return compute(node.op, *values)


def _launch(node: Node, types: Sequence[TensorType]) -> Launch | None:
    """The kernel of that name, for dense inputs of one shape."""
    if any(kind.shape != node.shape for kind in types):
        return None
    flat = (math.prod(node.shape),)
    return Launch(kernels.get(node.op), tuple(flat for _ in types), flat)


def is_narrow(kind: DType) -> bool:
    """Whether numbers of a type are computed in a wider one, and rounded or wrapped round after every op."""
    return kind != BOOL and COMPUTE.get(kind.name, kind.name) != kind.name


def _expand_narrow(node: Node, *inputs: Tensor) -> Tensor | None:
    """The op of wider numbers, narrowed again; None where they are wide."""
    if not is_narrow(node.dtype):
        return None
    wide = COMPUTE[node.dtype.name]
    return cast(inputs[0].builder.apply(node.op, *(cast(x, wide) for x in inputs)), node.dtype)


def _number_op(name: str, inputs: int) -> Op:
    launch, arity = None if name in FUNCTIONS else _launch, (inputs, inputs)
    return Op(name, _infer_number, _evaluate, "elementwise", arity=arity, expand=_expand_narrow, launch=launch)


def _logical_op(name: str, inputs: int) -> Op:
    def evaluate(node: Node, *values: HostArray) -> HostArray:
        return FUNCTIONS[name].twin(*(np.asarray(v) for v in values))

    return Op(name, _infer_logical, evaluate, "elementwise", arity=(inputs, inputs))


def _compare_op(name: str, function: Callable[..., Any]) -> Op:
    def evaluate(node: Node, x: HostArray, y: HostArray) -> HostArray:
        return np.asarray(function(x, y))

    return Op(name, _infer_compare, evaluate, "elementwise", arity=(2, 2))


def _launch_cast(node: Node, types: Sequence[TensorType]) -> Launch | None:
    flat = (math.prod(node.shape),)
    return Launch(kernels.cast(types[0].dtype.name, node.dtype.name), (flat,), flat)


def converted(x: HostArray, to: str) -> HostArray:
    """Values of another element type, as `cast` has them: those of bf16 are float32 on the host."""
    kernel = kernels.cast(dtype_of(x.dtype).name, to)
    stored = np.asarray(kernel.reference(np.ascontiguousarray(x).reshape(-1)))
    return (dtype_of(to).from_bytes(stored) if to == "bf16" else stored).reshape(x.shape)


def _cast_values(node: Node, x: HostArray) -> HostArray:
    return converted(x, node.dtype.name)


def _where_values(node: Node, condition: HostArray, x: HostArray, y: HostArray) -> HostArray:
    return np.where(condition, x, y)


def _infer_copy(node: Node, types: Sequence[TensorType]) -> TensorType:
    return types[0]


def _copy_values(node: Node, x: HostArray) -> HostArray:
    return x


CAST: Final = Op("cast", _infer_cast, _cast_values, "elementwise", arity=(1, 1), launch=_launch_cast)
WHERE: Final = Op("where", _infer_where, _where_values, "elementwise", arity=(3, 3))
COPY: Final = Op("copy", _infer_copy, _copy_values, "elementwise", arity=(1, 1))
"""The value itself: what passes put where a value must lie in memory of its own."""


OPS: Final = (
    *(_number_op(name, 1) for name in _UNARY),
    *(_number_op(name, 2) for name in _BINARY),
    *(_compare_op(name, function) for name, function in _COMPARE.items()),
    *(_logical_op(name, inputs) for name, inputs in _LOGICAL.items()),
    CAST, WHERE, COPY,
)  # fmt: skip


def unary(name: str) -> Callable[[Tensor], Tensor]:
    """The function that adds a node of an op of one input."""

    def function(x: Tensor) -> Tensor:
        return x.builder.apply(name, x)

    return _named(function, name)


def binary(name: str) -> Callable[[Tensor, Operand], Tensor]:
    """The function that adds a node of an op of two inputs; the second may be a number."""

    def function(x: Tensor, y: Operand) -> Tensor:
        return x.builder.apply(name, x, y)

    return _named(function, name)


def _named(function: Callable[_P, Tensor], name: str) -> Callable[_P, Tensor]:
    """The function under the name of its op, with its arguments checked."""
    function.__name__ = name
    return checked(function)


absolute, relu, sign, square, cos, exp, log = map(unary, ("abs", "relu", "sign", "square", "cos", "exp", "log"))
reciprocal, rsqrt, sigmoid, sin = map(unary, ("reciprocal", "rsqrt", "sigmoid", "sin"))
softplus, sqrt, tanh, erf, atan = map(unary, ("softplus", "sqrt", "tanh", "erf", "atan"))
floor, ceil, trunc, round_ = map(unary, ("floor", "ceil", "trunc", "round"))
maximum, minimum, power, atan2, mod = map(binary, ("maximum", "minimum", "pow", "atan2", "mod"))
logical_and, logical_or, logical_xor = map(binary, ("logical_and", "logical_or", "logical_xor"))
bit_and, bit_or, bit_xor = map(binary, ("bit_and", "bit_or", "bit_xor"))
shift_left, shift_right = map(binary, ("shift_left", "shift_right"))
equal, not_equal, less, less_equal, greater, greater_equal = map(binary, _COMPARE)


@checked
def cast(x: Tensor, to: object) -> Tensor:
    """Another element type: floats are rounded, or cut towards zero for integers, which saturate."""
    return x.builder.add(CAST, x, to=dtype_of(to).name)  # pyright: ignore[reportArgumentType]


@checked
def where(condition: Tensor, x: Operand, y: Operand) -> Tensor:
    """x where the condition is true, else y: by selection, so that what is left out does not matter, NaN neither."""
    return condition.builder.apply("where", condition, x, y)


@checked
def logical_not(x: Tensor) -> Tensor:
    """True where x is not."""
    return x.builder.apply("logical_not", x)


@checked
def divide(x: Tensor, y: Operand) -> Tensor:
    """x / y, correctly rounded; of integers towards 0, and 0 where y is 0."""
    return x.builder.apply("div" if x.dtype.is_float else "quotient", x, y)


@checked
def truncated_mod(x: Tensor, y: Operand) -> Tensor:
    """x - y trunc(x / y), which has the sign of x; `mod`, x - y floor(x / y), has that of y. Of integers 0 is x - 0."""
    whole = divide(x, y)
    return x - (trunc(whole) if x.dtype.is_float else whole) * y


@checked
def fma(x: Tensor, y: Operand, z: Operand) -> Tensor:
    """x y + z, rounded after the product and after the sum."""
    return x * y + z


@checked
def clip(x: Tensor, lo: Operand | None = None, hi: Operand | None = None) -> Tensor:
    """x, but at least lo, and then at most hi; NaN stays."""
    least = x if lo is None else maximum(x, lo)
    return least if hi is None else minimum(least, hi)


@checked
def is_nan(x: Tensor) -> Tensor:
    """True where x is not a number."""
    return not_equal(x, x)


@checked
def is_infinite(x: Tensor, negative: bool = True, positive: bool = True) -> Tensor:
    """True where x is infinite, of either sign or of one alone."""
    limit = x.builder.constant(float("inf"), x.dtype)
    values = absolute(x) if negative and positive else x if positive else -x
    return equal(values, limit) if negative or positive else less(x, x)
