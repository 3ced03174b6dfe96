"""The figures of an evaluation: each a function of a dataset to a matplotlib figure, for the page or for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.flow.evaluation.result import THRESHOLDS, Evaluation, Line
from dashi.flow.grid import Floats
from dashi.report._style import (
    BLUE,
    GRID,
    INK,
    MUTED,
    ORANGE,
    PAPER,
    looks,
    new_figure,
    plot_module,
    power_ticks,
    styled,
)
from dashi.report.scales import evaluated_scales

_PAIRED, _TALL = 3.9, 4.2
"""Inches: figures that stand beside one another are of one height."""
Figure = Any
"""matplotlib.figure.Figure, which is imported where it is made."""


@dataclass(frozen=True, eq=False)
class Continuation:
    """The canonical figure's data, of one unseen window: what the proxy of the true field holds, and what the model
    makes of it when it is left alone."""

    times: Floats
    """(frames,), 0 where the model is left alone."""
    reference: Floats
    """Energy of the full field; NaN where there is none."""
    proxy: Floats
    """Energy of the proxy of the full field: what the model could hold at best."""
    alone: Floats
    """Energy of the model's state; NaN before it is left alone."""
    model: str = "galerkin"


def correlation(evaluation: Evaluation, models: Sequence[str] = ()) -> Figure:
    """Correlation with the full field against time: means over windows, and bands from the worst to the best one."""
    chosen = _chosen(evaluation, models)
    drawn = looks([line.model for line in chosen])
    figure = new_figure(_PAIRED)
    with styled():
        axes = figure.subplots()
        for level in THRESHOLDS:
            axes.axhline(level, color=GRID, linewidth=1.0, zorder=0)
        for line in chosen:
            look = drawn[line.model]
            values = _bounded(line.correlation)
            axes.fill_between(
                evaluation.times, values.min(axis=0), values.max(axis=0), color=look.colour, alpha=0.11, linewidth=0
            )
            axes.plot(evaluation.times, values.mean(axis=0), label=line.model, **look.drawn)
        axes.set_xlabel("time since the model was left alone")
        axes.set_ylabel("correlation with the full field")
        axes.set_yticks([0.0, *sorted(THRESHOLDS), 1.0])
        axes.set_ylim(min(-0.05, _lowest(chosen)), 1.02)
        axes.set_xlim(evaluation.times[0], evaluation.times[-1])
        axes.grid(visible=False, axis="y")
        _turnover_axis(axes, evaluation)
        _legend(figure, len(chosen))
    return figure


def error(evaluation: Evaluation, models: Sequence[str] = ()) -> Figure:
    """Relative L2 error against time, on a logarithmic scale: 1 is a field of nothing."""
    chosen = _chosen(evaluation, models)
    drawn = looks([line.model for line in chosen])
    figure = new_figure(3.4)
    with styled():
        axes = figure.subplots()
        for line in chosen:
            values = np.maximum(_finite(line.relative_l2).mean(axis=0), 1e-9)
            axes.semilogy(evaluation.times, values, label=line.model, **drawn[line.model].drawn)
        axes.axhline(1.0, color=MUTED, linewidth=0.8, zorder=0)
        axes.set_xlabel("time since the model was left alone")
        axes.set_ylabel("relative L2 error")
        axes.set_xlim(evaluation.times[0], evaluation.times[-1])
        axes.set_ylim(top=min(axes.get_ylim()[1], 30.0))
        _plain_ticks(axes.yaxis)
        _legend(figure, len(chosen))
    return figure


def spectra(evaluation: Evaluation, models: Sequence[str] = ()) -> Figure:
    """Energy by wave number at the last frame, means over windows, with the cut of the proxy."""
    chosen = [line for line in _chosen(evaluation, models) if np.isfinite(line.spectrum).any()]
    drawn = looks(["reference", *(line.model for line in chosen)])
    figure = new_figure(_TALL)
    with styled():
        axes = figure.subplots()
        shells = np.arange(len(evaluation.spectrum))
        floor = float(np.max(evaluation.spectrum)) * 1e-9
        for name, values in [("reference", evaluation.spectrum), *((one.model, one.spectrum) for one in chosen)]:
            shown = np.where(values > floor, values, np.nan)[1:]
            axes.loglog(shells[1:], shown, label=name, **drawn[name].drawn)
        cut = evaluation.settings.get("k_cut")
        if isinstance(cut, int | float):
            axes.axvline(cut, color=MUTED, linewidth=0.9, zorder=0)
            place = axes.get_xaxis_transform()
            axes.text(cut, 1.0, f" k_cut = {cut:g}", transform=place, va="top", color=MUTED, fontsize=8.5)
        _plain_ticks(axes.xaxis)
        power_ticks(axes.yaxis)
        axes.set_xlabel("wave number")
        axes.set_ylabel(f"energy by shell at t = {evaluation.times[-1]:g}")
        _legend(figure, 1 + len(chosen))
    return figure


def totals(evaluation: Evaluation, models: Sequence[str] = ()) -> Figure:
    """Energy and enstrophy against time, means over windows."""
    chosen = _chosen(evaluation, models)
    drawn = looks(["reference", *(line.model for line in chosen)])
    figure = new_figure(_TALL)
    with styled():
        both = figure.subplots(2, 1, sharex=True)
        for axes, name in zip(both, ("energy", "enstrophy"), strict=True):
            reference = np.asarray(getattr(evaluation, name)).mean(axis=0)
            axes.plot(evaluation.times, reference, label="reference", **drawn["reference"].drawn)
            for line in chosen:
                mean = _finite(getattr(line, name)).mean(axis=0)
                axes.plot(evaluation.times, mean, label=line.model, **drawn[line.model].drawn)
            axes.set_ylabel(name)
            axes.set_ylim(0, 1.3 * float(np.asarray(getattr(evaluation, name)).max()))
        both[1].set_xlabel("time since the model was left alone")
        both[1].set_xlim(evaluation.times[0], evaluation.times[-1])
        _legend(figure, 1 + len(chosen), both[0])
    return figure


