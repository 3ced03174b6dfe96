"""The verdict over a study: rules that were written before its seeds were looked at, and what they say of its cells.

`RULES_TEXT` is what is judged by; `RULES_DIGEST` its digest, which every study records. A change of the rules changes
the digest, and with it the claim that they came first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dashi.flow.annihilation.depth import interval

Status = Literal["supported", "refuted", "undecided"]

RULES_TEXT: Final = """
1. Vote. An estimator votes where it recovers the depth of planted vortices (8 in a field, signal to noise 3, as many
   fields as the study has seeds) within half an octave in at least 90 % of the draws. A cell is one flow, time, grid,
   viscosity, null and gauge. Only estimators that vote, cells of the null phase and of the gauge vorticity, and times
   above 0 are counted below; other nulls and gauges are reported beside them.
2. Null. "What is found is not chance" is supported where K is 0 in at least 80 % of the cells of Gaussian fields
   (time 0) and K of some flow is above 0 with the low end of its interval; refuted where K of no flow is above 0.
3. Finite. "Structure ends at a finite depth" is refuted where K is a lower bound (no scale fell) at the largest n of
   some flow by every estimator that votes, or where the slope of K on log2 N at fixed flow lies above 0.5 with its
   interval;
   supported where at the largest n no K is a lower bound and every slope's interval lies below 0.5.
4. Six. Counted are cells at the largest n whose tested scales reach 6 octaves or more past the integral scale; without
   any the claim is undecided. "K is about 6" is supported where all their K lie between 5 and 7 with their intervals;
   refuted where some such interval, of a K that is no lower bound, lies outside 5 to 7.
5. Nothing past K. "Past K no scale is above the null" is refuted where a scale past K is above the null in some cell;
   supported where there is none and K is a lower bound nowhere.
6. Signs. "Structure is coherent in its signs" is supported where persistence votes and its K is above 0, with the low
   end, in every flow; refuted where persistence is below the null by more than 3 of its spreads at a tested scale of
   every flow at the largest n; where persistence has no vote the claim cannot be supported.
