"""An evaluation as a table: a row for each model, means over windows with bootstrap intervals over seeds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.flow.evaluation.result import Evaluation, Line
from dashi.flow.evaluation.spread import Spread, band, spread
from dashi.flow.grid import Floats
from dashi.runtime._notebook import html_table

_SPREADS: Final = ("correlation", "relative_l2", "energy_drift", "enstrophy_drift", "spectrum_error")


@dataclass(frozen=True, eq=False)
class ScoreRow:
    """One model on one set of windows."""

    split: str
    model: str
    numbers: int
    windows: int
    horizons: Mapping[float, Spread]
    """Flow time to correlation below the threshold."""
    correlation: Spread
    """At the last frame, as are the others."""
    relative_l2: Spread
    energy_drift: Spread
    """(model - reference) / reference."""
    enstrophy_drift: Spread
    spectrum_error: Spread
    admissible: float
    """The fraction of frames."""
    failures: Mapping[str, int]
    """How many windows failed in which way; those that did not are under `none`."""
    seconds: float
    device: str = ""
    """Where the rollout ran."""

    def document(self) -> dict[str, Any]:
        """Plain numbers, for JSON; what is not finite is None."""
        return {
            "split": self.split, "model": self.model, "numbers": self.numbers, "windows": self.windows,
            "horizons": {f"{threshold:g}": _plain(one) for threshold, one in self.horizons.items()},
            **{name: _plain(getattr(self, name)) for name in _SPREADS},
            "admissible": self.admissible, "failures": dict(self.failures), "seconds": self.seconds,
            "device": self.device,
        }  # fmt: skip


class ScoreTable(list[ScoreRow]):
    """Rows that print as a table: aligned text by `print`, HTML in a notebook."""

    def cells(self) -> list[list[str]]:
        """The head, and a line of text for each row: means, with their intervals over seeds where there are several."""
        thresholds = sorted({threshold for row in self for threshold in row.horizons}, reverse=True)
        head = ["split", "model", *(f"t({threshold:g})" for threshold in thresholds), *_SPREADS, "admissible", "failed"]
        return [head, *(_cells(row, thresholds) for row in self)]

    def __str__(self) -> str:
        lines = self.cells()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head, *rows = self.cells()
        return html_table(head, rows)


def table(evaluation: Evaluation) -> ScoreTable:
    """A row for each model."""
    return ScoreTable(_row(evaluation, line) for line in evaluation.lines)


def _cells(row: ScoreRow, thresholds: Sequence[float]) -> list[str]:
    failed = [f"{count} {name}" for name, count in sorted(row.failures.items()) if name != "none"]
    return [
        row.split,
        row.model,
        *(str(row.horizons.get(threshold, "")) for threshold in thresholds),
        *(str(getattr(row, name)) for name in _SPREADS),
        f"{row.admissible:.0%}",
        ", ".join(failed) or "none",
    ]


def drift(values: Floats, reference: Floats) -> Floats:
    """(model - reference) / reference."""
    return values / np.where(reference > 0, reference, 1.0) - 1.0


def _row(evaluation: Evaluation, line: Line) -> ScoreRow:
    def at_end(values: Floats) -> Spread:
        return spread(values[:, -1], evaluation.seeds)

    return ScoreRow(
        split=evaluation.split,
        model=line.model,
        numbers=line.numbers,
        windows=len(evaluation.seeds),
        horizons={threshold: spread(values, evaluation.seeds) for threshold, values in line.horizons.items()},
        correlation=at_end(line.correlation),
        relative_l2=at_end(line.relative_l2),
        energy_drift=at_end(drift(line.energy, evaluation.energy)),
        enstrophy_drift=at_end(drift(line.enstrophy, evaluation.enstrophy)),
        spectrum_error=at_end(line.spectrum_error),
        admissible=float(np.mean(line.admissible)),
        failures=dict(Counter(line.failures)),
        seconds=line.seconds,
        device=line.device,
    )


def series(evaluation: Evaluation) -> dict[str, Any]:
    """Every score of every model along time: mean over windows, and the ends of its interval; for JSON."""
    document: dict[str, Any] = {"time": evaluation.times.tolist(), "models": {}}
    for line in evaluation.lines:
        scores = {
            "correlation": line.correlation,
            "relative_l2": line.relative_l2,
            "energy_drift": drift(line.energy, evaluation.energy),
            "enstrophy_drift": drift(line.enstrophy, evaluation.enstrophy),
            "spectrum_error": line.spectrum_error,
            "admissible": line.admissible,
        }
        document["models"][line.model] = {name: _along(values, evaluation) for name, values in scores.items()}
    return document


def _along(values: Floats, evaluation: Evaluation) -> dict[str, list[float | None]]:
    low, high = band(values, evaluation.seeds, draws=1000)
    parts = {"mean": values.mean(0), "low": low, "high": high}
    return {name: [_number(v) for v in part.tolist()] for name, part in parts.items()}


def _plain(one: Spread) -> dict[str, float | None]:
    return {"mean": _number(one.mean), "low": _number(one.low), "high": _number(one.high)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
