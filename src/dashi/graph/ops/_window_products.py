"""Products of weights with windows, which are read where they lie: convolutions without a matrix of windows.

Weights are (groups, m, k), windows (n, channels, *taps, *windows), as a view of a value in its frame; the channels of a
group and their taps are k. The result is that of the product of matrices (n, groups, k, windows), written in the shape
of the node's attribute `shape`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final

from dashi.errors import GraphError, ShapeError
from dashi.graph._lines import BodyLine, evaluate_lines, express_lines
from dashi.graph._values import canonical
from dashi.graph._views import dense, require_inside
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops._fused import (
    arguments_of,
    infer_tail,
    lines_of,
    operands_of_product,
    read_types,
    read_values,
    views_of,
)
from dashi.graph.ops.elementwise import one_dtype
from dashi.kernels._window_fusion import fuse_window_product, require_windows
from dashi.kernels.abi import Kernel, View
from dashi.kernels.expressions import arguments
from dashi.kernels.linear._product_forms import contract_batches
from dashi.types import HostArray, Shape


def matrix_shape(weights: Shape, windows: Shape) -> Shape:
    """The shape (n, groups, m, windows) of such a product."""
    require_windows(dense(weights), dense(windows))
    return (windows[0], *weights[:2], math.prod(windows[2 + (len(windows) - 2) // 2 :]))


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind = one_dtype(types)
    if kind.dtype.name not in ("f32", "f64"):
        raise GraphError(f"there is no product of {kind.dtype}.", "cast to float32.")
    result, shape = matrix_shape(types[0].shape, types[1].shape), node.integers("shape")
    if min(shape, default=0) < 0 or math.prod(shape) != math.prod(result):
        raise GraphError(f"a product of {result} is no array of shape {shape}.", "keep the number of elements.")
    return TensorType(shape, kind.dtype)


def _evaluate(node: Node, weights: HostArray, windows: HostArray) -> HostArray:
    n, groups, _, columns = matrix_shape(weights.shape, windows.shape)
    matrices = windows.reshape(n, groups, weights.shape[2], columns)
    return canonical(contract_batches(weights, matrices)).reshape(node.integers("shape"))


def _infer_fused(node: Node, types: Sequence[TensorType]) -> TensorType:
    read = read_types(node, types)
    return infer_tail(node, read, _infer(node, [read["in0"], read["in1"]]))


def _evaluate_fused(node: Node, *values: HostArray) -> HostArray:
    read = read_values(node, values)
    return evaluate_lines(lines_of(node, "tail"), {**read, "value": _evaluate(node, read["in0"], read["in1"])})


def _launch(node: Node, types: Sequence[TensorType]) -> Launch | None:
    views = [view or dense(kind.shape) for view, kind in zip(views_of(node), types, strict=True)]
    for view, kind in zip(views, types, strict=True):
        require_inside(view, kind.size)
    result = matrix_shape(views[0].shape, views[1].shape)
    others = operands_of_product(node.shape, result, views[2:])
    if others is None:
        return None
    try:
        kernel = _kernel(lines_of(node, "tail"), (*views[:2], *others))
    except ShapeError:
        return None
    return Launch(kernel, tuple(kind.shape for kind in types), result)


@cache
def _kernel(lines: tuple[BodyLine, ...], views: tuple[View, ...]) -> Kernel:
    named = arguments_of(len(views))
    (value,) = arguments("value")
    others = dict(zip([*named][2:], views[2:], strict=True))
    tail = express_lines(lines, {**named, "value": value})
    return fuse_window_product(tail, "value", views[0], views[1], others)


WINDOW_MATMUL: Final = Op("window_matmul", _infer, _evaluate, "product", arity=(2, 2))
WINDOW_PRODUCT: Final = Op("window_product", _infer_fused, _evaluate_fused, arity=(2, None), launch=_launch)
"""What the pass `fuse` makes of it, with a tail."""
OPS: Final = (WINDOW_MATMUL, WINDOW_PRODUCT)
