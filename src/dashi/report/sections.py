"""The sections on what was found, each a function of the report; one that has nothing to show is empty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dashi.flow.evaluation.result import THRESHOLDS, Evaluation, Line
from dashi.flow.evaluation.spread import spread
from dashi.report import figures, films, measures, records
from dashi.report.html import Cell, Markup, figure, film, pair, safe, section, table, took
from dashi.report.places import proof, repeat, where
from dashi.report.story import lasts
from dashi.report.style import VARIABLES, looks, svg

if TYPE_CHECKING:
    from dashi.report.page import Report

_SHOWN: Final = 4
"""Stills."""
_KINDS: Final = {
    "galerkin": "The equation of the flow for the low modes alone, with a learned viscosity for what is left out.",
    "truncation": "The equation of the flow for the low modes alone, with nothing for what is left out.",
    "ridge": "A linear map from one state to the next, fitted to pairs of states.",
    "delay": "A linear map from the last few states to the next.",
    "dmd": "Dynamic mode decomposition: a linear map of low rank.",
    "damped": "Every mode fades at its own rate.",
    "persistence": "Nothing changes: the start, for ever.",
    "perfect": "The full solver, started from what the low modes hold: what they could do at best.",
}
"""Models that are beside most others, for those who meet them here."""
_FEW: Final = 5
"""Seeds below which an interval says little."""


def fields(report: Report) -> str:
    """A film and stills of vorticity, and the canonical figure."""
    given = report.fields
    parts = [] if given is None else [_stills(report, given)]
    moving = "" if given is None or len(given.times) < 2 else _film(report, given)
    if given is not None and given.proxy is None:  # one picture has room beside the stills
        parts, moving = [moving, *parts], ""
    if report.continuation is not None:
        parts.append(_canonical(report.continuation))
    told = "After t = 0 the model reads nothing but its own state: here is what it foresees beside what happened."
    return section("fields", what_is_shown(report), told if _foresees(report) else "", moving, pair(*parts))


def _foresees(report: Report) -> bool:
    return report.continuation is not None or (report.fields is not None and report.fields.proxy is not None)


def what_is_shown(report: Report) -> str:
    """The title of the first section: a simulation foresees nothing."""
    if _foresees(report):
        return "What it foresees"
    return "What the model did" if report.decoded else "What the flow did"


def _canonical(data: figures.Continuation) -> str:
    ends = bool(math.isnan(float(data.reference[-1])))
    axis = "" if figures.limits(data)[0] == 0 else " The axis does not begin at 0."
    gone = " A line that leaves the picture is far from the truth." if figures.leaves(data) else ""
    past = "Grey is the past, which the model does not see. " if data.times[0] < 0 else ""
    return figure(
        svg(figures.canonical(data), "canonical"),
        "Reference, proxy, and the proxy alone",
        "Energy of the reference, of its proxy, and of the model after it was left alone.",
        "The gap between the reference and its proxy is the energy of the scales that the proxy leaves out. "
        f"{past}From 0 on the model goes on by itself{', past the end of the reference' if ends else ''}.{axis}{gone}",
    )


def _stills(report: Report, given: films.Fields) -> str:
    last, both = len(given.times) - 1, given.proxy is not None
    frames = sorted({round(last * part / (_SHOWN - 1)) for part in range(_SHOWN)})
    broken = " What is not finite is magenta, in frames that are drawn point by point." if given.broken else ""
    panels = "reference, proxy alone, and their difference" if both else "one picture each"
    scale = "the reference's" if both else "all"
    return figure(
        svg(films.snapshots(given, frames), "snapshots"),
        "Snapshots",
        f"{given.name.capitalize()} at {len(frames)} times: {panels}.",
        f"{given.name.capitalize()} of {report.fields_of or 'the run'}. One colour scale for all panels"
        f"{', the difference included' if both else ''}: 99.5 % of {scale} values lie within it. Drawn from "
        f"the fields' own modes; nothing is smoothed.{broken}",
    )


def _film(report: Report, given: films.Fields) -> str:
    both = given.proxy is not None
    alone = "Decoded from the model's states: no flow was solved." if report.decoded else "Frames as they were written."
    return film(
        films.film(given),
        given.name.capitalize(),
        f"A film of {given.name} over {len(given.times)} frames from t = {given.times[0]:g} to {given.times[-1]:g}.",
        "The proxy holds large structures alone: at t = 0 the difference is what it leaves out. Later it is also where "
        "the model went another way."
        if both
        else alone,
    )


def skill(report: Report) -> str:
    """How long predictions hold, beside all baselines."""
    found = report.evaluation
    if found is None:
        return ""
    windows, seeds = len(found.seeds), len(set(found.seeds))
    curve = figure(
        svg(figures.correlation(found), "correlation"),
        "Correlation against time",
        f"Correlation with the full field against time for {', '.join(one.model for one in found.lines)}.",
        f"Means over {_count(windows, 'window')} of {_count(seeds, 'seed')}: {found.told}. Bands reach from the worst "
        "window to the best. Lines are at 0.9, 0.8 and 0.5.",
    )
    dots = figure(
        svg(figures.horizons(found), "horizons"),
        "Time until the correlation falls below 0.5",
        "Bars of mean horizons by model, with a dot for each window.",
        f"A dot for each window, a bar to the mean. Windows end at t = {found.times[-1]:g}: a dot there means that the "
        "correlation never fell so low.",
    )
    told = (
        "Every model starts from what its numbers hold of the true field, and is then left alone. The full field is "
        "looked at again only to score it."
    )
    return section("skill", "How long does it hold?", told, pair(curve, dots), _horizons(report, found))


def _horizons(report: Report, found: Evaluation) -> str:
    drawn = looks([line.model for line in found.lines])
    levels = sorted(THRESHOLDS)
    headings = ["model", *(f"to < {level:g}" for level in levels), "failures", "numbers"]
    rows: list[list[Cell]] = []
    for line in sorted(found.lines, key=lambda one: -float(one.horizons[THRESHOLDS[-1]].mean())):
        mark = f'<span class="swatch" style="border-color:var({VARIABLES[drawn[line.model].colour]})"></span>'
        times = [_spread(found, line, level) for level in levels]
        numbers = f"{line.numbers:,}" if line.numbers else ""
        rows.append([Markup(mark + safe(line.model)), *times, failures(line), numbers])
    known = report.training
    for line in [one for one in known.lines if one.model == report.ours] if known else ():
        means = [lasts(known, line.model, level) for level in levels] if known else []
        rows.append([f"{line.model} on its own training data", *means, failures(line), f"{line.numbers:,}"])
    seeds = len(set(found.seeds))
    hint = f" With {_count(seeds, 'seed')} such an interval is a hint and no more." if seeds < _FEW else ""
    note = (
        '<p class="note">Flow time until the correlation with the full field falls below 0.5, 0.8 and 0.9: mean over '
        f"windows, and the 95 % bootstrap interval over seeds; ≥ where a window ended first.{hint} Numbers: what a "
        "state of the model holds. Failures: windows whose energy drifted, collapsed, oscillated or blew up; losing "
        "the track of a chaotic flow is none of these.</p>"
    )
    return table(headings, rows, "Horizons of all models", ours=report.ours) + note + _stories(found)


def _stories(found: Evaluation) -> str:
    """What each model is, what was fitted and chosen in its own words, and what its rollout took."""
    rows: list[list[Cell]] = []
    for line in found.lines:
        told = [_KINDS.get(line.model, ""), line.story if line.story != line.model else "", _ran(line)]
        first, *rest = [text for text in told if text] or [""]
        more = "".join(f'<span class="below">{safe(text)}</span>' for text in rest)
        rows += [[line.model, Markup(safe(first) + more)]] if first else []
    listed = table(["", ""], rows, "Models", text=True)
    return f"<details open><summary>What each model is</summary>{listed}</details>" if rows else ""


def _ran(line: Line) -> str:
    return f"rollout of all windows: {took(line.seconds)}, {line.device}" if line.device else ""


def failures(line: Line) -> str:
    """How many windows failed in which way."""
    counted = Counter(line.failures)
    bad = [f"{kind} {count}/{len(line.failures)}" for kind, count in counted.most_common() if kind != "none"]
    return ", ".join(bad) or "none"


def _spread(found: Evaluation, line: Line, level: float) -> Cell:
    """A mean and its interval; at least that, where a window ended first."""
    one, mean = spread(line.horizons[level], found.seeds), lasts(found, line.model, level)
    return mean if math.isnan(one.low) else Markup(f'{mean} <span class="range">[{one.low:.2f}, {one.high:.2f}]</span>')


def energy(report: Report) -> str:
    """Energy and enstrophy, spectra, errors, the sheet."""
    found, parts = report.evaluation, list[str]()
    if found is not None:
        parts = [
            figure(
                svg(figures.totals(found), "totals"), "Energy and enstrophy", "Energy and enstrophy against time.",
                "Means over windows. A model of few modes starts below the reference by what it leaves out; a line "
                "that leaves the picture has blown up.",
            ),
            figure(
                svg(figures.spectra(found), "spectra"), "Energy spectra", "Energy by wave number at the last frame.",
                "At the last frame, means over windows. Beyond k_cut a proxy holds nothing unless something is put "
                "there on purpose; that is judged here, by its spectrum, and never by correlation.",
            ),
            figure(
                svg(figures.error(found), "error"), "Relative L2 error", "Relative L2 error against time.",
                "Means over windows. 1 is the error of a field of zeros, about 1.4 that of an unrelated field.",
            ),
        ]  # fmt: skip
    if found is None and report.measures is not None:
        parts = [
            figure(
                svg(measures.history(report.measures), "history"), "Energy and enstrophy",
                "Energy and enstrophy against time.", "Of the frames that were kept, from their fields.",
            ),
            figure(
                svg(measures.spectra(report.measures), "shells"), "Energy spectra",
                "Energy by wave number of the first and the last frame.", "Of the first and the last frame.",
            ),
        ]  # fmt: skip
    return section("energy", what_is_measured(report), "", pair(*parts, _sheet(report)))


def what_is_measured(report: Report) -> str:
    """The title of the section on energies: there are errors only where something was scored."""
    if report.evaluation is not None:
        return "Energy, spectra, errors"
    return "Energy and spectra" if report.measures is not None else "Energy"


def _sheet(report: Report) -> str:
    given = report.sheet
    if given is None:
        return ""
    rows, bands = given.energies.shape
    return figure(
        svg(records.sheet(given.energies, end=given.end, what=given.what, first=given.first), "sheet"),
        "The sheet: what the run did, at one glance",
        f"A heat map of the energies of {bands} bands over {rows} rows.",
        f"Energy by {given.what} of {given.of}: time to the right, {given.what}s upwards, at most {records.DECADES} "
        "decades below the largest energy.",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _titled(title: str) -> Callable[[Report], str]:
    return lambda report: title


PARTS: Final[Sequence[tuple[str, Callable[[Report], str], Callable[[Report], str]]]] = (
    ("fields", what_is_shown, fields),
    ("skill", _titled("How long does it hold?"), skill),
    ("energy", what_is_measured, energy),
    ("where", _titled("Where it ran"), where),
    ("proof", _titled("Proof"), proof),
    ("repeat", _titled("Repeat it"), repeat),
)
"""Name, title and content, in the order of the page."""
