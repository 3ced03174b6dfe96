"""Pieces of the page: everything that comes from data is escaped here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from dashi.report.films import PANELS, Film


@dataclass(frozen=True)
class Markup:
    """HTML that is ready; plain text is str and gets escaped."""

    text: str


Cell = str | Markup
_WIDE: Final = 18
"""Plain text above so many characters may be broken into lines."""
_SHORT: Final = 10
"""Plain text up to so many characters never is: `vulkan:0`."""


def safe(text: str) -> str:
    """Text as HTML."""
    return escape(text)


def shown(cell: Cell) -> str:
    """As HTML."""
    return cell.text if isinstance(cell, Markup) else escape(cell)


def section(name: str, title: str, intro: Cell, *parts: str) -> str:
    """A part of the page that can be linked to; nothing if it has nothing to show."""
    body = "\n".join(part for part in parts if part)
    if not body:
        return ""
    told = f'<p class="intro">{shown(intro)}</p>\n' if intro else ""
    return f'<section id="{escape(name)}">\n<h2>{escape(title)}</h2>\n{told}{body}\n</section>\n'


def pair(*figures: str) -> str:
    """Figures beside one another where there is room."""
    made = [figure for figure in figures if figure]
    return f'<div class="pair">\n{"".join(made)}</div>' if made else ""


def figure(drawing: str, title: str, alt: str, caption: Cell) -> str:
    """An inline drawing with its title, a sentence for those who cannot see it, and a caption."""
    return (
        f'<figure>\n<h3>{escape(title)}</h3>\n<div role="img" aria-label="{escape(alt, quote=True)}">{drawing}</div>\n'
        f"<figcaption>{shown(caption)}</figcaption>\n</figure>\n"
    )


def film(made: Film, title: str, alt: str, caption: Cell) -> str:
    """A film that can be stopped and wound; without scripts its first frame is seen."""
    names = "".join(f"<span>{escape(name)}</span>" for name in PANELS)
    titles = f'<div class="titles" aria-hidden="true">{names}</div>\n' if made.width > 2 * made.height else ""
    times = escape(json.dumps([round(t, 4) for t in made.times]), quote=True)
    return (
        f'<figure data-film="{times}">\n<h3>{escape(title)}</h3>\n{titles}'
        f'<div class="film" style="aspect-ratio:{made.width}/{made.height}">'
        f'<img src="{made.uri}" alt="{escape(alt, quote=True)}" width="{made.width}" '
        f'height="{made.height * made.frames}"></div>\n'
        f'<div class="controls" hidden><button type="button">Play</button>'
        f'<input type="range" min="0" max="{made.frames - 1}" value="0" aria-label="frame"><output></output></div>\n'
        f"<figcaption>{shown(caption)}</figcaption>\n</figure>\n"
    )


def table(
    headings: Sequence[str], rows: Iterable[Sequence[Cell]], label: str, *, ours: str = "", text: bool = False
) -> str:
    """A table that scrolls within itself. Rows that `ours` names are marked."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body: list[str] = []
    for first, *rest in rows:
        mark = ' class="ours"' if ours and shown(first).endswith(ours) else ""
        cells = "".join(f"<td{_kind(cell)}>{shown(cell)}</td>" for cell in rest)
        body.append(f'<tr{mark}><th scope="row">{shown(first)}</th>{cells}</tr>')
    top = f"<thead><tr>{head}</tr></thead>" if any(headings) else ""
    kind = ' class="text"' if text else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label, quote=True)}"><table{kind}>{top}'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _kind(cell: Cell) -> str:
    length = len(cell) if isinstance(cell, str) else _WIDE
    return ' class="wrap"' if length > _WIDE else ' class="short"' if length <= _SHORT else ""


def tiles(numbers: Iterable[tuple[str, str]]) -> str:
    """A few numbers that matter most; the first is ours."""
    made: list[str] = []
    for place, (value, label) in enumerate(numbers):
        kind = "" if place else ' class="ours"'
        made.append(f"<div{kind}><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>")
    return f'<dl class="tiles">{"".join(made)}</dl>' if made else ""


def command(line: str) -> str:
    """A line for a terminal."""
    return f'<pre tabindex="0"><code>{escape(line)}</code></pre>'


def took(seconds: float) -> str:
    """A time that something took, to two digits."""
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1e3 * seconds:.2g} ms" if seconds >= 1e-3 else "less than 1 ms"
