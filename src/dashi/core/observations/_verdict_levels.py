"""What the verdict asks of signals and points: do they fall into a few sharp groups, do they swing back and forth?"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SHARP: Final = 0.1
"""Groups at most so wide as this part of the gap between them are separate."""
DISTINCT: Final = 1e-3
"""A gap below this part of the largest value is none."""
MOST_LEVELS: Final = 8
"""More levels than these are a range."""
VISITS: Final = 3
"""A level is one that the signal was on so many times at least."""
SWING: Final = 0.01
"""A turn by less than this part of the largest value is none."""
_MOST_VALUES: Final = 4096


def levels(values: Floats) -> list[float]:
    """The levels that a signal came to: its second half falls into 2 to MOST_LEVELS sharp groups of VISITS values or
    more, and its first half has a value outside all of them. Empty where that is not so."""
    if len(values) < 2 * MOST_LEVELS:
        return []
    early, late = values[: len(values) // 2], np.sort(values[len(values) // 2 :])
    gaps = np.diff(late)
    cuts = np.flatnonzero(gaps > max(DISTINCT * float(np.abs(late).max()), SHARP * float(gaps.max())))
    if not 1 <= len(cuts) < MOST_LEVELS:
        return []
    groups = np.split(late, [int(cut) + 1 for cut in cuts])
    near = SHARP * float(gaps[cuts].min())
    if min(map(len, groups)) < VISITS or max(float(group[-1] - group[0]) for group in groups) > near:
        return []
    found = [float(np.median(group)) for group in groups]
    away = np.abs(early[:, None] - np.array(found)[None, :]).min(axis=1)
    return found if float(away.max()) > near else []


def swings(values: Floats) -> int:
    """How often a signal turns, by more than SWING of its largest value each time."""
    sample = values[:: max(1, -(-len(values) // _MOST_VALUES))]
    least = SWING * float(np.abs(sample).max(initial=0))
    count, rising, low, high = 0, 0, float(sample[0]), float(sample[0])
    for value in sample.tolist():
        low, high = min(low, value), max(high, value)
        if rising >= 0 and high - value > least:
            count, rising, low, high = count + (rising > 0), -1, value, value
        elif rising <= 0 and value - low > least:
            count, rising, low, high = count + (rising < 0), 1, value, value
    return count


def distances(states: Floats) -> Floats:
    """How far each state (m, d) is from each, by its largest component."""
    return np.stack([np.abs(states - one).max(axis=1, initial=0) for one in states])


def groups(apart: Floats) -> tuple[list[list[int]], float]:
    """The fewest sharp groups of points with these distances, two of them together at least, and the least gap between
    groups; one group and 0 where there are none."""
    order, joins = _chain(apart)
    widths = sorted(joins)
    for within, gap in zip(widths[-2::-1], widths[:0:-1], strict=True):
        if gap > 0 and within <= SHARP * gap:
            clusters: list[list[int]] = [order[:1]]
            for join, member in zip(joins, order[1:], strict=True):
                if join >= gap:
                    clusters.append([member])
                else:
                    clusters[-1].append(member)
            return clusters, gap
    return [order], 0.0


def _chain(apart: Floats) -> tuple[list[int], list[float]]:
    """The points in the order in which Prim's algorithm joins them, and the distances at which it does: points nearer
    to each other than a gap come together before any that is beyond it."""
    nearest = apart[0].copy()
    left = np.ones(len(apart), np.bool_)
    left[0] = False
    order, joins = [0], list[float]()
    while left.any():
        closest = int(np.argmin(np.where(left, nearest, np.inf)))
        order.append(closest)
        joins.append(float(nearest[closest]))
        left[closest] = False
        nearest = np.minimum(nearest, apart[closest])
    return order, joins