What is neither supported nor refuted is undecided.
""".strip()
RULES_DIGEST: Final = hashlib.sha256(RULES_TEXT.encode()).hexdigest()
CLAIMS: Final = ("not chance", "finite", "six", "nothing past K", "signs")
VOTE: Final = 0.9
MOST_SLOPE: Final = 0.5
QUIET: Final = 0.8
DEEP: Final = 6.0


@dataclass(frozen=True)
class CellDepth:
    """K of one cell by one estimator, as the verdict needs it."""

    flow: str
    time: float
    n: int
    nu: float
    null: str
    gauge: str
    estimator: str
    octaves: float
    low: float
    high: float
    censored: bool
    second_crossing: bool
    least_score: float
    """The smallest of (statistic - null mean) / null spread over the tested scales."""
    resampled: tuple[float, ...]
    reach: float
    """Octaves from the integral scale to the end of the tested scales: the largest K that could be seen."""

    @property
    def subject(self) -> tuple[str, float]:
        """The flow at its time."""
        return self.flow, self.time


@dataclass(frozen=True)
class Slope:
    """How K grows with the logarithm of something, least squares, with the middle 95 % of resampled slopes."""

    flow: str
    time: float
    estimator: str
    against: str
    slope: float
    low: float
    high: float
    cells: int


@dataclass(frozen=True)
class Judgement:
    """What became of a claim, and by what."""

    claim: str
    status: Status
    evidence: str


def least_squares(x: Sequence[float], y: Sequence[float]) -> float:
    """The slope of a line through points; 0 where all lie at one x."""
    centre_x, centre_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    spread = math.fsum((a - centre_x) ** 2 for a in x)
    shared = math.fsum((a - centre_x) * (b - centre_y) for a, b in zip(x, y, strict=True))
    return shared / spread if spread else 0.0


def slopes(cells: Sequence[CellDepth]) -> list[Slope]:
    """K on log2 N at one viscosity, and on log2 Re (of 1 / nu) at one N, for every flow, time and estimator that has
    two or more such cells."""
    found: list[Slope] = []
    groups: dict[tuple[str, float, str, str, float], list[CellDepth]] = {}
    for cell in cells:
        if cell.null == "phase" and cell.gauge == "vorticity" and cell.time > 0:
            groups.setdefault((*cell.subject, cell.estimator, "log2 N", cell.nu), []).append(cell)
            groups.setdefault((*cell.subject, cell.estimator, "log2 Re", cell.n), []).append(cell)
    for (flow, time, estimator, against, _), members in groups.items():
        x = [math.log2(c.n if against == "log2 N" else 1.0 / c.nu) for c in members]
        if len(set(x)) < 2:
            continue
        again = [
            least_squares(x, [c.resampled[draw] for c in members])
            for draw in range(min(len(c.resampled) for c in members))
        ]
        low, high = interval(again) if again else (math.nan, math.nan)
        slope = least_squares(x, [c.octaves for c in members])
        found.append(Slope(flow, time, estimator, against, slope, low, high, len(members)))
    return found


def voters(power: Mapping[str, float]) -> tuple[str, ...]:
    """Estimators that recover planted depth often enough."""
    return tuple(name for name, part in power.items() if part >= VOTE)


def judge(cells: Sequence[CellDepth], power: Mapping[str, float]) -> list[Judgement]:
    """The status of every claim, by the rules."""
    voting = voters(power)
    counted = [c for c in cells if c.null == "phase" and c.gauge == "vorticity"]
    heard = [c for c in counted if c.estimator in voting]
    flows = [c for c in heard if c.time > 0]
    finest = _finest(flows)
    return [
        _not_chance([c for c in heard if c.time == 0], flows),
        _finite(finest, [s for s in slopes(counted) if s.against == "log2 N" and s.estimator in voting]),
        _six([c for c in finest if c.reach >= DEEP]),
        _nothing_past(flows),
        _signs(_finest([c for c in counted if c.time > 0 and c.estimator == "persistence"]), "persistence" in voting),
    ]


def _finest(cells: Sequence[CellDepth]) -> list[CellDepth]:
    """Cells of the largest n of each flow."""
    largest: dict[str, int] = {}
    for cell in cells:
        largest[cell.flow] = max(cell.n, largest.get(cell.flow, 0))
    return [cell for cell in cells if cell.n == largest[cell.flow]]


def _judged(claim: str, supported: bool, refuted: bool, evidence: str) -> Judgement:
    return Judgement(claim, "refuted" if refuted else "supported" if supported else "undecided", evidence)


def _not_chance(noise: list[CellDepth], flows: list[CellDepth]) -> Judgement:
    quiet = [c for c in noise if c.octaves == 0]
    structured = [c for c in flows if c.octaves > 0 and c.low > 0]
    evidence = (
        f"K is 0 in {len(quiet)} of {len(noise)} Gaussian cells, above 0 in {len(structured)} of {len(flows)} of flows"
    )
    nothing = bool(flows) and not any(c.octaves > 0 for c in flows)
    return _judged(
        "not chance", bool(noise) and len(quiet) >= QUIET * len(noise) and bool(structured), nothing, evidence
    )


def _finite(finest: list[CellDepth], growth: list[Slope]) -> Judgement:
    bounds = [c for c in finest if c.censored]
    subjects = {c.subject for c in finest}
    endless = [s for s in subjects if all(c.censored for c in finest if c.subject == s)]
    steep = [s for s in growth if s.low > MOST_SLOPE]
    shallow = bool(growth) and all(s.high < MOST_SLOPE for s in growth)
    evidence = (
        f"K is a lower bound in {len(bounds)} of {len(finest)} cells at the largest n; its slope on log2 N lies above "
        f"{MOST_SLOPE} in {len(steep)} of {len(growth)} cases"
    )
    return _judged("finite", bool(finest) and not bounds and shallow, bool(endless or steep), evidence)


def _six(finest: list[CellDepth]) -> Judgement:
    inside = [c for c in finest if c.low >= 5 and c.high <= 7 and not c.censored]
    outside = [c for c in finest if not c.censored and (c.high < 5 or c.low > 7)]
    between = [c.octaves for c in finest]
    span = f"K is {min(between):.2f} to {max(between):.2f}" if finest else "no grid reaches 6 octaves"
    evidence = f"{span}; {len(outside)} of {len(finest)} intervals lie outside 5 to 7"
    return _judged("six", bool(finest) and len(inside) == len(finest), bool(outside), evidence)


def _nothing_past(flows: list[CellDepth]) -> Judgement:
    again = [c for c in flows if c.second_crossing]
    evidence = f"a scale past K is above the null in {len(again)} of {len(flows)} cells"
    return _judged("nothing past K", bool(flows) and not any(c.censored for c in flows), bool(again), evidence)


def _signs(finest: list[CellDepth], votes: bool) -> Judgement:
    below = [c for c in finest if c.least_score < -3]
    above = [c for c in finest if c.low > 0]
    evidence = (
        f"persistence {'votes' if votes else 'has no vote'}; it is below the null by 3 spreads or more in {len(below)} "
        f"of {len(finest)} cells at the largest n, and has a depth in {len(above)}"
    )
    refuted = bool(finest) and len(below) == len(finest)
    return _judged("signs", votes and bool(finest) and len(above) == len(finest), refuted, evidence)
