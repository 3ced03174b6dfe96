"""The sections on what was found, each a function of the report; one that has nothing to show is empty."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dashi.report import _timeline as timeline
from dashi.report import figures, films, measures
from dashi.report._chain_section import chain
from dashi.report._flow_card import card
from dashi.report._html import figure, film, pair, section
from dashi.report._run_sections import proof, repeat, where
from dashi.report._scores import skill
from dashi.report._style import svg

if TYPE_CHECKING:
    from dashi.report.page import Report

_SHOWN: Final = 4
"""Stills."""


def fields(report: Report) -> str:
    """A film and stills of vorticity, and the canonical figure."""
    shown = report.fields
    parts = [] if shown is None else [_stills(report, shown)]
    moving = "" if shown is None or len(shown.times) < 2 else _film(report, shown)
    if shown is not None and shown.proxy is None:  # one picture has room beside the stills
        parts, moving = [moving, *parts], ""
    if report.continuation is not None:
        parts.append(_canonical(report.continuation))
    intro = "After t = 0 the model reads nothing but its own state: here is what it foresees beside what happened."
    return section("fields", what_is_shown(report), intro if _foresees(report) else "", moving, pair(*parts))


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


def _stills(report: Report, shown: films.Fields) -> str:
    last, both = len(shown.times) - 1, shown.proxy is not None
    frames = sorted({round(last * part / (_SHOWN - 1)) for part in range(_SHOWN)})
    broken = " What is not finite is magenta, in frames that are drawn point by point." if shown.broken else ""
    panels = "reference, proxy alone, and their difference" if both else "one picture each"
    scale = "the reference's" if both else "all"
    return figure(
        svg(films.snapshots(shown, frames), "snapshots"),
        "Snapshots",
        f"{shown.name.capitalize()} at {len(frames)} times: {panels}.",
        f"{shown.name.capitalize()} of {report.fields_of or shown.member or 'the run'}. One colour scale for all panels"
        f"{', the difference included' if both else ''}: 99.5 % of {scale} values lie within it. Drawn from "
        f"the fields' own modes; nothing is smoothed.{broken}",
    )


def _film(report: Report, shown: films.Fields) -> str:
    both = shown.proxy is not None
    alone = "Decoded from the model's states: no flow was solved." if report.decoded else "Frames as they were written."
    caption = (
        "The proxy holds large structures alone: at t = 0 the difference is what it leaves out. Later it is also where "
        "the model went another way."
        if both
        else alone
    )
    which = f"{shown.member[:1].upper()}{shown.member[1:]}. " if shown.member else ""
    return film(
        films.film(shown),
        shown.name.capitalize() + (f", {shown.member}" if shown.member else ""),
        f"A film of {shown.name} over {len(shown.times)} frames from t = {shown.times[0]:g} to {shown.times[-1]:g}.",
        f"{which}{caption} One scale of colours for all frames{' and panels' if both else ''}.",
    )


def energy(report: Report) -> str:
    """Energy and enstrophy, spectra, errors, the sheet."""
    evaluation, parts = report.evaluation, list[str]()
    if evaluation is not None:
        parts = [
            figure(
                svg(figures.totals(evaluation), "totals"), "Energy and enstrophy", "Energy and enstrophy against time.",
                "Means over windows. A model of few modes starts below the reference by what it leaves out; a line "
                "that leaves the picture has blown up.",
            ),
            figure(
                svg(figures.spectra(evaluation), "spectra"), "Energy spectra",
                "Energy by wave number at the last frame.",
                "At the last frame, means over windows. Beyond k_cut a proxy holds nothing unless something is put "
                "there on purpose; that is judged here, by its spectrum, and never by correlation.",
            ),
            figure(
                svg(figures.error(evaluation), "error"), "Relative L2 error", "Relative L2 error against time.",
                "Means over windows. 1 is the error of a field of zeros, about 1.4 that of an unrelated field.",
            ),
        ]  # fmt: skip
    if evaluation is None and report.measures is not None:
        parts = [
            figure(
                svg(measures.history(report.measures), "history"), "Energy and enstrophy",
                "Energy and enstrophy against time.",
                f"Of the frames that were kept, from their fields{_member(report)}.",
            ),
            figure(
                svg(measures.spectra(report.measures), "shells"), "Energy spectra",
                "Energy by wave number of the first and the last frame.",
                f"Of the first and the last frame{_member(report)}.",
            ),
        ]  # fmt: skip
    return section("energy", what_is_measured(report), "", pair(*parts, _sheet(report)))


def _member(report: Report) -> str:
    return f" ({report.fields.member})" if report.fields is not None and report.fields.member else ""


def what_is_measured(report: Report) -> str:
    """The title of the section on energies: there are errors only where something was scored."""
    if report.evaluation is not None:
        return "Energy, spectra, errors"
    return "Energy and spectra" if report.measures is not None else "Energy"


def _sheet(report: Report) -> str:
    drawn = report.sheet
    if drawn is None:
        return ""
    rows, bands = drawn.energies.shape
    return figure(
        svg(timeline.sheet(drawn.energies, end=drawn.end, what=drawn.what, first=drawn.first), "sheet"),
        "The sheet: what the run did, at one glance",
        f"A heat map of the energies of {bands} bands over {rows} rows.",
        f"Energy by {drawn.what} of {drawn.of}: time to the right, {drawn.what}s upwards, at most {timeline.DECADES} "
        "decades below the largest energy.",
    )


def _titled(title: str) -> Callable[[Report], str]:
    return lambda report: title


PARTS: Final[Sequence[tuple[str, Callable[[Report], str], Callable[[Report], str]]]] = (
    ("flow", _titled("The flow"), card),
    ("fields", what_is_shown, fields),
    ("skill", _titled("How long does it hold?"), skill),
    ("energy", what_is_measured, energy),
    ("chain", _titled("The chain"), chain),
    ("where", _titled("Where it ran"), where),
    ("proof", _titled("Proof"), proof),
    ("repeat", _titled("Repeat it"), repeat),
)
"""Name, title and content, in the order of the page."""