def canonical(data: Continuation) -> Figure:
    """Reference energy, proxy energy, and the proxy-only continuation."""
    figure = new_figure(_TALL)
    with styled():
        axes = figure.subplots()
        axes.axvspan(float(data.times[0]), 0.0, color=GRID, alpha=0.45, linewidth=0, zorder=0)
        axes.plot(data.times, data.reference, color=INK, linewidth=1.9, label="reference")
        axes.plot(data.times, data.proxy, color=ORANGE, linestyle="--", linewidth=1.7, label="proxy of the reference")
        axes.plot(data.times, data.alone, color=BLUE, linewidth=2.2, label=f"{data.model}, left alone")
        start = int(np.searchsorted(data.times, 0.0))
        axes.plot([0.0], [data.alone[start]], "o", color=BLUE, markersize=5, markeredgecolor=PAPER)
        axes.set_xlim(float(data.times[0]), float(data.times[-1]))
        low, high = limits(data)
        axes.set_ylim(low, high)
        axes.set_xlabel("time (the model is left alone at 0)")
        axes.set_ylabel("energy")
        _legend(figure, 3)
    return figure


def horizons(evaluation: Evaluation, threshold: float = 0.5, models: Sequence[str] = ()) -> Figure:
    """Time to a correlation below the threshold: one dot for each window, a bar at the mean."""
    chosen = sorted(_chosen(evaluation, models), key=lambda line: float(line.horizons[threshold].mean()))
    drawn = looks([line.model for line in _chosen(evaluation, models)])
    figure = new_figure(max(_PAIRED, 0.9 + 0.36 * len(chosen)))
    with styled():
        axes = figure.subplots()
        for place, line in enumerate(chosen):
            values = np.asarray(line.horizons[threshold])
            colour = drawn[line.model].colour
            axes.barh(place, float(values.mean()), height=0.62, color=colour, alpha=0.3, linewidth=0)
            shift = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1)
            axes.plot(values, place + shift, "o", color=colour, markersize=3.6, markeredgewidth=0, clip_on=False)
        axes.set_yticks(range(len(chosen)), [line.model for line in chosen])
        axes.set_xlim(0, float(evaluation.times[-1]) * 1.02)
        axes.set_xlabel(f"time to correlation < {threshold:g}")
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        _turnover_axis(axes, evaluation)
    return figure


def limits(data: Continuation) -> tuple[float, float]:
    """Limits that show the changes of the truth, and the model as far as it stays within three times their span."""
    truth = np.concatenate([data.reference, data.proxy])
    truth = truth[np.isfinite(truth)]
    low, high = (float(truth.min()), float(truth.max())) if truth.size else (0.0, 1.0)
    room = max(high - low, 0.05 * abs(high))
    alone = np.clip(data.alone[np.isfinite(data.alone)], low - 3 * room, high + 3 * room)
    low, high = float(np.min(alone, initial=low)), float(np.max(alone, initial=high))
    return max(0.0, low - 0.4 * room), high + 0.4 * room


def leaves(data: Continuation) -> bool:
    """Whether the model's energy leaves the canonical figure, or is not finite."""
    low, high = limits(data)
    alone = data.alone[np.searchsorted(data.times, 0.0) :]
    return not bool(np.all((alone >= low) & (alone <= high)))


def _chosen(evaluation: Evaluation, models: Sequence[str]) -> list[Line]:
    return [line for line in evaluation.lines if not models or line.model in models]


def _bounded(values: Floats) -> Floats:
    """A field that is not finite correlates with nothing."""
    return np.nan_to_num(np.asarray(values, np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _finite(values: Floats) -> Floats:
    """What blew up is drawn as a line that leaves the figure."""
    return np.nan_to_num(np.asarray(values, np.float64), nan=1e30, posinf=1e30, neginf=1e30)


def _lowest(lines: Sequence[Line]) -> float:
    return min((float(_bounded(line.correlation).min()) for line in lines), default=0.0) - 0.03


def _turnover_axis(axes: Any, evaluation: Evaluation) -> None:
    """Draw a second axis above: the times in eddy turnovers, where those are known."""
    scales = evaluated_scales(evaluation)
    if scales is None:
        return
    each = scales.turnover

    def turnovers(times: Floats) -> Floats:
        return times / each

    def times(count: Floats) -> Floats:
        return count * each

    above = axes.secondary_xaxis("top", functions=(turnovers, times))
    above.set_xlabel("eddy turnovers", color=MUTED)
    above.spines["top"].set_visible(False)
    above.tick_params(length=0, labelcolor=MUTED)


def _plain_ticks(axis: Any) -> None:
    """1, 2, 5, 10, ... on a logarithmic axis of few decades."""
    ticker = plot_module("matplotlib.ticker")
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _legend(figure: Any, count: int, axes: Any = None) -> None:
    """Below the axes, where it covers nothing, in as many columns as fit a phone."""
    handles, labels = (axes or figure.axes[0]).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=min(3, count), columnspacing=1.2, handlelength=2.8)
