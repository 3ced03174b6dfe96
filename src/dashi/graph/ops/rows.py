"""Reductions over axes, and maps whose results see the reduced values of their row: sums are tree64, maxima let NaN
win, roots and quotients are portable. Each is the kernel over rows of its kind (`dashi.kernels.rows`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Op
from dashi.graph.ops.elementwise import one_dtype
from dashi.kernels.abi import Kernel, View
from dashi.kernels.expressions import Expression, arguments, maximum, sqrt, square
from dashi.kernels.rows import Reduction, RowKind
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

REDUCTIONS: Final = ("sum", "mean", "max", "min", "prod", "sumsq", "l2")
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
    if node.op in REDUCTIONS:
        # Axes count from the last, so that operands may have fewer.
        axes = tuple(axis - rank for axis in node.integers("axes"))
        return kernels.reduce_rows(node.op, head, tail, axes=axes, inputs=inputs, views=views)
    tails = () if tail is None else (tail,)
    epsilon = node.get("epsilon")
    eps = float(epsilon) if isinstance(epsilon, (int, float)) else 0.0
    kind = _unit_kind(eps) if node.op == _UNIT else _MAPS[node.op]
    return kernels.row_map(kind, head, *tails, eps=eps, axes=-1, inputs=inputs, views=views)


def sum_(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Sum over axes."""
    return _reduced("sum", x, axes, keepdims)


def mean(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Sum over axes, divided by how many elements it has."""
    return _reduced("mean", x, axes, keepdims)


def max_(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Maximum over axes; NaN wins."""
    return _reduced("max", x, axes, keepdims)


def min_(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Minimum over axes; NaN wins."""
    return _reduced("min", x, axes, keepdims)


def prod(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Product over axes."""
    return _reduced("prod", x, axes, keepdims)


def norm(x: Tensor, axes: Sequence[int] | int, keepdims: bool = False) -> Tensor:
    """Root of the sum of squares over axes."""
    return _reduced("l2", x, axes, keepdims)


def softmax(x: Tensor) -> Tensor:
    """e^(x - max) divided by its sum along the last axis."""
    return x.builder.apply("softmax", x)


def log_softmax(x: Tensor) -> Tensor:
    """The logarithm of softmax along the last axis."""
    return x.builder.apply("log_softmax", x)


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) along the last axis, times gamma, plus beta."""
    return x.builder.apply("standardize", x, epsilon=epsilon) * _weights(gamma, x) + _weights(beta, x)


def rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Tensor:
    """x / sqrt(mean of squares + epsilon) along the last axis, times gamma."""
    return x.builder.apply("rms_scale", x, epsilon=epsilon) * _weights(gamma, x)


def unit(x: Tensor, epsilon: float = 1e-12) -> Tensor:
    """x divided by its length along the last axis, or by epsilon where that is longer."""
    return x.builder.apply(_UNIT, x, epsilon=epsilon)


def _weights(weights: Tensor, x: Tensor) -> Tensor:
    if weights.shape != x.shape[-1:]:
        raise GraphError(f"{weights.shape} are not the weights of {x.shape}.", "give one for each of the last axis.")
    return weights


def _reduced(op: str, x: Tensor, axes: Sequence[int] | int, keepdims: bool) -> Tensor:
    listed = [axes] if isinstance(axes, int) else list(axes)
    front = sorted(axis + len(x.shape) if axis < 0 else axis for axis in listed)
    return x.builder.apply(op, x, axes=front, keepdims=keepdims)


def _infer_reduction(node: Node, types: Sequence[TensorType]) -> TensorType:
    axes, shape = node.integers("axes"), one_dtype(types).shape
    if types[0].dtype.name not in ("f32", "f64"):
        raise GraphError(f"{node.op} is not defined for {types[0].dtype}.", "cast to float32.")
    if not axes or list(axes) != sorted(set(axes)) or any(not 0 <= axis < len(shape) for axis in axes):
        raise GraphError(f"{axes} are no axes of {shape}, in order, each once.", "count them from 0.")
    if node.op in ("max", "min", "mean") and math.prod(shape[axis] for axis in axes) == 0:
        raise GraphError(f"no elements have no {node.op}.", "reduce over axes that are not empty.")
    kept = [1 if axis in axes else n for axis, n in enumerate(shape) if axis not in axes or node.get("keepdims")]
    return TensorType(tuple(kept), types[0].dtype)


def _infer_map(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind = one_dtype(types)
    if kind.dtype.name not in ("f32", "f64") or not kind.shape or not kind.shape[-1]:
        raise GraphError(f"{node.op} needs one input of floats with a last axis.", "pass such.")
    if node.op in ("standardize", "rms_scale", _UNIT):
        node.number("epsilon")
    return kind


def _evaluate(node: Node, x: HostArray) -> HostArray:
    (value,) = arguments("value")
    kernel = row_kernel(node, x.ndim, value, None, "value", {})
    return np.asarray(kernel.reference(x)).reshape(_result_shape(node, x.shape))


def _result_shape(node: Node, shape: Shape) -> Shape:
    if node.op not in REDUCTIONS:
        return shape
    axes = node.integers("axes")
    return tuple(1 if a in axes else n for a, n in enumerate(shape) if a not in axes or node.get("keepdims"))


OPS: Final = (
    *(Op(name, _infer_reduction, _evaluate, "rows", arity=(1, 1)) for name in REDUCTIONS),
    *(Op(name, _infer_map, _evaluate, "rows", arity=(1, 1)) for name in (*_MAPS, _UNIT)),
)
KINDS: Final = {op.name: op for op in OPS}
