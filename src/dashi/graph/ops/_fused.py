"""What the pass `fuse` makes: elementwise ops as one `map`, or as head and tail of reductions (`rows`) and products.

Each is the composition of its parts, and has their bits. `views` says how each input is read, null where as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError, ShapeError
from dashi.graph._lines import BodyLine, compute_type, evaluate_lines, express_lines, infer_lines, parse_lines
from dashi.graph._views import attribute_view, dense, read_through, require_inside, reshaped, view_attribute
from dashi.graph.ir import Node, TensorType, attributes_of
from dashi.graph.op import Launch, Op
from dashi.graph.ops.products import MATMUL, is_matrix_product, matrix_shapes, product_type
from dashi.graph.ops.rows import KINDS, REDUCTIONS, row_axes, row_kernel
from dashi.kernels._fused_abi import stretched, strides
from dashi.kernels._rows_abi import fold
from dashi.kernels.abi import Kernel, View
from dashi.kernels.expressions import Expression, arguments
from dashi.kernels.linear._product_forms import product
from dashi.types import HostArray, Shape

_FLOATS: Final = ("f32", "f64")
"""Types that rows are reduced and mapped in."""


def lines_of(node: Node, attribute: str = "body") -> tuple[BodyLine, ...]:
    """The lines of a node's formula."""
    return parse_lines(node.get(attribute))


def views_of(node: Node) -> tuple[View | None, ...]:
    """How a node reads each of its inputs."""
    views = node.get("views")
    if not isinstance(views, tuple):
        raise GraphError(f"the node {node.name!r} has no views.", "give one for each input, or null.")
    return tuple(attribute_view(view) for view in views)


def texts(lines: Sequence[BodyLine]) -> list[str]:
    """Lines as an attribute."""
    return [str(line) for line in lines]


def map_attributes(lines: Sequence[BodyLine], views: Sequence[View | None]) -> dict[str, object]:
    """The attributes of a map."""
    return {"body": texts(lines), "views": [view_attribute(view) for view in views]}


def read_types(node: Node, types: Sequence[TensorType]) -> dict[str, TensorType]:
    """The types of `in0`, `in1`, ..."""
    views = views_of(node)
    if len(views) != len(types):
        raise GraphError(f"{len(views)} views for {len(types)} inputs.", "give each input a view, or null.")
    for view, kind in zip(views, types, strict=True):
        if view is not None:
            require_inside(view, kind.size)
    pairs = enumerate(zip(views, types, strict=True))
    return {f"in{k}": kind if view is None else TensorType(view.shape, kind.dtype) for k, (view, kind) in pairs}


def read_values(node: Node, values: Sequence[HostArray]) -> dict[str, HostArray]:
    """The values of `in0`, `in1`, ..."""
    views = views_of(node)
    return {f"in{k}": read_through(view, v) for k, (view, v) in enumerate(zip(views, values, strict=True))}


def arguments_of(count: int) -> dict[str, Expression]:
    """`in0`, `in1`, ... as arguments of formulas."""
    names = [f"in{k}" for k in range(count)]
    return dict(zip(names, arguments(" ".join(names)), strict=True))


def _through(views: Sequence[View | None]) -> dict[str, View]:
    return {f"in{k}": view for k, view in enumerate(views) if view is not None}


def _can_walk(
    fold_axes: Callable[[Sequence[View]], object], views: Sequence[View | None], types: Sequence[TensorType]
) -> bool:
    """Whether a kernel has as many axes as operands need that do not lie behind one another in memory."""
    try:
        fold_axes([view or dense(kind.shape) for view, kind in zip(views, types, strict=True)])
    except ShapeError:
        return False
    return True


def _infer_map(node: Node, types: Sequence[TensorType]) -> TensorType:
    result = infer_lines(lines_of(node), read_types(node, types))
    if len(numbers := {kind.dtype.name for kind in (*types, result)} - {"bool"}) > 1:
        raise GraphError(f"a map of {' and '.join(sorted(numbers))}.", "compute in one type, and cast by itself.")
    return result


def _evaluate_map(node: Node, *values: HostArray) -> HostArray:
    return evaluate_lines(lines_of(node), read_values(node, values))


@cache
def _map_kernel(lines: tuple[BodyLine, ...], views: tuple[View | None, ...], types: tuple[str, ...]) -> Kernel:
    named = arguments_of(len(views))
    fixed = dict(zip((*named, "result"), types, strict=True)) if len({*types}) > 1 or "bf16" in types else None
    compute = compute_type(types) if fixed else None
    return kernels.fuse(
        express_lines(lines, named), inputs=" ".join(named), views=_through(views), types=fixed, compute=compute
    )


