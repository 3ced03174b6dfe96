"""What became of every blob between two frames: it goes on, splits, merges into another, or ends.

First blobs are matched one to one (`assignment`). A blob without a match that lies, moved as its thread last moved, on
a blob of the next frame that another one became, has merged into it; a new blob that lies on one of the frame before
has split off. Half of its points are enough; with a fifth the circulation must fit better so than otherwise, with fewer
it must fit. Of those that merge the one with the larger circulation goes on (then the smaller index); likewise of those
that split.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from dashi.filament.threads.assignment import Features, MatchWeights, assign, distances
from dashi.filament.threads.blobs import Blobs, Floats, Integers

_SURE: Final = 0.5
"""Points of a blob on another that are enough for a merge or a split, as a share."""
_LIKELY: Final = 0.2
"""The share that is enough where the circulation fits better so."""
_FITTING: Final = 0.3
"""Circulation may be missing, as a share of the smaller part's, where touching in a point is enough."""


class EdgeKind(IntEnum):
    """What an edge of the genealogy says."""

    CONTINUATION = 0
    SPLIT = 1
    MERGE = 2


@dataclass(frozen=True, order=True)
class Edge:
    """From a blob of one frame to one of the next, both by index."""

    parent: int
    child: int
    kind: EdgeKind


def link(
    a: Blobs, b: Blobs, length: float, weights: MatchWeights, motion: tuple[Floats, Floats] | None = None
) -> list[Edge]:
    """The edges between two frames; `motion` is how far every blob of the first is expected to move, along x and y."""
    if not len(a) or not len(b):
        return []
    dx, dy = motion if motion is not None else (np.zeros(len(a)), np.zeros(len(a)))
    d = distances(
        Features(a.x + dx, a.y + dy, a.gamma, a.radius), Features(b.x, b.y, b.gamma, b.radius), length, weights
    )
    matches = assign(d, weights.most)
    step = length / a.labels.shape[0]
    common = _overlap(a, b, np.rint(dy / step).astype(np.int64), np.rint(dx / step).astype(np.int64))
    return _completed(a, b, dict(matches), common)


def _overlap(a: Blobs, b: Blobs, rows: Integers, columns: Integers) -> Integers:
    """Points that every blob of the first frame, moved by so many rows and columns, shares with each of the second.
    Where two are moved onto one point, it is that of the larger circulation."""
    n = a.labels.shape[0]
    flat = a.labels.ravel()
    points = np.flatnonzero(flat)
    owner = flat[points].astype(np.int64)
    moved = ((points // n + rows[owner - 1]) % n) * n + (points % n + columns[owner - 1]) % n
    expected = np.full(n * n, len(a) + 1, np.int64)
    np.minimum.at(expected, moved, owner)
    there = b.labels.ravel().astype(np.int64)
    both = (expected <= len(a)) & (there > 0)
    keys = (expected[both] - 1) * len(b) + there[both] - 1
    return np.bincount(keys, minlength=len(a) * len(b)).reshape(len(a), len(b))


def _completed(a: Blobs, b: Blobs, matches: dict[int, int], common: Integers) -> list[Edge]:
    """The matches, and splits and merges of what has none."""
    origin = {child: parent for parent, child in matches.items()}
    merged: dict[int, list[int]] = {}
    split: dict[int, list[int]] = {}
    for i in (index for index in range(len(a)) if index not in matches):
        j = _home(common[i], a.gamma[i], b.gamma)
        if j is not None and j in origin and _belongs(common[i, j] / a.points[i], b.gamma[j], a, origin[j], i):
            merged.setdefault(j, []).append(i)
    for j in (index for index in range(len(b)) if index not in origin):
        i = _home(common[:, j], b.gamma[j], a.gamma)
        if i is None:
            continue
        if i not in matches:
            if not any(i in parents for parents in merged.values()) and i not in split:
                split[i] = [j]
        elif _belongs(common[i, j] / b.points[j], a.gamma[i], b, matches[i], j):
            split.setdefault(i, []).append(j)
    return _edges(a, b, matches, merged, split)


def _home(shared: Integers, gamma: np.int64, others: Integers) -> int | None:
    """The blob of the same sign with the most points in common; of several the one that comes first."""
    alike = np.where(np.sign(others) == np.sign(gamma), shared, 0)
    best = int(np.argmax(alike))
    return best if alike[best] > 0 else None


def _belongs(share: float, whole: np.int64, parts: Blobs, main: int, more: int) -> bool:
    """Whether a part lies on the whole, and its circulation belongs to it."""
    without = abs(int(whole) - int(parts.gamma[main]))
    together = abs(int(whole) - int(parts.gamma[main]) - int(parts.gamma[more]))
    fits = together <= _FITTING * abs(int(parts.gamma[more]))
    return share >= _SURE or (share >= _LIKELY and together < without) or (share > 0 and fits)


def _edges(
    a: Blobs, b: Blobs, matches: dict[int, int], merged: dict[int, list[int]], split: dict[int, list[int]]
) -> list[Edge]:
    kinds = dict.fromkeys(matches.items(), EdgeKind.CONTINUATION)
    kinds.update({(i, j): EdgeKind.MERGE for j, parents in merged.items() for i in parents})
    kinds.update({(i, j): EdgeKind.SPLIT for i, children in split.items() for j in children})
    for j, parents in merged.items():
        mains = [i for i, there in kinds if there == j and kinds[i, j] is EdgeKind.CONTINUATION]
        first = _largest(a, [*mains, *parents])
        for i in (*mains, *parents):
            kinds[i, j] = EdgeKind.CONTINUATION if i == first else EdgeKind.MERGE
    for i, children in split.items():
        mains = [j for here, j in kinds if here == i and kinds[i, j] is EdgeKind.CONTINUATION]
        if i in matches and not mains:
            continue  # it merged into a larger one
        first = _largest(b, [*mains, *children])
        taken = mains and any(there == mains[0] and kind is EdgeKind.MERGE for (_, there), kind in kinds.items())
        if taken:
            continue  # others merged into what it goes on as: it stays what they merged into
        for j in (*mains, *children):
            kinds[i, j] = EdgeKind.CONTINUATION if j == first else EdgeKind.SPLIT
    return sorted(Edge(i, j, kind) for (i, j), kind in kinds.items())


def _largest(blobs: Blobs, indices: list[int]) -> int:
    return min(indices, key=lambda index: (-abs(int(blobs.gamma[index])), index))
