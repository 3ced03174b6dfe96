"""Index maps: which elements of a dense array a transposed, sliced, expanded or reshaped one consists of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dashi.errors import GraphError
from dashi.graph.ir import Attribute
from dashi.kernels._fused_abi import collapse, indices
from dashi.kernels._fused_abi import dense as dense
from dashi.kernels.abi import View
from dashi.types import HostArray, Shape


def is_dense(view: View) -> bool:
    """Whether it names elements one behind another in C order, from the first on."""
    sizes, (steps,) = collapse(view.shape, [view.strides])
    return view.offset == 0 and (math.prod(view.shape) == 0 or not sizes or (len(sizes) == 1 and steps[0] == 1))


def reshaped(view: View, shape: Shape) -> View | None:
    """All elements in C order under another shape; None where no strides name them."""
    if math.prod(shape) == 0:
        return View(shape, tuple(0 for _ in shape), 0)
    sizes, (steps,) = collapse(view.shape, [view.strides])
    left, strides = list(zip(sizes, steps, strict=True)), list[int]()
    for length in reversed(shape):
        if length == 1:
            strides.append(0)
            continue
        size, step = left.pop()
        if size % length:
            return None
        strides.append(step)
        if size > length:
            left.append((size // length, step * length))
    return View(shape, tuple(reversed(strides)), view.offset)


def transposed(view: View, axes: Sequence[int]) -> View:
    """Axes in another order."""
    return View(tuple(view.shape[a] for a in axes), tuple(view.strides[a] for a in axes), view.offset)


def sliced(view: View, starts: Sequence[int], steps: Sequence[int], shape: Shape) -> View:
    """Along each axis every `steps`-th element from `starts` on, so many as `shape` says."""
    if math.prod(shape) == 0:
        return View(shape, tuple(0 for _ in shape), 0)
    offset = view.offset + sum(start * stride for start, stride in zip(starts, view.strides, strict=True))
    return View(shape, tuple(s * stride for s, stride in zip(steps, view.strides, strict=True)), offset)


def expanded(view: View, shape: Shape) -> View:
    """Axes of length 1, and new ones in front, repeated."""
    missing = len(shape) - len(view.shape)
    steps = [0] * missing + [0 if n == 1 else s for n, s in zip(view.shape, view.strides, strict=True)]
    return View(shape, tuple(steps), view.offset if math.prod(shape) else 0)


def read_through(view: View | None, values: HostArray) -> HostArray:
    """The elements of an array that a view names; all of them where there is none."""
    if view is None:
        return values
    if math.prod(view.shape) == 0:
        return np.zeros(view.shape, values.dtype)
    return values.reshape(-1)[indices(view)]


def view_attribute(view: View | None) -> Attribute:
    """A view as an attribute of a node."""
    return None if view is None else (view.shape, view.strides, view.offset)


def attribute_view(attribute: Attribute) -> View | None:
    """The view that an attribute of a node stands for."""
    if attribute is None:
        return None
    match attribute:
        case (tuple(shape), tuple(strides), offset) if len(shape) == len(strides):
            numbers = _integers((*shape, *strides, offset))
            if numbers is not None:
                return View(numbers[: len(shape)], numbers[len(shape) : -1], numbers[-1])
        case _:
            pass
    raise GraphError(f"{attribute!r} is no view.", "write [shape, strides, offset], all in whole numbers.")


def _integers(values: tuple[Attribute, ...]) -> tuple[int, ...] | None:
    """The numbers themselves; None where one is something else, a truth value for instance."""
    numbers = tuple(value for value in values if type(value) is int)
    return numbers if len(numbers) == len(values) else None


def require_inside(view: View, size: int) -> None:
    """An error where a view reaches beyond an array of so many elements."""
    lowest, highest = view.bounds()
    if any(length < 0 for length in view.shape) or lowest < 0 or highest >= size:
        raise GraphError(f"a view of the elements {lowest} to {highest} of {size}.", "keep it inside.")
