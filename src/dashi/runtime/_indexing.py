"""Which bytes of a C-ordered array an index names, if they lie in one piece."""

from __future__ import annotations

import math
from operator import index as as_integer
from typing import Any, cast

from dashi.errors import BoundsError, UnsupportedOperationError
from dashi.types import Shape


def contiguous_part(shape: Shape, index: Any) -> tuple[int, Shape]:
    """The first element (in C order) and the shape of the part that `array[index]` names. Integers, slices without a
    step and `...` are understood. Raises UnsupportedOperationError where the elements do not lie in one piece."""
    axes = _per_axis(shape, index)
    part = tuple(length for _, length, keep in axes if keep)
    if 0 in part:
        return 0, part
    # In one piece: axes of one element each, then one axis cut anywhere, then whole axes.
    cut = next((i for i, (_, length, _) in enumerate(axes) if length != 1), len(axes))
    if any(length != size for (_, length, _), size in zip(axes[cut + 1 :], shape[cut + 1 :], strict=True)):
        raise UnsupportedOperationError(
            f"the part {_text(index)} of an array of shape {shape} does not lie in one piece of memory.",
            f"take whole rows; or copy by way of the host: device.array(array.numpy()[{_text(index)}]).",
        )
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return sum(start * stride for (start, _, _), stride in zip(axes, strides, strict=True)), part


def _per_axis(shape: Shape, index: Any) -> list[tuple[int, int, bool]]:
    """(first, length, whether the axis stays) for every axis."""
    items = cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,)
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    named = len(items) - len(dots)
    if len(dots) > 1 or named > len(shape):
        raise BoundsError(
            f"{_text(index)} names more axes than an array of shape {shape} has.",
            f"name at most {len(shape)}, with one ... at most.",
        )
    place = dots[0] if dots else len(items)
    whole = (slice(None),) * (len(shape) - named)
    items = (*items[:place], *whole, *items[place + len(dots) :])
    return [_axis(shape, axis, item) for axis, item in enumerate(items)]


def _axis(shape: Shape, axis: int, item: Any) -> tuple[int, int, bool]:
    size = shape[axis]
    if isinstance(item, slice):
        start, stop, step = _slice(cast("slice[Any, Any, Any]", item), size)
        length = len(range(start, stop, step))
        if step != 1 and length > 1:
            raise UnsupportedOperationError(
                f"a slice of an array on a device cannot have the step {step}.",
                "take whole ranges; or copy by way of the host: device.array(array.numpy()[::step]).",
            )
        return start, length, True
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        raise UnsupportedOperationError(
            f"arrays on a device are not indexed by {type(item).__name__}.",
            "use whole numbers and slices; an axis more comes from array.reshape(...), elements by a list of their "
            "numbers from the kernel 'gather'.",
        )
    try:
        number = as_integer(item)
    except TypeError:
        raise UnsupportedOperationError(
            f"arrays on a device are not indexed by {type(item).__name__}.",
            "use whole numbers and slices; elements by a list of their numbers come from the kernel 'gather'.",
        ) from None
    if not -size <= number < size:
        raise BoundsError(
            f"index {number} is out of bounds for axis {axis}, which has {size} elements.",
            f"use {-size} to {size - 1}." if size else "check `len(array)` first: it is empty.",
        )
    return number % size, 1, False


def _slice(item: slice[Any, Any, Any], size: int) -> tuple[int, int, int]:
    try:
        return item.indices(size)
    except (TypeError, ValueError) as error:
        raise UnsupportedOperationError(
            f"{_text(item)} is not a slice of whole numbers: {error}.", "use ints."
        ) from None


def _text(index: Any) -> str:
    """An index as it is written between brackets."""
    if isinstance(index, tuple):
        return ", ".join(map(_text, cast("tuple[Any, ...]", index)))
    if index is Ellipsis:
        return "..."
    if isinstance(index, slice):
        cut = cast("slice[Any, Any, Any]", index)
        ends = ["" if end is None else str(end) for end in (cut.start, cut.stop, cut.step)]
        return ":".join(ends if ends[2] else ends[:2])
    return str(index)
