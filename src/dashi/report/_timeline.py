"""Figures over time: the timeline of a trace, and sheets of band energies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dashi.core.traces.trace import Span
from dashi.flow.grid import Floats
from dashi.report._style import BLUE, GRID, MUTED, ORANGE, colour_map, new_figure, styled

Figure = Any
DECADES: Final = 8
_LEAST: Final = 0.004
"""Least width of a bar, as a share of the figure's: what took less is drawn so wide, to be seen at all."""


def sheet(energies: Floats, *, end: float | None = None, what: str = "band", first: int = 0) -> Figure:
    """Band energies over time, on a logarithmic scale; `end` is the time of the last row, else rows are counted.
    `first` is the number of the first band."""
    values = np.asarray(energies, np.float64)
    largest = float(np.max(values[np.isfinite(values)], initial=0.0)) or 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(np.isfinite(values), np.log10(values / largest), np.nan)
    low = max(-float(DECADES), min(-1.0, float(np.floor(np.min(logs[np.isfinite(logs)], initial=0.0)))))
    figure = new_figure(3.4)
    with styled():
        axes = figure.subplots()
        right = float(len(values) - 1) if end is None else end
        shown = axes.imshow(
            np.maximum(logs, low).T, origin="lower", aspect="auto", cmap=colour_map("batlow"), vmin=low,
            vmax=0, interpolation="none", extent=(0.0, max(right, 1e-9), first - 0.5, first + values.shape[1] - 0.5),
        )  # fmt: skip
        axes.grid(visible=False)
        axes.set_xlabel("row" if end is None else "time since the model was left alone")
        axes.set_ylabel(what)
        bar = figure.colorbar(shown, ax=axes, pad=0.02)
        bar.set_label("log10 of energy / largest")
        bar.outline.set_visible(False)
    return figure


def timeline(spans: Sequence[Span]) -> Figure:
    """When each stage and each device queue was at work."""
    tracks = [*dict.fromkeys((span.group, span.track) for span in spans)]
    # Stages from the top in the order in which they began; device queues below them.
    tracks.sort(key=lambda track: track[0] != "stages")
    total = max((span.end for span in spans), default=1) * 1e-9
    figure = new_figure(0.9 + 0.3 * max(1, len(tracks)))
    with styled():
        axes = figure.subplots()
        for place, (group, track) in enumerate(tracks):
            stage = group == "stages"
            mine = [span for span in spans if (span.group, span.track) == (group, track)]
            bars = [(span.begin * 1e-9, max(span.seconds, _LEAST * total)) for span in mine]
            axes.broken_barh(bars, (place - 0.36, 0.72), color=BLUE if stage else ORANGE, linewidth=0)
            busy = sum(span.seconds for span in mine)
            told = f"{busy:.2g} s" if busy < 100 else f"{busy:.0f} s"
            # In a column of their own, to the right of the axes: beside its bars there is not always room.
            axes.text(1.02, place, told, transform=axes.get_yaxis_transform(), va="center", color=MUTED, fontsize=8.5)
        names = [track if group == "stages" else f"{track} *" for group, track in tracks]
        axes.set_yticks(range(len(tracks)), names)
        axes.invert_yaxis()
        axes.set_xlim(0, total * 1.0)
        axes.set_xlabel("seconds since the run began")
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x", color=GRID)
        axes.tick_params(axis="y", length=0)
    return figure
