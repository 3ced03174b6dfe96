"""Filaments through the scales: where each is born, its sign, where it dies, and the survival curve with its bands.

A filament is a connected support of one sign at a scale (eight neighbours, periodic). At the next finer scale it lives
on in the filament of its sign with which it shares the most points, and in no other; one that shares none dies there.
A filament in which none lives on is born. What lives at the finest scale is censored, not dead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.types import HostArray

Labels = npt.NDArray[np.int64]
_HALF: Final = ((0, 1), (1, 0), (1, 1), (1, -1))
"""Half of the neighbours: each pair once."""


@dataclass(frozen=True)
class Filament:
    """One filament over its life; areas and circulations are those at the scale where it was born."""

    birth: int
    death: int
    """The first scale at which it no longer lives; that after the finest where it was censored."""
    censored: bool
    sign: int
    area: int
    """Points."""
    circulation: float
    """The sum of the band over its points, in units of the field times a point."""

    @property
    def age(self) -> int:
        """Scales that it lived."""
        return self.death - self.birth


@dataclass(frozen=True)
class SurvivalPoint:
    """The part of filaments that live longer than so many scales, with its 95 % band."""

    age: int
    at_risk: int
    deaths: int
    survival: float
    low: float
    high: float


def label_filaments(trits: HostArray) -> Labels:
    """The number of the filament of every point of a periodic ternary field (h, w), from 1 on in the order of their
    first points; 0 where there is none."""
    h, w = trits.shape
    index: Labels = np.arange(h * w, dtype=np.int64).reshape(h, w)
    first: list[Labels] = []
    second: list[Labels] = []
    for dy, dx in _HALF:
        same = (trits != 0) & (trits == np.roll(trits, (-dy, -dx), (0, 1)))
        first.append(index[same])
        second.append(np.roll(index, (-dy, -dx), (0, 1))[same])
    roots = _roots(h * w, np.concatenate(first), np.concatenate(second))
    roots = np.where(trits.reshape(-1) != 0, roots, -1)
    found = np.unique(roots[roots >= 0])
    return np.where(roots >= 0, np.searchsorted(found, roots) + 1, 0).reshape(h, w)


def _roots(count: int, first: Labels, second: Labels) -> Labels:
    """The lowest member of the connected part of every number, by hooking and pointer jumping."""
    parent = np.arange(count)
    while True:
        low = np.minimum(parent[first], parent[second])
        high = np.maximum(parent[first], parent[second])
        if (low == high).all():
            return parent
        np.minimum.at(parent, high, low)
        while True:
            jumped = parent[parent]
            if (jumped == parent).all():
                break
            parent = jumped


def trace_filaments(states: HostArray, bands: HostArray | None = None, first: int = 0) -> list[Filament]:
    """The filaments of a field: `states` (scales, n, n) are -2 to 2 (see the kernel `scale_counts`), traced from scale
    `first` on; `bands` of the same shape give circulations, 0 without."""
    scales = len(states)
    trits = np.where(np.abs(states) == 2, np.sign(states), 0)
    found: list[Filament] = []
    lives: dict[int, Filament] = {}
    before: Labels | None = None
    for scale in range(first, scales):
        labels = label_filaments(trits[scale])
        heirs = {} if before is None else _heirs(before, labels, trits[scale - 1], trits[scale])
        going_on: dict[int, Filament] = {}
        for number, filament in lives.items():
            heir = heirs.get(number)
            rival = None if heir is None else going_on.get(heir)
            # Where several live on in one filament, the eldest (then the first) is it, and the others die there.
            if heir is not None and (rival is None or filament.birth < rival.birth):
                going_on[heir] = filament
                ended = rival
            else:
                ended = filament
            if ended is not None:
                found.append(replace(ended, death=scale, censored=False))
        band = None if bands is None else bands[scale]
        for number, (sign, area, circulation) in _described(labels, trits[scale], band).items():
            going_on.setdefault(number, Filament(scale, scales, True, sign, area, circulation))
        lives, before = going_on, labels
    return found + [lives[number] for number in sorted(lives)]


def _described(labels: Labels, trits: HostArray, band: HostArray | None) -> dict[int, tuple[int, int, float]]:
    """Sign, area and circulation of every filament of a scale."""
    flat = labels.reshape(-1)
    areas = np.bincount(flat)
    weights = np.zeros(flat.size) if band is None else np.asarray(band, np.float64).reshape(-1)
    circulations = np.bincount(flat, weights)
    signs = np.zeros(len(areas), np.int64)
    signs[flat] = trits.reshape(-1)
    return {k: (int(signs[k]), int(areas[k]), float(circulations[k])) for k in range(1, len(areas))}


def _heirs(before: Labels, after: Labels, sign_before: HostArray, sign_after: HostArray) -> dict[int, int]:
    """In which filament of the next scale each lives on: of its sign, with the most shared points, then the first."""
    shared = (before > 0) & (after > 0) & (sign_before == sign_after)
    width = int(after.max(initial=0)) + 1
    pairs, counts = np.unique(before[shared] * width + after[shared], return_counts=True)
    heirs: dict[int, tuple[int, int]] = {}
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        number, heir = divmod(pair, width)
        if number not in heirs or count > heirs[number][0]:
            heirs[number] = count, heir
    return {number: heir for number, (_, heir) in heirs.items()}


def survival_curve(filaments: Sequence[Filament]) -> list[SurvivalPoint]:
    """The estimate of E. Kaplan and P. Meier (J. Am. Stat. Assoc. 53, 1958, doi 10.1080/01621459.1958.10501452), with
    Greenwood's variance on the scale log(-log S), so that bands stay between 0 and 1."""
    survival, variance = 1.0, 0.0
    points: list[SurvivalPoint] = []
    for age in range(1, max((f.age for f in filaments), default=0) + 1):
        at_risk = sum(f.age >= age for f in filaments)
        deaths = sum(f.age == age and not f.censored for f in filaments)
        survival *= 1.0 - deaths / at_risk
        if deaths < at_risk:
            variance += deaths / (at_risk * (at_risk - deaths))
        low, high = _band(survival, variance)
        points.append(SurvivalPoint(age, at_risk, deaths, survival, low, high))
    return points


def _band(survival: float, variance: float) -> tuple[float, float]:
    if not 0.0 < survival < 1.0:
        return survival, survival
    reach = 1.959963984540054 * math.sqrt(variance) / abs(math.log(survival))
    return survival ** math.exp(reach), survival ** math.exp(-reach)


def filament_table(filaments: Sequence[Filament]) -> dict[str, npt.NDArray[Any]]:
    """Filaments as columns."""
    return {
        "birth": np.array([f.birth for f in filaments], np.int32),
        "death": np.array([f.death for f in filaments], np.int32),
        "censored": np.array([f.censored for f in filaments], np.bool_),
        "sign": np.array([f.sign for f in filaments], np.int8),
        "area": np.array([f.area for f in filaments], np.int64),
        "circulation": np.array([f.circulation for f in filaments], np.float64),
    }
