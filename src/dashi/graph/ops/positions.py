"""Ops that know tokens by their positions: rotary embeddings, and rows written into a cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import MOST_ELEMENTS, Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops.elementwise import compute, one_dtype
from dashi.graph.ops.movement import expand, slice_
from dashi.kernels import portable
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


@checked
def rope(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = False, heads_last: bool = False) -> Tensor:
    """Rotary embedding of x (..., S, D), or (..., S, H, D) with `heads_last`, by tables of angles (S, R / 2), or
    (B, S, R / 2) with rows of their own for each of the first axis: `gather` them by positions.

    The first R of D are pairs (a, b): elements i and i + R / 2, or 2 i and 2 i + 1 (`interleaved`). They become
    (a cos - b sin, b cos + a sin); what lies behind R stays as it is. J. Su et al., RoFormer, arXiv 2104.09864."""
    return x.builder.add(ROPE, x, cos, sin, interleaved=interleaved, heads_last=heads_last)


@checked
def rope_tables(
    positions: int, depth: int, *, base: float = 10000.0, frequencies: Sequence[float] | None = None
) -> tuple[HostArray, HostArray]:
    """Cosines and sines, float32 of shape (positions, depth / 2), of position times base^(-2 i / depth), or times
    `frequencies`. They are computed in fp64, with the same bits on every machine, and rounded once."""
    if depth < 2 or depth % 2 or positions < 0 or positions * depth > MOST_ELEMENTS:
        raise GraphError(
            f"there are no tables of {positions} positions for {depth}.", "use an even depth, and fewer positions."
        )
    exponents = np.arange(0, depth, 2, dtype=np.float64) / -depth
    own = None if frequencies is None else np.asarray(frequencies, np.float64)
    if own is not None and own.shape != exponents.shape:
        raise GraphError(f"{own.shape} are no frequencies for a depth of {depth}.", "give one for each pair.")
    steps = portable.pow(np.full_like(exponents, base), exponents) if own is None else own
    angles = portable.mul(np.arange(positions, dtype=np.float64)[:, None], steps[None, :])
    cos, sin = (np.asarray(function(angles)).astype(np.float32) for function in (portable.cos, portable.sin))
    return portable.canon(cos), portable.canon(sin)


@checked
def write_rows(x: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
    """x (B, n, ...) with rows (B, m, ...) in the places of its own from row `positions[b]` on, in each batch b: new
    keys or values of a cache. `positions` (B,) is uint32; rows that would lie past the end are left out."""
    return x.builder.add(WRITE_ROWS, x, rows, positions)


def _token_axis(node: Node) -> int:
    return -3 if node.get("heads_last") else -2


def _infer_rope(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, cos, sin = types
    kind, axis = one_dtype(types), _token_axis(node)
    if kind.dtype.name not in ("f32", "f64") or len(x.shape) < -axis or cos.shape != sin.shape:
        raise GraphError("rope needs x (..., S, D), and cosines and sines of one shape.", "pass floats of such shapes.")
    tables = (x.shape[axis], cos.shape[-1] if cos.shape else 0)
    own = (x.shape[0], *tables) if len(x.shape) > -axis else tables
    if cos.shape not in (tables, own) or not 0 < 2 * tables[1] <= x.shape[-1]:
        raise GraphError(
            f"{cos} are no angles of {x} with {tables[0]} tokens.",
            f"pass (S, R / 2) or (B, S, R / 2), R to {x.shape[-1]}.",
        )
    return kind


def _table_shape(node: Node, x: Shape, table: Shape) -> Shape:
    """The shape in which a table stretches to x without its last axis: axes of length 1 for heads."""
    shape = [1] * (len(x) - 1) + [table[-1]]
    shape[_token_axis(node)] = x[_token_axis(node)]
    shape[0] = table[0] if len(table) == 3 else shape[0]
    return tuple(shape)


def _evaluate_rope(node: Node, x: HostArray, cos: HostArray, sin: HostArray) -> HostArray:
    half = cos.shape[-1]
    tables = [table.reshape(_table_shape(node, x.shape, table.shape)) for table in (cos, sin)]
    result = x.copy()
    first, second = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
        if node.get("interleaved")
        else (slice(half), slice(half, 2 * half))
    )
    a, b = x[..., first], x[..., second]
    result[..., first] = compute("sub", compute("mul", a, tables[0]), compute("mul", b, tables[1]))
    result[..., second] = compute("add", compute("mul", b, tables[0]), compute("mul", a, tables[1]))
    return result


def _expand_rope(node: Node, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x cos + (pairs the other way round) (-sin, sin): one map, which reads x through two views."""
    half, last = cos.shape[-1], len(x.shape) - 1
    front, pairs = x.shape[:-1], (half, 2) if node.get("interleaved") else (2, half)
    axis = last + bool(node.get("interleaved"))
    turned = x if 2 * half == x.shape[-1] else slice_(x, [0] * (last + 1), [*front, 2 * half])
    turned = turned.reshape(*front, *pairs)
    swapped = slice_(turned, [0] * axis + [-1], [None] * (axis + 1), [1] * axis + [-1])
    signs = x.builder.constant(
        np.array([-1, 1], x.dtype.numpy).reshape([2 if a == axis else 1 for a in range(last + 2)])
    )
    shape = [*_table_shape(node, x.shape, cos.shape)]
    shape.insert(axis, 1)
    stretch = [expand(table.reshape(*shape), turned.shape) for table in (cos, sin)]
    result = turned * stretch[0] + (swapped * stretch[1]) * expand(signs, turned.shape)
    result = result.reshape(*front, 2 * half)
    if 2 * half == x.shape[-1]:
        return result
    rest = slice_(x, [0] * last + [2 * half], [*front, None])
    return x.builder.apply("concat", result, rest, axis=last)


def _infer_write(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, rows, positions = types
    kind = one_dtype(types[:2])
    if kind.dtype.name not in ("f32", "f64") or positions.dtype.name != "u32":
        raise GraphError(f"{rows} cannot be written into {x} at {positions}.", "pass floats, and positions of uint32.")
    fits = len(x.shape) == len(rows.shape) >= 2 and x.shape[0] == rows.shape[0] and x.shape[2:] == rows.shape[2:]
    if not fits or positions.shape != x.shape[:1]:
        raise GraphError(
            f"{rows} are no rows of {x}, or {positions} no positions.", "pass (B, n, ...), (B, m, ...) and (B,)."
        )
    return kind


def _lists(shape: Shape) -> Shape:
    return (*shape[:2], math.prod(shape[2:]))


def _evaluate_write(node: Node, x: HostArray, rows: HostArray, positions: HostArray) -> HostArray:
    values = (np.ascontiguousarray(v).reshape(_lists(v.shape)) for v in (x, rows))
    return np.asarray(kernels.get("write_rows").reference(*values, positions)).reshape(node.shape)


def _launch_write(node: Node, types: Sequence[TensorType]) -> Launch:
    x, rows, positions = (kind.shape for kind in types)
    return Launch(kernels.get("write_rows"), (_lists(x), _lists(rows), positions), _lists(node.shape))


ROPE: Final = Op("rope", _infer_rope, _evaluate_rope, arity=(3, 3), expand=_expand_rope)
WRITE_ROWS: Final = Op("write_rows", _infer_write, _evaluate_write, arity=(3, 3), launch=_launch_write)
OPS: Final = (ROPE, WRITE_ROWS)
