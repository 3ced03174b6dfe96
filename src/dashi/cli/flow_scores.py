"""How evaluations are printed: a table for each set of windows, with a row for each model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dashi.cli.output import add_row, new_table, print_table, print_text, remark
from dashi.flow.evaluation import Evaluation, Row, Spread, table
from dashi.flow.proxy.encode import enstrophy_share
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import Windows

_WHOLE: Final = 0.9
"""The highest of the correlations whose times are printed."""


def print_scores(evaluations: Sequence[Evaluation]) -> None:
    """Means over windows, with their interval of 95 % over seeds where there are several."""
    for number, evaluation in enumerate(evaluations):
        seen = ", seen before" if evaluation.settings.get("overlap") == "yes" else ""
        rows = table(evaluation)
        count = rows[0].windows if rows else 0
        if number:
            print_text("")
        print_text(f"windows: {named(evaluation)}{seen} ({count})")
        shown = new_table(
            "model", "t(0.9)", "t(0.8)", "t(0.5)", "|z|", "L2", "dE", "dZ", "spectrum", "admissible", "failed"
        )
        for row in rows:
            add_row(shown, *_cells(evaluation, row))
        print_table(shown)


def remark_on_share(schema: Schema, windows: Windows) -> None:
    """Says so where z holds too little of the flow for a correlation of 0.9 at the start."""
    share = enstrophy_share(schema, windows.fields[:, 0])
    if math.sqrt(share) < _WHOLE:
        remark(
            f"z holds {100 * share:.0f} % of the enstrophy at the start, so no correlation begins above "
            f"{math.sqrt(share):.2f}; a larger --k-cut of `dashi flow fit` holds more"
        )


def named(evaluation: Evaluation) -> str:
    """The windows in a word or two: `train`, `test`, `test nu=0.004`."""
    changed = evaluation.settings.get("perturbed")
    return f"{evaluation.split} {changed}" if changed else evaluation.split


def _cells(evaluation: Evaluation, row: Row) -> list[str]:
    found, longest = evaluation.line(row.model).horizons, float(evaluation.times[-1])
    times = [_time(row.horizons[t], bound=bool((found[t] >= longest).any())) for t in (0.9, 0.8, 0.5)]
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


def _time(one: Spread, *, bound: bool) -> str:
    if math.isnan(one.mean):
        return "-"
    # A window that never falls below counts as its length: the mean is a lower bound.
    mark = ">= " if bound else ""
    # Windows that all outlast their length have no spread that could be known.
    if math.isnan(one.low) or (bound and one.low == one.high):
        return f"{mark}{one.mean:.2f}"
    return f"{mark}{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]"


def _plain(one: Spread) -> str:
    return "-" if math.isnan(one.mean) else f"{one.mean:.3g}"


def _percent(one: Spread) -> str:
    return "-" if math.isnan(one.mean) else f"{100 * one.mean:+.3g} %"
