"""The sections on what was found, each a function of the report; one that has nothing to show is empty."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dashi.report import figures, films, measures, timeline
from dashi.report.flow_card import card
from dashi.report.html import figure, film, pair, section
from dashi.report.run_sections import proof, repeat, where
from dashi.report.scores import skill
from dashi.report.style import svg

if TYPE_CHECKING:
    from dashi.report.page import Report

_SHOWN: Final = 4
"""Stills."""


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
        f"{given.name.capitalize()} of {report.fields_of or given.member or 'the run'}. One colour scale for all panels"
        f"{', the difference included' if both else ''}: 99.5 % of {scale} values lie within it. Drawn from "
        f"the fields' own modes; nothing is smoothed.{broken}",
    )


def _film(report: Report, given: films.Fields) -> str:
    both = given.proxy is not None
    alone = "Decoded from the model's states: no flow was solved." if report.decoded else "Frames as they were written."
    told = (
        "The proxy holds large structures alone: at t = 0 the difference is what it leaves out. Later it is also where "
        "the model went another way."
        if both
        else alone
    )
    which = f"{given.member[:1].upper()}{given.member[1:]}. " if given.member else ""
    return film(
        films.film(given),
        given.name.capitalize() + (f", {given.member}" if given.member else ""),
        f"A film of {given.name} over {len(given.times)} frames from t = {given.times[0]:g} to {given.times[-1]:g}.",
        f"{which}{told} One scale of colours for all frames{' and panels' if both else ''}.",
    )


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
    given = report.sheet
    if given is None:
        return ""
    rows, bands = given.energies.shape
    return figure(
        svg(timeline.sheet(given.energies, end=given.end, what=given.what, first=given.first), "sheet"),
        "The sheet: what the run did, at one glance",
        f"A heat map of the energies of {bands} bands over {rows} rows.",
        f"Energy by {given.what} of {given.of}: time to the right, {given.what}s upwards, at most {timeline.DECADES} "
        "decades below the largest energy.",
    )


def _titled(title: str) -> Callable[[Report], str]:
    return lambda report: title


PARTS: Final[Sequence[tuple[str, Callable[[Report], str], Callable[[Report], str]]]] = (
    ("flow", _titled("The flow"), card),
    ("fields", what_is_shown, fields),
    ("skill", _titled("How long does it hold?"), skill),
    ("energy", what_is_measured, energy),
    ("where", _titled("Where it ran"), where),
    ("proof", _titled("Proof"), proof),
    ("repeat", _titled("Repeat it"), repeat),
)
"""Name, title and content, in the order of the page."""
