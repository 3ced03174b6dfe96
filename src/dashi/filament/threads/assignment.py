"""Who is who: blobs of one frame matched to those of the next, at the least total distance.

    d = w_place |dr| / R + w_gamma |dGamma| / Gamma + w_sign [the signs differ] + w_radius |dR| / R

Distances in place go the shorter way round the box; R and Gamma are the larger ones of both. A pair beyond the gate, in
place or in d, is no pair. What is left falls apart into small groups, each of which is assigned exactly. Profits are
whole numbers, so the order of summation means nothing; between equal totals the smaller id decides, then the larger
circulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.filament.threads.blobs import Floats, Integers

_UNITS: Final = 1 << 20
"""A distance of 1 in whole numbers."""
_LARGEST: Final = 1500
"""Blobs in a group that is assigned together; a gate that makes larger ones is too wide."""


@dataclass(frozen=True)
class MatchWeights:
    """What makes two blobs alike, and from where on they are not."""

    place: float = 1.0
    gamma: float = 1.0
    sign: float = 4.0
    radius: float = 0.5
    gate: float = 2.5
    """Distances in place above so many radii are no match."""
    most: float = 3.0
    """The largest d of a match."""

    def __post_init__(self) -> None:
        for name in ("place", "gamma", "sign", "radius", "gate", "most"):
            value = getattr(self, name)
            if not 0 <= value < 1e6:
                raise InputError(f"the weight `{name}=` is {value!r:.40}.", "pass a number from 0 on.")


@dataclass(frozen=True, eq=False)
class Features:
    """What matching looks at, of blobs or atoms: the same for every chart of an atom."""

    x: Floats
    y: Floats
    gamma: Integers
    radius: Floats


def distances(a: Features, b: Features, length: float | None, weights: MatchWeights) -> Floats:
    """d between every two, (a, b); infinite beyond the gate. `length` is the side of a periodic box."""
    dx, dy = b.x[None] - a.x[:, None], b.y[None] - a.y[:, None]
    if length is not None:
        dx -= length * np.rint(dx / length)
        dy -= length * np.rint(dy / length)
    radius = np.maximum(a.radius[:, None], b.radius[None])
    apart = np.sqrt(dx * dx + dy * dy) / np.maximum(radius, 1e-300)
    size_a, size_b = np.abs(a.gamma).astype(np.float64)[:, None], np.abs(b.gamma).astype(np.float64)[None]
    change = np.abs(size_a - size_b) / np.maximum(np.maximum(size_a, size_b), 1.0)
    differ = np.sign(a.gamma)[:, None] != np.sign(b.gamma)[None]
    wider = np.abs(a.radius[:, None] - b.radius[None]) / np.maximum(radius, 1e-300)
    d = weights.place * apart + weights.gamma * change + weights.sign * differ + weights.radius * wider
    return np.where((apart <= weights.gate) & (d < weights.most), d, np.inf)


def assign(d: Floats, most: float) -> list[tuple[int, int]]:
    """Pairs (row, column) that together save the most against leaving all apart at a cost of `most` a pair."""
    rows, columns = np.nonzero(np.isfinite(d))
    profit = {(int(i), int(j)): round((most - float(d[i, j])) * _UNITS) + 1 for i, j in zip(rows, columns, strict=True)}
    pairs: list[tuple[int, int]] = []
    for group_rows, group_columns in _groups(list(profit)):
        if len(group_rows) == 1 or len(group_columns) == 1:
            best = max(
                ((i, j) for i in group_rows for j in group_columns if (i, j) in profit),
                key=lambda pair: (profit[pair], -pair[0], -pair[1]),
            )
            pairs.append(best)
            continue
        gains = np.array([[profit.get((i, j), 0) for j in group_columns] for i in group_rows], np.int64)
        for i, j in _best_assignment(gains):
            if gains[i, j] > 0:
                pairs.append((group_rows[i], group_columns[j]))
    return sorted(pairs)


def _groups(pairs: list[tuple[int, int]]) -> list[tuple[list[int], list[int]]]:
    """Rows and columns that are linked by pairs, group by group."""
    by_row: dict[int, list[int]] = {}
    by_column: dict[int, list[int]] = {}
    for i, j in pairs:
        by_row.setdefault(i, []).append(j)
        by_column.setdefault(j, []).append(i)
    groups: list[tuple[list[int], list[int]]] = []
    visited: set[int] = set()
    for start in sorted(by_row):
        if start in visited:
            continue
        rows, columns, stack = {start}, set[int](), [start]
        while stack:
            for j in by_row[stack.pop()]:
                if j not in columns:
                    columns.add(j)
                    fresh = [i for i in by_column[j] if i not in rows]
                    rows.update(fresh)
                    stack += fresh
        visited |= rows
        if max(len(rows), len(columns)) > _LARGEST:
            raise InputError(
                f"{max(len(rows), len(columns))} blobs lie within each other's gate.",
                "use a smaller gate, a higher threshold, or frames that are closer in time.",
            )
        groups.append((sorted(rows), sorted(columns)))
    return groups


def _best_assignment(gains: Integers) -> list[tuple[int, int]]:
    """The assignment of the largest total gain, by shortest augmenting paths (H. W. Kuhn 1955,
    doi:10.1002/nav.3800020109; the dual form with potentials), in whole numbers."""
    flipped = gains.shape[0] > gains.shape[1]
    cost = -(gains.T if flipped else gains)
    rows, columns = cost.shape
    far = np.int64(1) << 60
    row_price, column_price = np.zeros(rows + 1, np.int64), np.zeros(columns + 1, np.int64)
    row_of = np.full(columns + 1, -1, np.int64)
    for row in range(rows):
        row_of[columns] = row
        here = columns
        least = np.full(columns, far)
        came = np.full(columns, columns, np.int64)
        used = np.zeros(columns + 1, np.bool_)
        while row_of[here] >= 0:
            used[here] = True
            i = int(row_of[here])
            free = ~used[:columns]
            reduced = cost[i] - row_price[i] - column_price[:columns]
            nearer = free & (reduced < least)
            least[nearer], came[nearer] = reduced[nearer], here
            there = int(np.argmin(np.where(free, least, far + 1)))
            delta = least[there]
            row_price[row_of[used]] += delta
            column_price[used] -= delta
            least[free] -= delta
            here = there
        while here != columns:
            row_of[here] = row_of[came[here]]
            here = int(came[here])
    pairs = [(int(row_of[j]), j) for j in range(columns) if row_of[j] >= 0]
    return sorted((j, i) for i, j in pairs) if flipped else sorted(pairs)
