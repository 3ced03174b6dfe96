"""Evaluations as tables: one for each set of windows, with a row for each model, as text or HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from dashi.flow.evaluation import Evaluation, ScoreRow, Spread, table
from dashi.flow.proxy.encode import enstrophy_share
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import Windows

HEADINGS: Final = ("model", "t(0.9)", "t(0.8)", "t(0.5)", "|z|", "L2", "dE", "dZ", "spectrum", "admissible", "failed")
"""Flow time until correlation falls below a threshold, the size of z, the relative error of vorticity, the drift of
energy and of enstrophy, the error of the energy spectrum, the share of admissible frames, how windows failed."""
_WHOLE: Final = 0.9
"""The highest of the correlations whose times are shown."""


@dataclass(frozen=True)
class ScoreText:
    """The scores of all models on one set of windows: means, with their interval of 95 % over seeds where there are
    several."""

    title: str
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, evaluation: Evaluation) -> ScoreText:
        """The table of an evaluation."""
        rows = table(evaluation)
        count = rows[0].windows if rows else 0
        before = ", seen before" if evaluation.settings.get("overlap") == "yes" else ""
        title = f"windows: {windows_name(evaluation)}{before} ({count})"
        return cls(title, tuple(tuple(_cells(evaluation, row)) for row in rows))

    def __str__(self) -> str:
        lines = [HEADINGS, *self.rows]
        widths = [max(len(line[j]) for line in lines) for j in range(len(HEADINGS))]
        texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([self.title, *(text.rstrip() for text in texts)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in HEADINGS)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows)
        return f"<table><caption>{escape(self.title)}</caption><tr>{head}</tr>{body}</table>"


@dataclass(frozen=True)
class ScoreTables:
    """Tables of several sets of windows."""

    tables: tuple[ScoreText, ...]

    def __iter__(self) -> Iterator[ScoreText]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables))

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self.tables)  # pyright: ignore[reportPrivateUsage]


def windows_name(evaluation: Evaluation) -> str:
    """The windows in a word or two: `train`, `test`, `test nu=0.004`."""
    changed = evaluation.settings.get("perturbed")
    return f"{evaluation.split} {changed}" if changed else evaluation.split


def share_remark(schema: Schema, windows: Windows) -> str | None:
    """The remark that z holds too little of the flow for a correlation of 0.9 at the start; None where it does not."""
    share = enstrophy_share(schema, windows.fields[:, 0])
    if math.sqrt(share) >= _WHOLE:
        return None
    return (
        f"z holds {100 * share:.0f} % of the enstrophy at the start, so no correlation begins above "
        f"{math.sqrt(share):.2f}; a larger k_cut of the fit holds more"
    )


def _cells(evaluation: Evaluation, row: ScoreRow) -> list[str]:
    horizons, longest = evaluation.line(row.model).horizons, float(evaluation.times[-1])
    times = [_time(row.horizons[t], bound=bool((horizons[t] >= longest).any())) for t in (0.9, 0.8, 0.5)]
    failed = ", ".join(f"{count} {name}" for name, count in sorted(row.failures.items()) if name != "none")
    return [
        row.model,
        *times,
        str(row.numbers),
        _plain(row.relative_l2),
        _percent(row.energy_drift),
        _percent(row.enstrophy_drift),
        _plain(row.spectrum_error),
        f"{100 * row.admissible:.0f} %",
        failed or "none",
    ]


def _time(spread: Spread, *, bound: bool) -> str:
    if math.isnan(spread.mean):
        return "-"
    # A window that never falls below counts as its length: the mean is a lower bound.
    mark = ">= " if bound else ""
    # Windows that all outlast their length have no spread that could be known.
    if math.isnan(spread.low) or (bound and spread.low == spread.high):
        return f"{mark}{spread.mean:.2f}"
    return f"{mark}{spread.mean:.2f} [{spread.low:.2f}, {spread.high:.2f}]"


def _plain(spread: Spread) -> str:
    return "-" if math.isnan(spread.mean) else f"{spread.mean:.3g}"


def _percent(spread: Spread) -> str:
    return "-" if math.isnan(spread.mean) else f"{100 * spread.mean:+.3g} %"
