"""Lists cut into segments: how a list of targets becomes segments, and their sums, for segmented kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels.portable._bits import Floats
from dashi.kernels.portable._sums import RUN

Ints = npt.NDArray[Any]


def segments(index: npt.ArrayLike, count: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], int]:
    """Groups the places of a target list: (order, offsets, longest) for `scatter_add_segmented`.

    `order[offsets[s]:offsets[s + 1]]` are the places i with index[i] == s, in rising order, for every s below `count`;
    places whose target is `count` or more come last, outside every segment. `longest` is the longest segment.
    """
    targets = np.asarray(index)
    if targets.ndim != 1 or (targets.dtype.kind not in "ui" and targets.size):
        raise InputError(
            f"targets must be a list of whole numbers, not {targets.dtype} of shape {targets.shape}.",
            "pass a list such as np.array([0, 2, 2], np.uint32).",
        )
    if targets.size and targets.min() < 0:
        raise InputError(f"a target is negative: {targets.min()}.", "number the targets from 0.")
    order = np.argsort(targets, kind="stable")
    offsets = np.searchsorted(targets[order], np.arange(count + 1))
    return order.astype(np.uint32), offsets.astype(np.uint32), int(np.diff(offsets).max(initial=0))


def segment_sums(values: Floats, starts: Ints, lengths: Ints) -> Floats:
    """The tree64 sum of values[starts[s] : starts[s] + lengths[s]] for every s; an empty segment sums to +0."""
    return segment_joins(values, starts, lengths, np.add, 0.0)


def segment_joins(
    values: Floats, starts: Ints, lengths: Ints, join: Callable[..., Any], start: float
) -> npt.NDArray[Any]:
    """What `join` makes of `start` and values[starts[s] : starts[s] + lengths[s]] for every s, in the order tree64."""
    while True:
        runs = -(-lengths // RUN)
        ends = np.cumsum(runs)
        owner = np.repeat(np.arange(len(runs)), runs)
        before = (np.arange(len(owner)) - (ends - runs)[owner]) * RUN
        values = _run_joins(values, starts[owner] + before, np.minimum(lengths[owner] - before, RUN), join, start)
        starts, lengths = ends - runs, runs
        if lengths.max(initial=0) <= 1:
            break
    result = np.full(len(lengths), start, values.dtype)
    result[lengths == 1] = values
    return result


def _run_joins(values: Floats, starts: Ints, lengths: Ints, join: Callable[..., Any], start: float) -> Floats:
    """Runs joined in index order."""
    total = np.full(len(starts), start, values.dtype)
    with np.errstate(all="ignore"):
        for j in range(int(lengths.max(initial=0))):
            inside = lengths > j
            total[inside] = join(total[inside], values[starts[inside] + j])
    return total
