"""The section on how long predictions hold: curves, the table of horizons, its CSV, and what each model is."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import numpy as np

from dashi.flow.evaluation.result import THRESHOLDS, Evaluation, Line
from dashi.flow.evaluation.spread import spread
from dashi.report import figures
from dashi.report._html import Cell, Markup, counted, figure, pair, safe, section, table, took
from dashi.report._story import held, lasts
from dashi.report._style import looks, svg
from dashi.report.scales import evaluated_scales

if TYPE_CHECKING:
    from dashi.report.page import Report

KINDS: Final = {
    "galerkin": "The equation of the flow for the low modes alone, with a learned viscosity for what is left out.",
    "truncation": "The equation of the flow for the low modes alone, with nothing for what is left out.",
    "slaved": "Galerkin's model with some modes beyond the cut, which follow from the low ones by a learned rule.",
    "trained-eddy": "Galerkin's model, its viscosity trained by following the flow, as the tables of slaved are.",
    "restarted": "The full solver between frames; at each of them it forgets all but the low modes.",
    "ridge": "A linear map from one state to the next, fitted to pairs of states.",
    "delay": "A linear map from the last few states to the next.",
    "dmd": "Dynamic mode decomposition: a linear map of low rank.",
    "damped": "Every mode fades at its own rate.",
    "persistence": "Nothing changes: the start, for ever.",
    "perfect": "The full solver, started from the low modes with zeros for the rest: no bound to what a model can do.",
}
"""Models that are beside most others, for those who meet them here."""
_FEW: Final = 5
"""Seeds below which an interval says little."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheets take for the beginning of a formula."""


def skill(report: Report) -> str:
    """How long predictions hold, beside all baselines."""
    evaluation = report.evaluation
    if evaluation is None:
        return ""
    windows, seeds = len(evaluation.seeds), len(set(evaluation.seeds))
    above = " The upper scale counts eddy turnovers." if evaluated_scales(evaluation) else ""
    curve = figure(
        svg(figures.correlation(evaluation), "correlation"),
        "Correlation against time",
        f"Correlation with the full field against time for {', '.join(one.model for one in evaluation.lines)}.",
        f"Means over {counted(windows, 'window')} of {counted(seeds, 'seed')}: {evaluation.data_kind}. Bands reach "
        f"from the worst window to the best. Lines are at 0.9, 0.8 and 0.5.{above}",
    )
    dots = figure(
        svg(figures.horizons(evaluation), "horizons"),
        "Time until the correlation falls below 0.5",
        "Bars of mean horizons by model, with a dot for each window.",
        f"A dot for each window, a bar to the mean. Windows end at t = {evaluation.times[-1]:g}: a dot there means "
        "that the correlation never fell so low.",
    )
    intro = (
        "Every model starts from what its numbers hold of the true field, and is then left alone. The full field is "
        "looked at again only to score it."
    )
    return section("skill", "How long does it hold?", intro, pair(curve, dots), _horizons(report, evaluation))


def _horizons(report: Report, evaluation: Evaluation) -> str:
    drawn = looks([line.model for line in evaluation.lines])
    levels, scales = sorted(THRESHOLDS), evaluated_scales(evaluation)
    first, *others = (f"to < {level:g}" for level in levels)
    turnovers = [] if scales is None else ["in turnovers"]
    headings = ["model", first, *turnovers, *others, "failures", "numbers"]

    def cells(known: Evaluation, line: Line) -> list[Cell]:
        near, *rest = (horizon(known, line, level) for level in levels)
        between = [] if scales is None else [lasts(known, line.model, unit=scales.turnover)]
        return [near, *between, *rest, failures(line), f"{line.numbers:,}" if line.numbers else ""]

    rows: list[list[Cell]] = [
        [Markup(drawn[line.model].swatch + safe(line.model)), *cells(evaluation, line)]
        for line in sorted(evaluation.lines, key=lambda one: -float(one.horizons[THRESHOLDS[-1]].mean()))
    ]
    if report.training is not None:
        ours = [one for one in report.training.lines if one.model == report.ours]
        rows += [[f"{line.model} on its own training data", *cells(report.training, line)] for line in ours]
    seeds = len(set(evaluation.seeds))
    hint = f" With {counted(seeds, 'seed')} such an interval is a hint and no more." if seeds < _FEW else ""
    also = " In turnovers: the first of these in eddy turnovers." if turnovers else ""
    note = (
        '<p class="note">Flow time until the correlation with the full field falls below 0.5, 0.8 and 0.9: mean over '
        "windows, and the 95 % bootstrap interval over seeds. ≥: some windows, or all, ended before the correlation "
        f"fell so low, and the mean is a lower bound.{hint}{also} Numbers: what a state of the model holds. Failures: "
        "windows whose energy drifted, collapsed, oscillated or blew up; losing the track of a chaotic flow is none of "
        "these.</p>"
    )
    link = f'<p class="note"><a download="scores.csv" href="{_data_uri(as_csv(report))}">These numbers as CSV</a></p>'
    return table(headings, rows, "Horizons of all models", ours=report.ours) + note + link + _stories(evaluation)