def _launch_map(node: Node, types: Sequence[TensorType]) -> Launch | None:
    if not _can_walk(lambda shown: strides(node.shape, shown), views_of(node), types):
        return None
    kinds = (*(kind.dtype.name for kind in types), node.dtype.name)
    kernel = _map_kernel(lines_of(node), views_of(node), kinds)
    return Launch(kernel, tuple(kind.shape for kind in types), node.shape)


def _row_node(node: Node, kind: TensorType) -> Node:
    """The node of the reduction, or map over rows, between head and tail."""
    name = str(node.get("kind"))
    if name not in KINDS:
        raise GraphError(f"there is no kind {name!r} of rows.", f"use one of {', '.join(KINDS)}.")
    kept = {key: node.get(key) for key in ("axes", "keepdims", "epsilon") if node.get(key) is not None}
    return Node(node.name, name, (), kind, attributes_of(kept))


def _infer_rows(node: Node, types: Sequence[TensorType]) -> TensorType:
    read = read_types(node, types)
    head = infer_lines(lines_of(node, "head"), {**read, "value": read["in0"]})
    if head.dtype.name not in _FLOATS or {kind.dtype for kind in types} != {head.dtype}:
        listed = sorted({str(kind.dtype) for kind in (head, *types)})
        raise GraphError(f"rows of {' and '.join(listed)}.", f"cast all to one of {', '.join(_FLOATS)}.")
    middle = KINDS[_row_node(node, head).op].infer(_row_node(node, head), [head])
    return infer_tail(node, read, middle)


def infer_tail(node: Node, read: Mapping[str, TensorType], middle: TensorType) -> TensorType:
    """The type of a reduction or product behind its tail, whose operands may not stretch it."""
    result = infer_lines(lines_of(node, "tail"), {**read, "value": middle})
    if result.shape != middle.shape:
        raise GraphError(f"a tail stretches {middle} to {result}.", "let a map do it.")
    return result


def _evaluate_rows(node: Node, *values: HostArray) -> HostArray:
    read = read_values(node, values)
    head = evaluate_lines(lines_of(node, "head"), {**read, "value": read["in0"]})
    kind = TensorType(head.shape, node.dtype)
    row = _row_node(node, kind)
    row = Node(row.name, row.op, (), KINDS[row.op].infer(row, [kind]), row.attributes)
    middle = KINDS[row.op].evaluate(row, head).reshape(row.shape)
    return evaluate_lines(lines_of(node, "tail"), {**read, "value": middle})


def _launch_rows(node: Node, types: Sequence[TensorType]) -> Launch | None:
    head, tail, views = lines_of(node, "head"), lines_of(node, "tail"), views_of(node)
    read = read_types(node, types)
    row = _row_node(node, types[0])
    shape = infer_lines(head, {**read, "value": read["in0"]}).shape
    result = node.shape
    if row.op in REDUCTIONS:
        axes = node.integers("axes")
        result = tuple(n for axis, n in enumerate(shape) if axis not in axes)
        if not node.get("keepdims"):
            views = _whole_rows(tail, views, types, axes, len(shape))
    if not _can_walk(lambda shown: _fold_rows(row, len(shape), shown), views, types):
        return None
    kernel = _rows_kernel(replace(row, name=""), len(shape), head, tail, views)
    return Launch(kernel, tuple(kind.shape for kind in types), result)


def row_operands(node: Node, types: Sequence[TensorType]) -> tuple[Shape, tuple[int, ...], frozenset[int]]:
    """The shape of what a node of `rows` reduces or maps, the axes along which it does, and which of its inputs are
    read at the places of its result: those of the tail of a reduction."""
    read = read_types(node, types)
    shape = infer_lines(lines_of(node, "head"), {**read, "value": read["in0"]}).shape
    row = _row_node(node, types[0])
    if row.op not in REDUCTIONS:
        return shape, tuple(axis + len(shape) for axis in row_axes(row, len(shape))), frozenset()
    words = {word for line in lines_of(node, "tail") for word in line.operands}
    return shape, row.integers("axes"), frozenset(k for k in range(len(types)) if f"in{k}" in words)


def _fold_rows(row: Node, rank: int, views: Sequence[View]) -> None:
    shape = np.broadcast_shapes(*(view.shape for view in views))
    fold(shape, row_axes(row, rank), views, row.op not in REDUCTIONS)


