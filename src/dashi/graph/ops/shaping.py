"""Values made larger, cut into triangles, or spread over classes: pad, tile, one-hot, triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, cast

import numpy as np

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph._values import values_of_type
from dashi.graph.ir import MOST_ELEMENTS, Node, TensorType
from dashi.graph.ops import elementwise
from dashi.graph.ops._compositions import composition
from dashi.graph.ops._places import Index, counted, flat_places, resolved, strides_of
from dashi.graph.ops.elementwise import equal, less, where
from dashi.graph.ops.indexing import take
from dashi.graph.ops.movement import expand, slice_

if TYPE_CHECKING:
    from dashi.graph.builder import Operand, Tensor

PadMode = Literal["constant", "reflect", "edge", "wrap"]
_MODES: Final = ("constant", "reflect", "edge", "wrap")


@checked
def pad(x: Tensor, widths: Sequence[tuple[int, int]], mode: PadMode = "constant", value: float = 0) -> Tensor:
    """x with so many elements before and behind along each axis: `value`, or what x has at the mirrored place
    (reflect), at its edge, or from its other end on (wrap). Negative widths cut elements off."""
    before, after = ([int(pair[side]) for pair in widths] for side in (0, 1))
    return x.builder.apply("pad", x, before=before, after=after, mode=mode, value=value)


@checked
def tile(x: Tensor, repeats: Sequence[int]) -> Tensor:
    """x repeated so many times along each axis."""
    if len(repeats) != len(x.shape) or min(repeats, default=0) < 0:
        raise GraphError(
            f"{x.name!r} of shape {x.shape} is not repeated {list(repeats)} times.", "give each axis a number from 0."
        )
    apart: list[int] = []
    whole: list[int] = []
    for length, times in zip(x.shape, repeats, strict=True):
        apart += [length] if times == 1 else [1, length]
        whole += [length] if times == 1 else [times, length]
    lengths = [length * times for length, times in zip(x.shape, repeats, strict=True)]
    return expand(x.reshape(*apart), whole).reshape(*lengths)


@checked
def one_hot(
    index: Tensor, depth: int, axis: int = -1, on: Operand = 1.0, off: Operand = 0.0, dtype: object = "f32"
) -> Tensor:
    """`on` where the index along a new axis of `depth` classes is that of the element, else `off`; an index outside has
    no class. Signed indices count from the end where they are negative."""
    if not 0 <= depth <= MOST_ELEMENTS:
        raise GraphError(f"there cannot be {depth} classes.", f"pass a depth of 0 to {MOST_ELEMENTS}.")
    rank = len(index.shape) + 1
    if not -rank <= axis < rank:
        raise GraphError(f"there is no axis {axis} among {rank}.", f"name one from {-rank} to {rank - 1}.")
    place = axis % rank
    whole = elementwise.cast(index, "i64") if index.dtype.is_float else index
    classes = counted(index.builder, rank, place, depth, 1)
    spread = resolved(whole, depth).reshape(*index.shape[:place], 1, *index.shape[place:])
    values = [v if not isinstance(v, (int, float)) else index.builder.constant(v, dtype) for v in (on, off)]
    return where(equal(spread, classes), *values)


@checked
def lower_triangle(x: Tensor, diagonal: int = 0) -> Tensor:
    """x where its column is at most its row plus `diagonal`, else 0, in each matrix of the last two axes."""
    return _triangle(x, diagonal, lower=True)


@checked
def upper_triangle(x: Tensor, diagonal: int = 0) -> Tensor:
    """x where its column is at least its row plus `diagonal`, else 0, in each matrix of the last two axes."""
    return _triangle(x, diagonal, lower=False)


def _triangle(x: Tensor, diagonal: int, lower: bool) -> Tensor:
    if len(x.shape) < 2:
        raise GraphError(f"{x.name!r} of shape {x.shape} is no matrix.", "pass two axes or more.")
    rows, columns = x.shape[-2:]
    # Columns count from `rows` on, so that no number is negative.
    first = min(max(diagonal, -rows), columns) + rows
    edges = np.arange(first, first + rows, dtype=np.uint32).reshape(rows, 1)
    last = x.builder.constant(edges)
    places = x.builder.constant(np.arange(rows, rows + columns, dtype=np.uint32))
    inside = elementwise.less_equal(places, last) if lower else elementwise.greater_equal(places, last)
    return where(inside, x, x.builder.constant(0, x.dtype))


def _widths(node: Node, shape: Sequence[int]) -> list[tuple[int, int]]:
    before, after = node.integers("before"), node.integers("after")
    if not len(before) == len(after) == len(shape):
        raise GraphError(f"{len(before)} and {len(after)} widths for {len(shape)} axes.", "give two for each axis.")
    return list(zip(before, after, strict=True))


def _infer_pad(node: Node, types: Sequence[TensorType]) -> TensorType:
    shape, mode = types[0].shape, node.get("mode")
    widths = _widths(node, shape)
    node.number("value")
    values_of_type("value", node.get("value"), types[0].dtype)
    if mode not in _MODES:
        raise GraphError(f"there is no mode {mode!r} of padding.", f"use one of {', '.join(_MODES)}.")
    lengths = [length + before + after for length, (before, after) in zip(shape, widths, strict=True)]
    empty = any(not length and max(pair) > 0 for length, pair in zip(shape, widths, strict=True))
    if min(lengths, default=0) < 0 or (empty and mode != "constant"):
        raise GraphError(f"{shape} cannot be padded by {widths} ({mode}).", "keep lengths of 0 or more.")
    return TensorType(tuple(lengths), types[0].dtype)


def _expand_pad(node: Node, x: Tensor) -> Tensor:
    widths, mode, builder = _widths(node, x.shape), cast("PadMode", node.get("mode")), x.builder
    number = node.get("value")
    value = builder.constant(number, x.dtype)
    if not x.node.type.size:
        return expand(value, node.shape)
    if all(pair[0] <= 0 and pair[1] <= 0 for pair in widths):
        stops = [length + after for length, (_, after) in zip(x.shape, widths, strict=True)]
        return slice_(x, [-before for before, _ in widths], stops)
    offsets: list[Tensor] = []
    indices: list[Index] = []
    rank, strides = len(x.shape), strides_of(x.shape)
    for axis, (length, pair, stride) in enumerate(zip(x.shape, widths, strides, strict=True)):
        listed = _padded_places(length, pair, mode)
        turned = listed.reshape(-1, *(1,) * (rank - 1 - axis))
        if mode == "constant" and max(pair) > 0:
            indices.append(Index(builder.constant(turned), length, stride))
        else:
            offsets.append(builder.constant((turned * np.uint64(stride)).astype(np.uint32)))
    places = flat_places(builder, node.shape, offsets, indices)
    values = take(x, places)
    return values if not number or not indices else where(less(places, x.node.type.size), values, value)


def _padded_places(length: int, pair: tuple[int, int], mode: PadMode) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """The element along an axis at each place of the padded one; `length`, where there is none."""
    wider = (max(pair[0], 0), max(pair[1], 0))
    if mode == "constant":
        listed = np.pad(np.arange(length), wider, constant_values=length)
    else:
        listed = np.pad(np.arange(length), wider, mode=mode)
    cut = listed[max(-pair[0], 0) : len(listed) - max(-pair[1], 0)]
    return cut.astype(np.uint32)


PAD: Final = composition("pad", _infer_pad, _expand_pad, (1, 1))
OPS: Final = (PAD,)
