"""Lists of indices that operators are given, checked at the boundary: what is wrong, and where."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashi.core.operators.operator import float_array, require_finite
from dashi.errors import DTypeError, InputError, ShapeError
from dashi.types import HostArray

_MOST = 1 << 32


def index_array(name: str, values: Any, below: int | None = None) -> HostArray:
    """The values as a read-only list of uint32, each below a bound."""
    array = np.asarray(values)
    if array.dtype.kind not in "ui" and array.size:
        raise DTypeError(f"{name} is an array of {array.dtype}, not of indices.", f"pass {name}.astype(np.uint32).")
    if array.ndim != 1:
        raise ShapeError(f"{name} has shape {array.shape}; it must be a list.", f"pass {name} with one axis.")
    bound = _MOST if below is None else below
    wrong = np.flatnonzero((array < 0) | (array >= bound))
    if wrong.size:
        raise InputError(
            f"{name}[{wrong[0]}] is {array[wrong[0]]}, which is not an index from 0 to {bound - 1}.",
            f"let every entry of {name} be below {bound}, counting from 0.",
        )
    made = array.astype(np.uint32)
    made.setflags(write=False)
    return made


def pointer_array(name: str, values: Any, entries: int) -> HostArray:
    """The values as the ends of lists: from 0, never falling, to the number of entries."""
    indices = index_array(name, values)
    if indices.size == 0:
        raise ShapeError(f"{name} is empty.", f"begin {name} with 0 and add one end for each list.")
    ends = indices.astype(np.int64)
    falls = np.flatnonzero(np.diff(ends) < 0)
    if falls.size:
        at = int(falls[0]) + 1
        raise InputError(
            f"{name}[{at}] is {ends[at]}, below {name}[{at - 1}] = {ends[at - 1]}.",
            "sort the entries by their list first, so that the ends never fall.",
        )
    if ends[0] != 0 or ends[-1] != entries:
        raise InputError(
            f"{name} runs from {ends[0]} to {ends[-1]}, but there are {entries} entries.",
            f"let {name} begin with 0 and end with {entries}.",
        )
    return indices


def require_rising(name: str, values: HostArray, ends: HostArray, what: str) -> None:
    """Refuses a list whose indices do not rise: the order is part of the sum, and no index comes twice."""
    steps = np.diff(values.astype(np.int64)) <= 0
    starts = ends.astype(np.int64)[1:-1]
    steps[starts[(starts > 0) & (starts < values.size)] - 1] = False
    if steps.any():
        at = int(np.flatnonzero(steps)[0]) + 1
        raise InputError(
            f"{name}[{at}] = {values[at]} does not come after {name}[{at - 1}] = {values[at - 1]} in the same {what}.",
            f"sort the entries of each {what}, and add up those with the same index.",
        )


def number_array(name: str, values: Any, shape: tuple[int, ...], kind: np.dtype[Any] | None = None) -> HostArray:
    """Finite numbers of that shape, and of that element type if one is named."""
    weights = float_array(name, values)
    if weights.shape != shape:
        raise ShapeError(f"{name} has shape {weights.shape}; it must be {shape}.", f"pass {name} of shape {shape}.")
    if kind is not None and weights.dtype != kind:
        raise DTypeError(f"{name} is {weights.dtype}, the rest is {kind}.", f"pass {name}.astype(np.{kind}).")
    require_finite(name, weights)
    return weights


def longest_of(ends: HostArray) -> int:
    """The length of the longest list."""
    return int(np.diff(ends.astype(np.int64)).max(initial=0))
