"""The verdict on a run: did it collapse, settle, oscillate, bifurcate or blow up? Decided from what observers saw.

The run is cut into four quarters by step. A level is the mean norm of a quarter, a motion its mean defect. The
rules, tried in this order; every threshold is a constant below or in `_verdict_levels`:

1. blown up: a value is not finite, or the norm grew to GROWN times the first, still grows, and no limit is in sight.
2. collapsed: the norm is at most COLLAPSED of the first; or at most LEFT of it, still falling, and heading for nothing.
3. bifurcating, by members: states of an ensemble that began together end in a few groups, sharply apart.
4. bifurcating, by time: the norm held one level for a quarter of the run, left it, and now holds another one.
5. moving: the motion is neither negligible (STILL) nor fading (FADING), and the state turns back: norm or a band's
   energy swings several times, or the path is longer than any straight way within the sphere that the state stays in.
   Then it is bifurcating, by period, if norm or a band's energy came to a few sharply separate levels that it was not
   on before; else oscillating.
6. stable: none of these.

Observations say what happened, not why. A linear map with an eigenvalue that is a root of unity, whose other modes die
out, comes to a few levels too and is called bifurcating; bounded chaos that fills its range is called oscillating.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from dashi.core.observations._verdict_levels import DISTINCT, MOST_LEVELS, Floats, distances, groups, levels, swings
from dashi.core.observations.observation import Observation
from dashi.errors import InputError
from dashi.types import HostArray

Name = Literal["collapsed", "stable", "oscillating", "bifurcating", "blown up"]

GROWN: Final = 2.0
"""A norm at least so many times the first has grown."""
LEFT: Final = 0.5
"""A norm at most so many times the first has fallen."""
NOTHING: Final = 0.2
"""A limit at most so many times the level is nothing."""
COLLAPSED: Final = 1e-6
"""A norm at most so many times the first is nothing."""
CHANGING: Final = 1.1
"""A level so many times the one before it, or the other way round, has not been reached yet."""
SLOWING: Final = 0.9
"""Changes that shrink by a factor above this from quarter to quarter have no limit in sight."""
STILL: Final = 1e-6
"""A motion at most so many times the norm is none."""
FADING: Final = 0.5
"""A motion at most so many times that of the quarter before dies out."""
TURNS: Final = 4
"""Swings in the second half that show that a signal goes back and forth."""
FLAT: Final = 0.01
"""A quarter whose norms differ by no more than this part of their mean holds a level."""
APART: Final = 0.1
"""Levels that differ by more than this part of the larger one are different."""
TOGETHER: Final = 0.5
"""States that were at most so many times the later gap from each other began together."""
MEMBERS: Final = 256
"""States of an ensemble that are compared with each other: the first ones."""
ENOUGH: Final = 8
"""With fewer observations the sentence says so."""


@dataclass(frozen=True)
class Verdict:
    """What became of a run, and why that is said."""

    name: Name
    evidence: dict[str, Any]
    """As JSON has it: which rule decided (`rule`), and the numbers that it saw."""
    sentence: str

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "sentence": self.sentence, "evidence": self.evidence}


@dataclass(frozen=True, eq=False)
class _Observed:
    """The record of a run: norms before and after the observed steps, and how far those moved the state."""

    steps: Floats
    norms: Floats
    observed: Floats
    motions: Floats
    ratio: float

    @property
    def first(self) -> float:
        """The first norm; of a run that starts from nothing, the largest."""
        return float(self.norms[0]) or float(self.norms.max())

    @property
    def last(self) -> float:
        return float(self.norms[-1])

    def quarter(self, number: int) -> Floats:
        """The norms of a quarter of the run, 0 to 3."""
        return _quarter(self.steps, self.norms, number)

    def level(self, number: int) -> float:
        return float(self.quarter(number).mean())

    def motion(self, number: int) -> float:
        return float(_quarter(self.observed, self.motions, number).mean())

    def evidence(self) -> dict[str, Any]:
        return {
            "observations": len(self.observed),
            "first_norm": float(self.norms[0]),
            "last_norm": self.last,
            "level_by_quarter": [self.level(number) for number in range(4)],
            "motion_by_quarter": [self.motion(number) for number in range(4)],
            "last_ratio": self.ratio if math.isfinite(self.ratio) else None,
        }


def verdict(
    observations: Sequence[Observation],
    sheet: HostArray | None = None,
    *,
    members: tuple[HostArray, HostArray] | None = None,
) -> Verdict:
    """The verdict on a run from its observations, the sheet `[T, B]` of band energies where there is one, and, for an
    ensemble, the first and the last states `(m, ...)`. One observation is enough for an answer, not for a good one."""
    if not observations:
        raise InputError(
            "a run without observations has no verdict.", "observe it on a stride that is at most the number of steps."
        )
    broken = next((o for o in observations if o.nonfinite or not _is_finite(o)), None)
    if broken is not None:
        return _broken(broken)
    record = _record(observations)
    judged = (
        _grows(record)
        or _vanishes(record)
        or _parts(record, members)
        or _switches(record)
        or _moves(record, _bands(sheet))
        or _settles(record)
    )
    if len(observations) >= ENOUGH:
        return judged
    return Verdict(judged.name, judged.evidence, f"{judged.sentence} (From {len(observations)} observations only.)")


def _is_finite(o: Observation) -> bool:
    # Not the ratio: that of a step from nothing to something is infinite.
    return all(math.isfinite(x) for x in (o.norm_before, o.norm, o.defect))


def _broken(o: Observation) -> Verdict:
    where = "" if o.first_nonfinite is None else f", the first at index {o.first_nonfinite}"
    many = "one value is" if o.nonfinite == 1 else f"{o.nonfinite} values are"
    what = f"{many} not finite{where}" if o.nonfinite else "the norm is too large for its type"
    evidence = {
        "rule": "not finite", "step": o.step, "nonfinite": o.nonfinite, "first_nonfinite": o.first_nonfinite,
    }  # fmt: skip
    return Verdict("blown up", evidence, f"Blown up: at step {o.step} {what}.")


def _record(observations: Sequence[Observation]) -> _Observed:
    ordered = sorted(observations, key=lambda o: o.step)
    norms = {o.step - 1: o.norm_before for o in ordered} | {o.step: o.norm for o in ordered}
    steps = sorted(norms)
    return _Observed(
        np.array(steps, np.float64),
        np.array([norms[step] for step in steps], np.float64),
        np.array([o.step for o in ordered], np.float64),
        np.array([o.defect for o in ordered], np.float64),
        ordered[-1].ratio,
    )


def _quarter(steps: Floats, values: Floats, number: int) -> Floats:
    """The values of a quarter of the steps; of a record too short to have any there, the nearest."""
    edges = float(steps[0]) + float(steps[-1] - steps[0]) * np.arange(5) / 4
    inside = (steps >= edges[number]) & (steps <= edges[number + 1])
    if not inside.any():
        away = np.abs(steps - (edges[number] + edges[number + 1]) / 2)
        inside = away == away.min()
    return values[inside]


def _bands(sheet: HostArray | None) -> dict[str, Floats]:
    """Band energies by name, those that are not nothing beside the others."""
    if sheet is None or sheet.ndim != 2 or not sheet.size:
        return {}
    energies = sheet.astype(np.float64)
    if not np.all(np.isfinite(energies)):
        return {}
    most = np.abs(energies).max(axis=0)
    return {f"band {b}": energies[:, b] for b in np.flatnonzero(most > COLLAPSED * most.max()).tolist()}


def _heading(record: _Observed) -> tuple[Literal["grows", "falls", "holds"], float | None]:
    """What the level does, and the limit that it is heading for, None where none is in sight.

    The levels a, b, c of the last three quarters change by b - a, then by c - b. If changes shrink by the factor q from
    quarter to quarter, the limit is c + (c - b) q / (1 - q): Aitken's extrapolation, exact for a geometric approach.
    """
    a, b, c = (record.level(number) for number in (1, 2, 3))
    if max(b, c) <= CHANGING * min(b, c):
        return "holds", c
    q = (c - b) / (b - a) if b != a else math.inf
    limit = c + (c - b) * q / (1 - q) if 0 <= q <= SLOWING else None
    return ("grows" if c > b else "falls"), limit


def _grows(record: _Observed) -> Verdict | None:
    trend, limit = _heading(record)
    if trend != "grows" or limit is not None or record.last < GROWN * record.first:
        return None
    text = f"Blown up: the norm grew from {record.first:.3g} to {record.last:.3g}, and no limit is in sight."
    return Verdict("blown up", {"rule": "grows without limit", **record.evidence()}, text)


def _vanishes(record: _Observed) -> Verdict | None:
    fell = f"the norm fell from {record.first:.3g} to {record.last:.3g}"
    if record.last <= COLLAPSED * record.first:
        return Verdict("collapsed", {"rule": "nothing left", **record.evidence()}, f"Collapsed: {fell}.")
    trend, limit = _heading(record)
    if (
        trend != "falls"
        or record.last > LEFT * record.first
        or (limit is not None and limit > NOTHING * record.level(3))
    ):
        return None
    evidence = {"rule": "heading for nothing", "heading_for": limit, **record.evidence()}
    return Verdict("collapsed", evidence, f"Collapsed: {fell} and is heading for nothing.")


def _parts(record: _Observed, members: tuple[HostArray, HostArray] | None) -> Verdict | None:
    """Members that began together end apart."""
    if members is None or members[0].shape != members[1].shape or members[1].shape[0] < 2:
        return None
    first, last = (x.reshape(x.shape[0], -1)[:MEMBERS].astype(np.float64) for x in members)
    clusters, gap = groups(distances(last))
    began = float(distances(first).max())
    if not 2 <= len(clusters) <= MOST_LEVELS or began > TOGETHER * gap or gap <= DISTINCT * float(np.abs(last).max()):
        return None
    sizes = sorted((len(group) for group in clusters), reverse=True)
    evidence = {"rule": "members part", "groups": sizes, "gap": gap, "began_within": began, **record.evidence()}
    text = (
        f"Bifurcating: {len(last)} states that began within {began:.3g} ended in {len(sizes)} groups, {gap:.3g} apart."
    )
    return Verdict("bifurcating", evidence, text)


def _switches(record: _Observed) -> Verdict | None:
    """One level held for a quarter of the run, then another one to its end."""
    now = record.level(3)
    if len(record.norms) < 2 * ENOUGH or not _is_flat(record.quarter(3)):
        return None
    for number in range(3):
        then = record.level(number)
        if _is_flat(record.quarter(number)) and abs(now - then) > APART * max(now, then):
            text = f"Bifurcating: the norm held {then:.3g} for a quarter of the run, left it, and now holds {now:.3g}."
            evidence = {"rule": "another level", "levels": [then, now], **record.evidence()}
            return Verdict("bifurcating", evidence, text)
    return None


def _is_flat(norms: Floats) -> bool:
    return float(norms.max() - norms.min()) <= FLAT * float(norms.mean())


def _moves(record: _Observed, bands: dict[str, Floats]) -> Verdict | None:
    """The state goes on moving and turns back: on a few levels, or not."""
    before, motion = record.motion(2), record.motion(3)
    largest = float(max(record.quarter(2).max(), record.quarter(3).max()))
    if motion <= STILL * largest or motion <= FADING * before:
        return None
    signals = {"norm": record.norms, **bands}
    swinging = {name: swings(values[len(values) // 2 :]) for name, values in signals.items()}
    # A component moves no further than the state: the true path is at least as long as this.
    path = float(record.steps[-1] - record.steps[0]) / 2 * (before + motion) / 2
    if path <= 2 * largest and max(swinging.values()) < TURNS:
        return None
    evidence = {"swings": max(swinging.values()), "path_in_diameters": path / (2 * largest), **record.evidence()}
    for name, values in signals.items():
        visited = levels(values)
        if visited:
            text = f"Bifurcating: the {name} came to {len(visited)} levels, {', '.join(f'{x:.3g}' for x in visited)}."
            return Verdict("bifurcating", {"rule": "levels", "signal": name, "levels": visited, **evidence}, text)
    low, high = float(record.norms.min()), float(record.norms.max())
    text = f"Oscillating: the state keeps moving, its norm between {low:.3g} and {high:.3g}."
    return Verdict("oscillating", {"rule": "keeps moving", **evidence}, text)


def _settles(record: _Observed) -> Verdict:
    trend, limit = _heading(record)
    if trend == "holds":
        text = f"Stable: the norm holds {record.level(3):.3g}."
    elif limit is not None:
        text = f"Stable: the norm {trend} towards {limit:.3g}."
    else:
        text = (
            f"Stable so far: the norm {trend} from {record.level(2):.3g} to {record.level(3):.3g} in a quarter of the "
            "run."
        )
    return Verdict("stable", {"rule": "settles", "heading_for": limit, **record.evidence()}, text)
