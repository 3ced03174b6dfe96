"""Elementwise ops: functions of values, stretched to one shape by NumPy's rules. Each is the kernel of its name.

What `dashi.kernels.expressions` can put into a formula is fused; the others are kernels of their own, or steps of the
host."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._values import canonical
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.kernels._ops import OPS as FUNCTIONS
from dashi.types import HostArray, Shape
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.graph.builder import Operand, Tensor

BOOL: Final = dtype_of("bool")
_UNARY: Final = (
    "abs", "neg", "relu", "sign", "square", "cos", "exp", "log", "reciprocal", "rsqrt", "sigmoid", "sin", "softplus",
    "sqrt", "tanh", "erf", "atan", "floor", "ceil", "trunc", "round",
)  # fmt: skip
_BINARY: Final = ("add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2")
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
    integers = kind.dtype.name in ("i32", "u32") and function is not None and function.for_integers
    if kind.dtype.name not in ("f32", "f64") and not integers:
        raise GraphError(f"{node.op} is not defined for {kind.dtype}.", "cast to float32.")
    return TensorType(broadcast(types), kind.dtype)


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


def _number_op(name: str, inputs: int) -> Op:
    launch = None if name in FUNCTIONS else _launch
    return Op(name, _infer_number, _evaluate, "elementwise", arity=(inputs, inputs), launch=launch)


def _compare_op(name: str, function: Callable[..., Any]) -> Op:
    def evaluate(node: Node, x: HostArray, y: HostArray) -> HostArray:
        return np.asarray(function(x, y))

    return Op(name, _infer_compare, evaluate, "elementwise", arity=(2, 2))


def _launch_cast(node: Node, types: Sequence[TensorType]) -> Launch | None:
    flat = (math.prod(node.shape),)
    return Launch(kernels.cast(types[0].dtype.name, node.dtype.name), (flat,), flat)


def _cast_values(node: Node, x: HostArray) -> HostArray:
    kernel = kernels.cast(dtype_of(x.dtype).name, node.dtype.name)
    return np.asarray(kernel.reference(np.ascontiguousarray(x).reshape(-1))).reshape(x.shape)


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


def gelu(x: Tensor) -> Tensor:
    """x times the normal distribution function of x, by erf."""
    return x.builder.add(GELU, x)


def _expand_gelu(node: Node, x: Tensor) -> Tensor:
    return (x * 0.5) * (1.0 + erf(x * float(np.float32(math.sqrt(0.5)))))


def _gelu_values(node: Node, x: HostArray) -> HostArray:
    half, root, one = (np.asarray(v, x.dtype) for v in (0.5, np.float32(math.sqrt(0.5)), 1.0))
    return compute("mul", compute("mul", x, half), compute("add", one, compute("erf", compute("mul", x, root))))


GELU: Final = Op("gelu", _infer_number, _gelu_values, "elementwise", arity=(1, 1), expand=_expand_gelu)

OPS: Final = (
    *(_number_op(name, 1) for name in _UNARY),
    *(_number_op(name, 2) for name in _BINARY),
    *(_compare_op(name, function) for name, function in _COMPARE.items()),
    CAST, WHERE, COPY, GELU,
)  # fmt: skip


def unary(name: str) -> Callable[[Tensor], Tensor]:
    """The function that adds a node of an op of one input."""
    return lambda x: x.builder.apply(name, x)


def binary(name: str) -> Callable[[Tensor, Operand], Tensor]:
    """The function that adds a node of an op of two inputs; the second may be a number."""
    return lambda x, y: x.builder.apply(name, x, y)


absolute, relu, sign, square, cos, exp, log = map(unary, ("abs", "relu", "sign", "square", "cos", "exp", "log"))
reciprocal, rsqrt, sigmoid, sin = map(unary, ("reciprocal", "rsqrt", "sigmoid", "sin"))
softplus, sqrt, tanh, erf, atan = map(unary, ("softplus", "sqrt", "tanh", "erf", "atan"))
floor, ceil, trunc, round_ = map(unary, ("floor", "ceil", "trunc", "round"))
maximum, minimum, power, atan2 = map(binary, ("maximum", "minimum", "pow", "atan2"))
equal, not_equal, less, less_equal, greater, greater_equal = map(binary, _COMPARE)


def cast(x: Tensor, to: object) -> Tensor:
    """Another element type: floats are rounded, or cut towards zero for integers, which saturate."""
    return x.builder.add(CAST, x, to=dtype_of(to).name)  # pyright: ignore[reportArgumentType]


def where(condition: Tensor, x: Operand, y: Operand) -> Tensor:
    """x where the condition is true, else y: by selection, so that what is left out does not matter, NaN neither."""
    return condition.builder.apply("where", condition, x, y)


def clip(x: Tensor, lo: float, hi: float) -> Tensor:
    """x, but at least lo and at most hi."""
    return minimum(maximum(x, lo), hi)
