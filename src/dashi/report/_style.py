"""How figures look: sizes that can be read on a phone, colours that people with any eyes can tell apart, and inline SVG
whose ink follows the page from light to dark.

Lines use the palette of Okabe and Ito (Color Universal Design, 2008), with dashes as the second mark; fields use the
maps of F. Crameri (vik, batlow; doi 10.5281/zenodo.1243862), which are perceptually uniform.
"""

from __future__ import annotations

import importlib
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Final

from dashi.errors import InputError, install_extra

INK, MUTED, GRID, PAPER = "#1d1d1e", "#6b6b6f", "#d9d9dd", "#fdfdfe"
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BROWN = (
    "#0071b1", "#de9a00", "#009d72", "#d45d00", "#c2709c", "#46a5dc", "#8a6d3b",
)  # fmt: skip
VARIABLES: Final[Mapping[str, str]] = {
    INK: "--ink", MUTED: "--muted", GRID: "--grid", PAPER: "--paper", BLUE: "--blue", ORANGE: "--orange",
    GREEN: "--green", RED: "--red", PURPLE: "--purple", SKY: "--sky", BROWN: "--brown",
}  # fmt: skip
"""The page's name of each colour: in SVG they are variables, so that a dark page can have lighter ones."""

BROKEN: Final = "#ff00ff"
"""The colour of values that are not finite, as `dashi sheet view` has it: no map holds it."""

WIDTH: Final = 4.7
"""Inches of a figure: on a phone, 358 points wide, its 9-point text is still 9 points."""

_SETTINGS: Final[Mapping[str, Any]] = {
    "svg.fonttype": "none", "font.size": 9.5, "axes.titlesize": 10, "axes.labelsize": 9.5, "xtick.labelsize": 9,
    "ytick.labelsize": 9, "legend.fontsize": 8.5, "legend.frameon": False, "axes.edgecolor": MUTED,
    "axes.labelcolor": INK, "text.color": INK, "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK,
    "ytick.labelcolor": INK, "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.7, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.6, "figure.facecolor": "none",
    "axes.facecolor": "none", "savefig.facecolor": "none", "axes.titlelocation": "left", "axes.linewidth": 0.8,
    "text.parse_math": False,  # names come from files, and a dollar in one is a dollar
}  # fmt: skip


_DASHES: Final[Mapping[str, tuple[float, ...]]] = {
    "solid": (), "dashed": (3.7, 1.6), "dashdot": (6.4, 1.6, 1.0, 1.6), "dotted": (1.0, 1.65),
    "dashdotdot": (5.0, 1.5, 1.0, 1.5, 1.0, 1.5),
}  # fmt: skip
"""Strokes and gaps of each pattern, in widths of the line."""


@dataclass(frozen=True)
class LineStyle:
    """How a line is drawn: by a colour of the palette and a pattern of `_DASHES`."""

    colour: str
    dashes: str = "solid"
    width: float = 1.5

    @property
    def drawn(self) -> dict[str, Any]:
        """The look of a line as keywords of matplotlib."""
        return {"color": self.colour, "linestyle": (0, _DASHES[self.dashes] or None), "linewidth": self.width}

    @property
    def swatch(self) -> str:
        """A short piece of the line as inline SVG, for tables."""
        pattern = " ".join(f"{self.width * part:.3g}" for part in _DASHES[self.dashes])
        dashed = f' stroke-dasharray="{pattern}"' if pattern else ""
        return (
            '<svg class="swatch" viewBox="0 0 28 8" aria-hidden="true"><line x1="0" y1="4" x2="28" y2="4" '
            f'stroke="var({VARIABLES[self.colour]})" stroke-width="{self.width:g}"{dashed}/></svg>'
        )


