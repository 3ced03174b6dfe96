"""Reductions over axes, and maps whose results see the reduced values of their row: sums are tree64, maxima let NaN
win, roots and quotients are portable. Each is the kernel over rows of its kind (`dashi.kernels.rows`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Op
from dashi.graph.ops._places import axis_of
from dashi.graph.ops.elementwise import BOOL, cast, converted, is_narrow, one_dtype
from dashi.graph.ops.movement import expand, narrow
from dashi.kernels.abi import Kernel, View
from dashi.kernels.expressions import Expression, arguments, maximum, sqrt, square
from dashi.kernels.rows import Reduction, RowKind
from dashi.runtime._shapes import whole_number
from dashi.types import HostArray, Shape
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

REDUCTIONS: Final = ("sum", "mean", "max", "min", "prod", "sumsq", "l1", "l2", "logsumexp")
_WHOLE: Final[dict[str, Any]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
"""Reductions of whole numbers, which wrap round."""
_EXTREMES: Final = ("max", "min")
_MAPS: Final = {
    "softmax": "softmax",
    "log_softmax": "log_softmax",
    "standardize": "layer_norm",
    "rms_scale": "rms_norm",
}
_UNIT: Final = "unit"


def _unit_kind(epsilon: float) -> RowKind:
    """v / max(sqrt(sum of square(v)), epsilon)."""

    def length(total: Expression, _count: Expression, _earlier: Sequence[Expression]) -> Expression:
        return maximum(sqrt(total), epsilon)

    return RowKind((Reduction("sum", addend=square, settle=length),), lambda value, reduced: value / reduced[0])


def row_kernel(
    node: Node,
    rank: int,
    head: Expression,
    tail: Callable[[Expression], Expression] | None,
    inputs: str,
    views: Mapping[str, View],
) -> Kernel:
    """The kernel of a node of a reduction or a map over rows, with a head and a tail, for values of so many axes."""
    axes = row_axes(node, rank)
    if node.op in REDUCTIONS:
        return kernels.reduce_rows(node.op, head, tail, axes=axes, inputs=inputs, views=views)
    tails = () if tail is None else (tail,)
    epsilon = node.get("epsilon")
    eps = float(epsilon) if isinstance(epsilon, (int, float)) else 0.0
    kind = _unit_kind(eps) if node.op == _UNIT else _MAPS[node.op]
    return kernels.row_map(kind, head, *tails, eps=eps, axes=axes, inputs=inputs, views=views)


def row_axes(node: Node, rank: int) -> tuple[int, ...]:
    """The axes that are rows, of values of so many axes: those of the attribute `axes`, else the last. They count from
    the last, so that operands may have fewer."""
    return (-1,) if node.get("axes") is None else tuple(axis - rank for axis in node.integers("axes"))


@checked
def sum_(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Sum over axes."""
    return _reduced("sum", x, axes, keepdims)


