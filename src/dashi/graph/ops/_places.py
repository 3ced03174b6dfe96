"""Places of elements in the flat order of an array, as values of a graph: what gathers and scatters go by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph.ir import TensorType
from dashi.graph.ops.elementwise import cast, less, logical_and, maximum, minimum, where
from dashi.graph.ops.movement import expand
from dashi.kernels._storage import COMPUTE
from dashi.types import Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Builder, Tensor

NOWHERE: Final = (1 << 32) - 1
"""The place that no array has: gathers find 0 there, scatters ignore it."""
_FARTHEST: Final = 1 << 31
"""Lengths up to which indices of 32 bits count from the end, too."""


@dataclass(frozen=True)
class Index:
    """Indices (uint32) along an axis of `length` elements that lie `stride` apart; those past its end are nowhere."""

    values: Tensor
    length: int
    stride: int


def strides_of(shape: Shape) -> tuple[int, ...]:
    """How far neighbours along each axis of a dense array lie apart."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def counted(builder: Builder, rank: int, axis: int, length: int, stride: int) -> Tensor:
    """0, stride, 2 stride, ... along one axis of so many."""
    values = np.arange(length, dtype=np.uint64) * stride
    return builder.constant(values.astype(np.uint32).reshape(length, *(1,) * (rank - 1 - axis)))


def flat_places(builder: Builder, shape: Shape, offsets: Sequence[Tensor], indices: Sequence[Index]) -> Tensor:
    """The sum of offsets and of indices times their strides, stretched to a shape; nowhere, where an index is past the
    end of its axis."""
    zero = builder.constant(0, "u32")
    total, inside = zero, None
    for offset in offsets:
        total = offset if total is zero else total + offset
    for index in indices:
        term = index.values if index.stride == 1 else index.values * index.stride
        total = term if total is zero else total + term
        fits = less(index.values, index.length)
        inside = fits if inside is None else logical_and(inside, fits)
    chosen = total if inside is None else where(inside, total, NOWHERE)
    return expand(chosen, shape)


def axis_of(x: Tensor, axis: int) -> int:
    """An axis of a value counted from 0; negative ones count from the last."""
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise GraphError(f"{x.name!r} of shape {x.shape} has no axis {axis}.", f"name one of its {rank}, from 0 on.")
    return axis % rank


def resolved(index: Tensor, lengths: int | Sequence[int]) -> Tensor:
    """Indices as uint32: negative ones count from the end, and what is still outside is past every end. `lengths` is
    that of the axis, or one for each of the last axis of the indices."""
    if index.dtype.name == "u32" or index.dtype.kind not in "ui":  # what is no integer, the op refuses
        return index
    longest = lengths if isinstance(lengths, int) else max(lengths, default=0)
    wide = "i64" if index.dtype.size == 8 or longest >= _FARTHEST else "i32"
    if index.dtype.name == "u64":  # past every end, rather than negative
        index = minimum(index, _FARTHEST * 2)
    values = cast(index, wide)
    listed = lengths if isinstance(lengths, int) else index.builder.constant(np.asarray(lengths), wide)
    counted_on = where(less(values, 0), values + listed, values)
    # -1 becomes the largest uint32.
    return cast(minimum(maximum(counted_on, -1), listed), "u32")


def widened(x: Tensor) -> Tensor:
    """Elements of 32 bits at least, as kernels that move words have them."""
    wide = COMPUTE.get(x.dtype.name, x.dtype.name)
    return x if wide == x.dtype.name else cast(x, wide)


def narrowed(x: Tensor, kind: TensorType) -> Tensor:
    """What `widened` was applied to, as it was."""
    return x if x.dtype == kind.dtype else cast(x, kind.dtype)
