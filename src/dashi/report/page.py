"""The report: one HTML file that needs nothing else, works offline, and can be read on a phone."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Final

import numpy as np

from dashi.core.traces.trace import Span
from dashi.flow.evaluation.result import Evaluation
from dashi.flow.grid import Floats
from dashi.io._files import write_text
from dashi.io._run_names import GENERATOR
from dashi.io.metrics import Metrics
from dashi.report._flow_card import FlowFacts
from dashi.report.figures import Continuation
from dashi.report.films import Fields
from dashi.report.measures import Measures

_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src "
"""Browsers refuse every request that this page could make: there is nothing that it may fetch. Of scripts they run its
own alone, which is named by its digest."""
_LAST: Final = "<footer>This page holds all that it shows: it loads nothing and sends nothing.</footer>"
_ENDS: Final = 4096
"""Bytes at the beginning and at the end of a page in which these stand."""


@dataclass(frozen=True, eq=False)
class BandEnergies:
    """Band energies, a row for each observed step."""

    energies: Floats
    """(rows, bands)"""
    end: float | None = None
    """Time of the last row, where it is known."""
    what: str = "band"
    first: int = 0
    """The number of the first band."""
    of: str = "the run"

    @property
    def broken(self) -> list[str]:
        """What is not finite, in words."""
        bad = ~np.isfinite(self.energies)
        if not bad.any():
            return []
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        when = "" if self.end is None else f", t = {self.end * row / max(1, len(bad) - 1):.4g},"
        bands = ", ".join(str(self.first + int(band)) for band in np.flatnonzero(bad[row])[:8])
        message = (
            f"The sheet is not finite from row {row}{when} on: {int(bad.sum()):,} of {bad.size:,} energies are NaN or "
            f"infinite, in that row those of {self.what} {bands}{', ...' if bad[row].sum() > 8 else ''}. They are "
            "drawn in magenta."
        )
        return [message]


@dataclass(frozen=True)
class Proof:
    """A certificate, as the page shows it."""

    file: str
    digest: str
    operator: str
    steps: int
    hashes: int
    last: str
    portable: bool
    device: str
    checked: str = ""
    """What was already found when it was repeated elsewhere."""


@dataclass(frozen=True)
class DeviceUse:
    """Where a part of a run without metrics ran."""

    part: str
    device: str
    asked: str = ""
    used: str = ""
    seconds: float | None = None
    why: str = ""
    """Another device than the one asked for was used."""


@dataclass(frozen=True, eq=False)
class Report:
    """All that the page can show; what is not there is left out."""

    title: str
    summary: str = ""
    """What was found, in a sentence or two."""
    finished: str = ""
    command: str = ""
    """Repeats the run."""
    tiles: tuple[tuple[str, str], ...] = ()
    """Numbers that matter most, and what they are."""
    ours: str = "galerkin"
    """The model that the run is about."""
    flow: FlowFacts | None = None
    """The flow that it is about."""
    fields: Fields | None = None
    fields_of: str = ""
    """Which window the fields are of."""
    decoded: bool = False
    """Whether the fields are decoded from states of a model, with no truth beside them."""
    measures: Measures | None = None
    """Measures of those fields, where nothing was scored."""
    evaluation: Evaluation | None = None
    training: Evaluation | None = None
    """Scores of the model on what it was fitted to."""
    continuation: Continuation | None = None
    sheet: BandEnergies | None = None
    spans: tuple[Span, ...] = ()
    metrics: Metrics | None = None
    proof: Proof | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What a reader must know before anything else."""
    places: tuple[DeviceUse, ...] = ()
    """Where each part ran, of a run without metrics."""


def write_report(path: Path, report: Report) -> None:
    """Writes the page, all or nothing."""
    write_text(path, render(report))


def is_report(path: Path) -> bool:
    """Whether a file is a page that was written here, or by a version that did not name itself yet."""
    with path.open("rb") as opened:
        head = opened.read(_ENDS)
        opened.seek(max(0, opened.seek(0, os.SEEK_END) - _ENDS))
        return GENERATOR.encode() in head or (_POLICY.encode() in head and _LAST.encode() in opened.read())


def _moment(text: str) -> str:
    """A time in ISO 8601 as people write it."""
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def render(report: Report) -> str:
    """The page's text."""
    from dashi.report import _html as html
    from dashi.report import _sections as sections
    from dashi.report._run_sections import version_of
    from dashi.report._words import glossary

    made = [(name, title(report), part(report)) for name, title, part in sections.PARTS]
    there = [(name, title, body) for name, title, body in made if body]
    links = "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title, _ in there)
    warned = [*report.warnings, *(text for one in (report.fields, report.sheet) if one for text in one.broken)]
    notes = "".join(f'<p class="warning" role="alert">{escape(text)}</p>\n' for text in warned)
    notes += "".join(f'<p class="note">{escape(note)}</p>\n' for note in report.notes)
    first = f"dashi {version_of(report)} report".replace("  ", " ")
    when = f'<p class="when">{escape(first)}, {escape(_moment(report.finished))}</p>\n' if report.finished else ""
    lead = f'<p class="lead">{escape(report.summary)}</p>\n' if report.summary else ""
    top = f"{when}<h1>{escape(report.title)}</h1>\n{lead}{notes}{html.tiles(report.tiles)}\n"
    main = "".join(body for _, _, body in there)
    script = f"\n{_beside('page.js')}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}\'sha256-{digest}\'">\n'
        f'{GENERATOR}\n<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(report.title)}</title>\n<style>\n{_beside('page.css')}</style>\n</head>\n<body>\n"
        f"<header>\n{top}{glossary(top + main)}"
        f'<nav aria-label="Sections">{links}<button type="button" id="theme" hidden>Dark</button></nav>\n</header>\n'
        f"<main>\n{main}</main>\n"
        f"{_LAST}\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