@checked
def mean(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Sum over axes, divided by how many elements it has."""
    return _reduced("mean", x, axes, keepdims)


@checked
def max_(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Maximum over axes; NaN wins."""
    return _reduced("max", x, axes, keepdims)


@checked
def min_(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Minimum over axes; NaN wins."""
    return _reduced("min", x, axes, keepdims)


@checked
def prod(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Product over axes."""
    return _reduced("prod", x, axes, keepdims)


@checked
def norm(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Root of the sum of squares over axes."""
    return _reduced("l2", x, axes, keepdims)


@checked
def absolute_sum(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Sum of magnitudes over axes."""
    return _reduced("l1", x, axes, keepdims)


@checked
def square_sum(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Sum of squares over axes."""
    return _reduced("sumsq", x, axes, keepdims)


@checked
def logsumexp(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Logarithm of the sum of e^x over axes, safe from overflow."""
    return _reduced("logsumexp", x, axes, keepdims)


@checked
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """e^(x - max) divided by its sum along an axis."""
    return _along("softmax", x, axis)


@checked
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of softmax along an axis."""
    return _along("log_softmax", x, axis)


@checked
def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) along the last axis, times gamma, plus beta."""
    return x.builder.apply("standardize", x, epsilon=epsilon) * _weights(gamma, x) + _weights(beta, x)


@checked
def rms_norm(x: Tensor, gamma: Tensor, beta: Tensor | None = None, epsilon: float = 1e-6) -> Tensor:
    """x / sqrt(mean of squares + epsilon) along the last axis, times gamma; plus beta, if there is one."""
    scaled = x.builder.apply("rms_scale", x, epsilon=epsilon) * _weights(gamma, x)
    return scaled if beta is None else scaled + _weights(beta, x)


@checked
def unit(x: Tensor, epsilon: float = 1e-12) -> Tensor:
    """x divided by its length along the last axis, or by epsilon where that is longer."""
    return x.builder.apply(_UNIT, x, epsilon=epsilon)


def _along(op: str, x: Tensor, axis: int) -> Tensor:
    place = axis_of(x, axis)
    return x.builder.apply(op, x) if place == len(x.shape) - 1 else x.builder.apply(op, x, axes=[place])


def _weights(weights: Tensor, x: Tensor) -> Tensor:
    if weights.shape != x.shape[-1:]:
        raise GraphError(f"{weights.shape} are not the weights of {x.shape}.", "give one for each of the last axis.")
    return weights


def _reduced(op: str, x: Tensor, axes: Sequence[int] | int, keepdims: bool) -> Tensor:
    listed = [axes] if isinstance(axes, int) else [whole_number(axis, "an axis") for axis in axes]
    front = sorted(axis + len(x.shape) if axis < 0 else axis for axis in listed)
    return x.builder.apply(op, x, axes=front, keepdims=keepdims)


def _infer_reduction(node: Node, types: Sequence[TensorType]) -> TensorType:
    axes, shape = node.integers("axes"), one_dtype(types).shape
    if not types[0].dtype.is_float and node.op not in (_EXTREMES if types[0].dtype == BOOL else _WHOLE):
        raise GraphError(f"{node.op} is not defined for {types[0].dtype}.", "cast to float32.")
    _require_axes(axes, shape)
    if node.op in ("max", "min", "mean") and math.prod(shape[axis] for axis in axes) == 0:
        raise GraphError(f"no elements have no {node.op}.", "reduce over axes that are not empty.")
    kept = [1 if axis in axes else n for axis, n in enumerate(shape) if axis not in axes or node.get("keepdims")]
    return TensorType(tuple(kept), types[0].dtype)


def _require_axes(axes: Sequence[int], shape: Shape) -> None:
    if not axes or list(axes) != sorted(set(axes)) or any(not 0 <= axis < len(shape) for axis in axes):
        raise GraphError(f"{axes} are no axes of {shape}, in order, each once.", "count them from 0.")


def _infer_map(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind = one_dtype(types)
    if not kind.dtype.is_float or not kind.shape:
        raise GraphError(f"{node.op} needs one input of floats with a last axis.", "pass such.")
    if node.get("axes") is not None:
        _require_axes(node.integers("axes"), kind.shape)
    if 0 in (kind.shape[axis] for axis in row_axes(node, len(kind.shape))):
        raise GraphError(f"{node.op} has no rows without elements.", "reduce over axes that are not empty.")
    if node.op in ("standardize", "rms_scale", _UNIT):
        node.number("epsilon")
    return kind


def _evaluate(node: Node, x: HostArray) -> HostArray:
    own = dtype_of(x.dtype)
    if own.is_float and is_narrow(own):
        return converted(_evaluate(node, converted(x, "f32")), own.name)
    if not own.is_float:
        function = _WHOLE[node.op]
        return np.asarray(function(x, axis=node.integers("axes"), keepdims=True)).astype(x.dtype).reshape(node.shape)
    (value,) = arguments("value")
    kernel = row_kernel(node, x.ndim, value, None, "value", {})
    return np.asarray(kernel.reference(x)).reshape(_result_shape(node, x.shape))


def _expand(node: Node, x: Tensor) -> Tensor | None:
    """Halves are computed in float32; whole numbers are scanned, or put in order: the last or first is the result."""
    builder, kind, attributes = x.builder, node.dtype, dict[str, Any](node.attributes)
    if kind.is_float:
        return cast(builder.apply(node.op, cast(x, "f32"), **attributes), kind) if is_narrow(kind) else None
    axes, shape = node.integers("axes"), x.shape
    stay = [axis for axis in range(len(shape)) if axis not in axes]
    n = math.prod(shape[axis] for axis in axes)
    rows = x.transpose(*stay, *axes).reshape(math.prod(shape[axis] for axis in stay), n)
    if node.op in _EXTREMES:
        places = builder.apply("argsort", rows, count=1, descending=node.op == "max")
        return builder.apply("gather_elements", rows, places, axis=1).reshape(*node.shape)
    if not n:
        return expand(builder.constant(int(node.op == "prod"), kind), node.shape)
    scanned = builder.apply({"sum": "cumsum", "prod": "cumprod"}[node.op], rows, exclusive=False)
    return narrow(scanned, 1, n - 1, 1).reshape(*node.shape)


def _result_shape(node: Node, shape: Shape) -> Shape:
    if node.op not in REDUCTIONS:
        return shape
    axes = node.integers("axes")
    return tuple(1 if a in axes else n for a, n in enumerate(shape) if a not in axes or node.get("keepdims"))


OPS: Final = (
    *(Op(name, _infer_reduction, _evaluate, "rows", arity=(1, 1), expand=_expand) for name in REDUCTIONS),
    *(Op(name, _infer_map, _evaluate, "rows", arity=(1, 1), expand=_expand) for name in (*_MAPS, _UNIT)),
)
KINDS: Final = {op.name: op for op in OPS}
