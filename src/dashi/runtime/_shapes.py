"""Shapes and lengths as callers give them."""

from __future__ import annotations

import math
from operator import index
from typing import Any

from dashi.errors import InputError, ShapeError
from dashi.types import Shape


def whole_number(value: Any, what: str) -> int:
    """Any integer, as Python's own."""
    try:
        return index(value)
    except TypeError:
        raise InputError(f"{what} must be a whole number, not {value!r}.", "pass an int.") from None


def sizes_of(shape: Any) -> Shape:
    """A length, or several, as a shape."""
    try:
        return (index(shape),)
    except TypeError:
        pass
    try:
        return tuple(index(length) for length in shape)
    except TypeError:
        raise ShapeError(
            f"{shape!r} is not a shape.", "give a length or a tuple of lengths, all whole: 3 or (4, 5)."
        ) from None


def resolved_shape(size: int, shape: Shape, asked: Shape) -> Shape:
    """The shape that `reshape` gives an array of that many elements: -1 stands for the length that is left."""
    free = [i for i, n in enumerate(asked) if n == -1]
    known = math.prod(n for n in asked if n != -1)
    if len(free) == 1 and known > 0 and size % known == 0:
        asked = (*asked[: free[0]], size // known, *asked[free[0] + 1 :])
    if any(n < 0 for n in asked) or math.prod(asked) != size:
        raise ShapeError(
            f"an array of shape {shape} cannot have the shape {asked}.",
            f"give lengths whose product is {size}; one of them may be -1.",
        )
    return asked