def horizon(evaluation: Evaluation, line: Line, level: float) -> Cell:
    """A mean and its interval. Where windows ended before the correlation fell so low, how many of them did."""
    count, ended = len(line.horizons[level]), held(evaluation, line.model, level)
    mean = lasts(evaluation, line.model, level)
    if ended == count:
        below = "the window held to the end" if count == 1 else f"all {count} windows held to the end"
        return Markup(f'{mean} <span class="below">{below}</span>')
    interval = spread(line.horizons[level], evaluation.seeds)
    low, high = f"{interval.low:.2f}", f"{interval.high:.2f}"
    more = f' <span class="range">[{low}, {high}]</span>'
    if math.isnan(interval.low) or low == high:
        more = "" if math.isnan(interval.low) else ' <span class="below">the same for every seed</span>'
    more += f' <span class="below">{ended} of {count} windows held to the end</span>' if ended else ""
    return Markup(mean + more) if more else mean


def as_csv(report: Report) -> str:
    """The table of horizons as text that programs read: a row for each model and threshold."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ("mean", "low", "high", "turnovers", "held_to_end", "windows", "numbers", "failures")
    writer.writerow(["data", "model", "threshold", *names])
    for evaluation in (report.evaluation, report.training):
        lines = () if evaluation is None else evaluation.lines
        for line in lines if evaluation is report.evaluation else [one for one in lines if one.model == report.ours]:
            assert evaluation is not None
            for level in sorted(THRESHOLDS):
                writer.writerow([evaluation.data_kind, _plain(line.model), level, *_numbers(evaluation, line, level)])
    return text.getvalue()


def _numbers(evaluation: Evaluation, line: Line, level: float) -> list[str | int]:
    values = np.asarray(line.horizons[level], np.float64)
    interval, scales, ended = (
        spread(values, evaluation.seeds),
        evaluated_scales(evaluation),
        held(evaluation, line.model, level),
    )
    known = not math.isnan(interval.low) and ended < len(values)
    turnovers = "" if scales is None else f"{interval.mean / scales.turnover:.4f}"
    ends = (f"{interval.low:.4f}", f"{interval.high:.4f}") if known else ("", "")
    return [f"{interval.mean:.4f}", *ends, turnovers, ended, len(values), line.numbers, failures(line)]


def _plain(name: str) -> str:
    """A name that no spreadsheet runs as a formula."""
    return f"'{name}" if name.startswith(_FORMULA) else name


def _data_uri(text: str) -> str:
    return f"data:text/csv;charset=utf-8,{quote(text)}"


def _stories(evaluation: Evaluation) -> str:
    """What each model is, what was fitted and chosen in its own words, and what its rollout took."""
    rows: list[list[Cell]] = []
    for line in evaluation.lines:
        texts = [KINDS.get(line.model, ""), line.story if line.story != line.model else "", _ran(line)]
        first, *rest = [text for text in texts if text] or [""]
        more = "".join(f'<span class="below">{safe(text)}</span>' for text in rest)
        rows += [[line.model, Markup(safe(first) + more)]] if first else []
    listed = table(["", ""], rows, "Models", text=True)
    return f"<details open><summary>What each model is</summary>{listed}</details>" if rows else ""


def _ran(line: Line) -> str:
    return f"rollout of all windows: {took(line.seconds)}, {line.device}" if line.device else ""


def failures(line: Line) -> str:
    """How many windows failed in which way."""
    kinds = Counter(line.failures)
    bad = [f"{kind} {count}/{len(line.failures)}" for kind, count in kinds.most_common() if kind != "none"]
    return ", ".join(bad) or "none"
