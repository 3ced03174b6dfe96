"""What fields alone tell: energy and enstrophy over time and spectra, for runs that nothing was scored in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from dashi.errors import DashiError
from dashi.flow._fields import read_attributes
from dashi.flow.decode._album import SOURCE
from dashi.flow.equations import Flow
from dashi.flow.evaluation.scores import Spectra
from dashi.flow.grid import Floats
from dashi.report._style import BLUE, GRID, MUTED, new_figure, plot_module, power_ticks, styled
from dashi.report.films import Fields

Figure = Any
_FLOOR = 1e-12
"""Share of the largest shell below which an energy is rounding."""


@dataclass(frozen=True, eq=False)
class Measures:
    """Energy, enstrophy and spectra of fields over time. NaN where a field is not finite."""

    times: Floats
    energy: Floats
    enstrophy: Floats
    spectra: Floats
    """Energy by shells, (frames, shells)."""


def measures(fields: Fields, flow: Flow) -> Measures:
    """Measures of the reference, on the flow's own grid, by the sums that scores are made of."""
    good = np.array([bool(np.isfinite(field).all()) for field in fields.reference])
    spectra = Spectra(flow)
    energy, enstrophy = (np.full((len(good), spectra.count), np.nan) for _ in range(2))
    if good.any():
        energy[good], enstrophy[good] = spectra.of(fields.reference[good])
    return Measures(fields.times, energy.sum(axis=1), enstrophy.sum(axis=1), energy)


def flow_of(path: Path) -> Flow | None:
    """The flow that a store of fields says it is of, or that the model of its states is of; None where it says nothing
    that can be used."""
    told = read_attributes(path)
    for prefix in ("flow_", SOURCE):
        named = {name.removeprefix(prefix): value for name, value in told.items() if name.startswith(prefix)}
        try:
            return Flow.restore(cast("dict[str, int | float | str]", named))
        except (DashiError, TypeError, ValueError, KeyError, OverflowError):
            continue
    return None


def history(data: Measures) -> Figure:
    """Energy and enstrophy against time."""
    figure = new_figure(4.2)
    with styled():
        both = figure.subplots(2, 1, sharex=True)
        for axes, name in zip(both, ("energy", "enstrophy"), strict=True):
            axes.plot(data.times, getattr(data, name), color=BLUE, linewidth=1.9)
            axes.set_ylabel(name)
            axes.set_ylim(bottom=0)
        both[1].set_xlabel("time")
        if data.times[-1] > data.times[0]:
            both[1].set_xlim(float(data.times[0]), float(data.times[-1]))
    return figure


def spectra(data: Measures) -> Figure:
    """Energy by wave number of the first and the last frame."""
    figure = new_figure(4.2)
    with styled():
        axes = figure.subplots()
        floor = float(np.max(data.spectra[np.isfinite(data.spectra)], initial=0.0)) * _FLOOR
        numbers = [*range(data.spectra.shape[1])]
        for frame, colour, dashes in ((0, MUTED, "--"), (len(data.times) - 1, BLUE, "-")):
            shown = np.where(data.spectra[frame] > floor, data.spectra[frame], np.nan)
            axes.loglog(numbers[1:], shown[1:], dashes, color=colour, label=f"t = {data.times[frame]:.3g}")
        axes.grid(visible=True, color=GRID)
        axes.xaxis.set_major_formatter(plot_module("matplotlib.ticker").StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(plot_module("matplotlib.ticker").NullFormatter())
        power_ticks(axes.yaxis)
        axes.set_xlabel("wave number")
        axes.set_ylabel("energy by shell")
        figure.legend(loc="outside lower left", ncols=2)
    return figure
