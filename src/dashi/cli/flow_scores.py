"""How evaluations are printed: one table, a row for each model and set of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dashi.cli.output import add_row, new_table, print_table
from dashi.flow.evaluation import Evaluation, Row, Spread, table


def print_scores(evaluations: Sequence[Evaluation]) -> None:
    """Means over windows, with their interval of 95 % over seeds where there are several."""
    shown = new_table(
        "windows of", "model", "|z|", "t(0.9)", "t(0.8)", "t(0.5)", "L2", "dE", "dZ", "spectrum", "admissible", "failed"
    )
    for evaluation in evaluations:
        for row in table(evaluation):
            add_row(shown, *_cells(evaluation, row))
    print_table(shown)


def named(evaluation: Evaluation) -> str:
    """The windows in a word or two: `train`, `test`, `test nu=0.004`."""
    changed = evaluation.settings.get("perturbed")
    return f"{evaluation.split} {changed}" if changed else evaluation.split


def _cells(evaluation: Evaluation, row: Row) -> list[str]:
    found, longest = evaluation.line(row.model).horizons, float(evaluation.times[-1])
    times = [_time(row.horizons[t], bound=bool((found[t] >= longest).any())) for t in (0.9, 0.8, 0.5)]
    failed = ", ".join(f"{count} {name}" for name, count in sorted(row.failures.items()) if name != "none")
    seen = ", seen before" if evaluation.settings.get("overlap") == "yes" else ""
    return [
        f"{named(evaluation)}{seen} ({row.windows})",
        row.model,
        str(row.numbers),
        *times,
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
    if math.isnan(one.low):
        return f"{mark}{one.mean:.2f}"
    return f"{mark}{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]"


def _plain(one: Spread) -> str:
    return "-" if math.isnan(one.mean) else f"{one.mean:.3g}"


def _percent(one: Spread) -> str:
    return "-" if math.isnan(one.mean) else f"{100 * one.mean:+.3g} %"
