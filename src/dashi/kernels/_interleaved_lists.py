"""Lists that lie side by side in memory, for kernels whose neighbouring invocations take neighbouring lists.

The lists of 32 neighbouring outputs share a slab as deep as the longest of them: entry p of list k lies at
slab[k // 32] + 32 p + k % 32. `heads` holds the length of every list, then the place of every slab. What lies between
short lists means nothing, and is never read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import LimitError, ShapeError
from dashi.kernels._lists import Ints, Lists, lists_at
from dashi.kernels._work import ceil_div
from dashi.types import HostArray

SLAB: Final = 32


def interleave(offsets: Ints, *entries: HostArray) -> tuple[npt.NDArray[np.uint32], tuple[npt.NDArray[Any], ...]]:
    """The heads, and the entries of lists (offsets into arrays of one length) moved to their places."""
    lists = lists_at(offsets, len(entries[0]), len(entries[0]))
    lengths = lists.lengths
    deepest = np.maximum.reduceat(lengths, np.arange(0, len(lengths), SLAB)) if len(lengths) else lengths
    after = np.cumsum(SLAB * deepest)
    slots = int(after[-1]) if len(after) else 0
    if slots >= 1 << 32:
        raise LimitError(
            f"lists of up to {lengths.max()} entries need {slots} places side by side, more than 32 bits can count.",
            "split the operator into several, and add what they make.",
        )
    starts = after - SLAB * deepest
    places = starts[lists.owner // SLAB] + SLAB * lists.place + lists.owner % SLAB
    moved: list[npt.NDArray[Any]] = []
    for array in entries:
        target = np.zeros((slots, *array.shape[1:]), array.dtype)
        target[places] = array[lists.order]
        moved.append(target)
    return np.concatenate([lengths, starts]).astype(np.uint32), tuple(moved)


def lists_in_slabs(heads: Ints, width: int, slots: int, longest: int) -> Lists:
    """The lists that heads describe, among so many places."""
    numbers = heads.astype(np.int64)
    lengths, output = numbers[:width], np.arange(width)
    # Places are counted in 32 bits on a device.
    base = (numbers[width:][output // SLAB] + output % SLAB) % (1 << 32)
    whole = (lengths == 0) | ((lengths <= longest) & (base + (lengths - 1) * SLAB < slots))
    bare = Lists(output[:0], np.where(whole, lengths, 0), whole)
    return replace(bare, order=base[bare.owner] + SLAB * bare.place)


def require_heads(kernel: str, width: int, heads: int) -> None:
    """One length for each list, one place for each slab."""
    needed = width + ceil_div(width, SLAB)
    if heads != needed:
        raise ShapeError(
            f"kernel {kernel!r}: {width} outputs need {needed} heads, {heads} given.",
            "make them with dashi.kernels._interleaved_lists.interleave.",
        )