@cache
def _rows_kernel(
    row: Node, rank: int, head: tuple[BodyLine, ...], tail: tuple[BodyLine, ...], views: tuple[View | None, ...]
) -> Kernel:
    named = arguments_of(len(views))
    return row_kernel(
        row,
        rank,
        express_lines(head, {**named, "value": named["in0"]}),
        (lambda value: express_lines(tail, {**named, "value": value})) if tail else None,
        " ".join(named),
        _through(views),
    )


def _whole_rows(
    tail: Sequence[BodyLine],
    views: Sequence[View | None],
    types: Sequence[TensorType],
    axes: Sequence[int],
    rank: int,
) -> tuple[View | None, ...]:
    """The views of a reduction of values of so many axes, whose result lacks the reduced ones: the operands of its tail
    have them, of length 1."""
    late = {word for line in tail for word in line.operands}
    listed = enumerate(zip(views, types, strict=True))
    return tuple(_with_ones(view, kind, axes, rank) if f"in{k}" in late else view for k, (view, kind) in listed)


def _with_ones(view: View | None, kind: TensorType, axes: Sequence[int], rank: int) -> View:
    """An operand of a tail, as values for whole rows of `rank` axes: the reduced axes are there, with length 1."""
    shown = view or dense(kind.shape)
    shape, strides = list(shown.shape), list(shown.strides)
    missing = rank - len(axes) - len(shape)
    shape, strides = [1] * missing + shape, [0] * missing + strides
    for axis in sorted(axes):
        shape.insert(axis, 1)
        strides.insert(axis, 0)
    return View(tuple(shape), tuple(strides), shown.offset)


def _infer_product(node: Node, types: Sequence[TensorType]) -> TensorType:
    read = read_types(node, types)
    return infer_tail(node, read, MATMUL.infer(node, [read["in0"], read["in1"]]))


def _evaluate_product(node: Node, *values: HostArray) -> HostArray:
    read = read_values(node, values)
    return evaluate_lines(lines_of(node, "tail"), {**read, "value": MATMUL.evaluate(node, read["in0"], read["in1"])})


@cache
def _product_kernel(lines: tuple[BodyLine, ...], views: tuple[View | None, ...], portable: bool) -> Kernel:
    named = arguments_of(len(views))
    (value,) = arguments("value")
    through: Mapping[str, View] = {{"in0": "a", "in1": "b"}.get(k, k): v for k, v in _through(views).items()}
    others = " ".join(list(named)[2:])
    return kernels.fuse_product(
        express_lines(lines, {**named, "value": value}), views=through, inputs=others, portable=portable
    )


def _launch_product(node: Node, types: Sequence[TensorType]) -> Launch | None:
    lines, views = lines_of(node, "tail"), views_of(node)
    shapes: tuple[Shape, ...] = tuple(kind.shape for kind in types)
    result = node.shape
    if node.get("shape") is not None:
        read = read_types(node, types)
        result = product_type([read["in0"], read["in1"]]).shape
        others = operands_of_product(
            node.shape, result, [v or dense(s) for v, s in zip(views, shapes, strict=True)][2:]
        )
        if others is None:
            return None
        views = (*views[:2], *others)
    if not _can_walk(lambda shown: product(shown[0], shown[1], shown[2:], result), views, types):
        return None
    method = node.get("method")
    if not lines and views == (None, None):
        if method in _METHODS and is_matrix_product(types):
            matrices = matrix_shapes(*types)
            return Launch(kernels.get(_METHODS[str(method)]), matrices, (matrices[0][0], matrices[1][1]))
        if method is None:
            return Launch(kernels.get("matmul"), shapes, result)
    return Launch(_product_kernel(lines, views, portable=method != "fast"), shapes, result)


def operands_of_product(shape: Shape, result: Shape, views: Sequence[View]) -> tuple[View, ...] | None:
    """Operands of a tail that stretch to a shape in which a product is written, as ones that stretch to the shape
    (..., m, n) of the product; None where no strides say it."""
    turned = [reshaped(stretched(view, shape), result) for view in views]
    return tuple(view for view in turned if view is not None) if None not in turned else None


_METHODS: Final = {"fast": "gemm_fast", "scalar": "gemm_scalar"}
"""Kernels of plain products by the method that `choose_products` names."""
MAP: Final = Op("map", _infer_map, _evaluate_map, arity=(1, None), launch=_launch_map)
ROWS: Final = Op("rows", _infer_rows, _evaluate_rows, arity=(1, None), launch=_launch_rows)
PRODUCT: Final = Op("product", _infer_product, _evaluate_product, arity=(2, None), launch=_launch_product)
OPS: Final = (MAP, ROWS, PRODUCT)