_LOOKS: Final[Mapping[str, LineStyle]] = {
    "reference": LineStyle(INK, "solid", 2.0),
    "perfect": LineStyle(GREEN, "dashed", 1.8),
    "galerkin": LineStyle(BLUE, "solid", 2.2),
    "slaved": LineStyle(RED, "dashdot", 2.0),
    "truncation": LineStyle(PURPLE, "dashdot"),
    "ridge": LineStyle(ORANGE, "solid"),
    "delay": LineStyle(RED, "dashed"),
    "dmd": LineStyle(SKY, "dashdotdot"),
    "persistence": LineStyle(MUTED, "dotted", 1.9),
    "damped": LineStyle(BROWN, "dashdotdot"),
}
"""Two of these with the same pattern have colours that everybody can tell apart."""
_SPARE: Final = tuple(
    look
    for turn in range(len(_DASHES))
    for place, colour in enumerate((GREEN, SKY, RED, BROWN, PURPLE, BLUE, ORANGE))
    if (look := LineStyle(colour, [*_DASHES][(place + turn) % len(_DASHES)], 1.6))
    and not any((look.colour, look.dashes) == (known.colour, known.dashes) for known in _LOOKS.values())
)
"""For names that are not known: all other pairs of a colour and a pattern."""


def looks(models: Sequence[str]) -> dict[str, LineStyle]:
    """How each model's line is drawn: a known name always the same, others in turn."""
    spare = cycle(_SPARE)
    return {name: _LOOKS[name] if name in _LOOKS else next(spare) for name in models}


def new_figure(height: float, width: float = WIDTH) -> Any:
    """An empty figure in the house's style."""
    figures = plot_module("matplotlib.figure")
    with styled():
        return figures.Figure(figsize=(width, height), layout="constrained")


def styled() -> Any:
    """A context in which axes, text and legends are made in the house's style."""
    return plot_module("matplotlib").rc_context(dict(_SETTINGS))


def power_ticks(axis: Any) -> None:
    """Powers of ten on a logarithmic axis, with digits that need no mathematical typesetting."""
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

    def named(value: float, _: object) -> str:
        return f"10{f'{math.log10(value):.0f}'.translate(raised)}" if value > 0 else ""

    ticker = plot_module("matplotlib.ticker")
    axis.set_major_formatter(ticker.FuncFormatter(named))
    axis.set_minor_formatter(ticker.NullFormatter())


def svg(figure: Any, name: str) -> str:
    """A figure as inline SVG: its text is text, its colours are the page's, its size is that of its place. `name` keeps
    its parts apart from those of other figures on the page."""
    room = io.StringIO()
    _draw_names_literally(figure)
    with styled():
        plot_module("matplotlib").rcParams["svg.hashsalt"] = name
        figure.savefig(room, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = room.getvalue()
    text = text[text.index("<svg") :]
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # matplotlib numbers them anew in every figure, and they would meet
    head, rest = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head).replace("<svg", '<svg role="presentation"')
    return f"{head}>{rest}"


def _draw_names_literally(figure: Any) -> None:
    """Names of models and bands come from files: a `$` in them is a dollar, and begins no formula. The powers of ten
    along a logarithmic axis are formulas, and stay so."""
    formulas = {
        id(text)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        if axis.get_scale() == "log"
        for text in (*axis.get_majorticklabels(), *axis.get_minorticklabels())
    }
    for text in figure.findobj(plot_module("matplotlib.text").Text):
        if id(text) not in formulas:
            text.set_parse_math(False)


def colour_map(name: str) -> Any:
    """A map of cmcrameri, or matplotlib's nearest where it is not installed. What is not a number is BROKEN."""
    try:
        chosen = getattr(importlib.import_module("cmcrameri.cm"), name)
    except ImportError:
        chosen = plot_module("matplotlib").colormaps[{"vik": "RdBu_r", "batlow": "cividis"}[name]]
    return chosen.with_extremes(bad=BROKEN)


def plot_module(name: str) -> Any:
    """A part of the extra `plot`; an error with its fix where that is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = "Pillow" if name.startswith("PIL") else "matplotlib"
        raise InputError(f"{missing} is not installed; it draws the figures.", install_extra("plot")) from error
