"""Pieces of the page: everything that comes from data is escaped here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from dashi.report.films import Film


@dataclass(frozen=True)
class Markup:
    """HTML that is ready; plain text is str and gets escaped."""

    text: str


Cell = str | Markup
_WIDE: Final = 18
"""Plain text above so many characters may be broken into lines."""
_SHORT: Final = 10
"""Plain text up to so many characters never is: `vulkan:0`."""
_LONGEST: Final = 26
"""A word of more characters, such as a digest, may be broken anywhere; all others stay whole."""


def safe(text: str) -> str:
    """Text as HTML."""
    return escape(text)


def shown(cell: Cell) -> str:
    """The HTML of a cell: markup as it is, text escaped."""
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


def film(picture: Film, title: str, alt: str, caption: Cell) -> str:
    """A film that can be stopped and wound, its panels side by side under their names, with the scale of its colours
    below. On a phone the panels scroll sideways. Without scripts the first frame is seen."""
    gap = f"{100 * picture.gap / picture.width:.4f}%"
    names = "".join(f"<span>{escape(name)}</span>" for name in picture.panels if len(picture.panels) > 1)
    titles = f'<div class="titles" style="column-gap:{gap}" aria-hidden="true">{names}</div>\n' if names else ""
    times = escape(json.dumps([round(t, 4) for t in picture.times]), quote=True)
    moving = (
        f'<div class="reel" style="--panels:{len(picture.panels)}">\n{titles}'
        f'<div class="film" style="aspect-ratio:{picture.width}/{picture.height}">'
        f'<img src="{picture.uri}" alt="{escape(alt, quote=True)}" width="{picture.width}" '
        f'height="{picture.height * picture.frames}"></div>\n</div>'
    )
    return (
        f'<figure data-film="{times}">\n<h3>{escape(title)}</h3>\n{scrolling(moving, title)}\n'
        f'<div class="controls" hidden><button type="button">Play</button>'
        f'<input type="range" min="0" max="{picture.frames - 1}" value="0" aria-label="frame"><output></output></div>\n'
        f"{_colour_bar(picture)}<figcaption>{shown(caption)}</figcaption>\n</figure>\n"
    )


def _colour_bar(picture: Film) -> str:
    """The colours from the least to the largest value, with five of the values."""
    stops = ",".join(picture.colours)
    ticks = "".join(f"<span>{escape(tick)}</span>" for tick in picture.ticks)
    label = f"Colours of {picture.unit} from {picture.ticks[0]} to {picture.ticks[-1]}"
    return (
        f'<div class="bar" role="img" aria-label="{escape(label, quote=True)}">'
        f'<div class="colours" style="background:linear-gradient(to right,{stops})"></div>'
        f'<div class="ticks">{ticks}</div><div class="unit">{escape(picture.unit)}</div></div>\n'
    )


def scrolling(content: str, label: str) -> str:
    """What may be wider than a phone: it scrolls within itself, and says so while there is more to the right."""
    return (
        '<div class="wide"><span class="cue" aria-hidden="true" hidden>scroll →</span>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label, quote=True)}">{content}</div></div>'
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
    return scrolling(f"<table{kind}>{top}<tbody>{''.join(body)}</tbody></table>", label)


def _kind(cell: Cell) -> str:
    """How the text of a cell may be broken into lines."""
    if isinstance(cell, Markup):
        return ""
    if any(len(word) > _LONGEST for word in cell.split()):
        return ' class="token"'
    return ' class="wrap"' if len(cell) > _WIDE else ' class="short"' if len(cell) <= _SHORT else ""


def facts(named: Mapping[str, str]) -> str:
    """Short facts in a few columns."""
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in named.items())
    return f'<dl class="facts">{rows}</dl>' if rows else ""


def counted(number: int, noun: str) -> str:
    """`1 window`, `4 windows`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def tiles(numbers: Iterable[tuple[str, str]]) -> str:
    """A few numbers that matter most; the first is ours."""
    cells: list[str] = []
    for place, (value, label) in enumerate(numbers):
        kind = "" if place else ' class="ours"'
        cells.append(f"<div{kind}><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>")
    return f'<dl class="tiles">{"".join(cells)}</dl>' if cells else ""


def command(line: str) -> str:
    """A line for a terminal, with a button that copies it."""
    return (
        f'<div class="command"><pre tabindex="0"><code>{escape(line)}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
    )


def took(seconds: float) -> str:
    """A time that something took, to two digits, in the unit that suits it: `114 s`, `2.5 s`, `68 ms`, `12 µs`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        value = seconds / size
        if value >= 0.995:
            return f"{value:,.0f} {unit}" if value >= 9.95 else f"{value:.2g} {unit}"
    return "0 s"
