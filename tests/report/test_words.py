"""Claims about what a page says: scores that are lower bounds, words, commands to copy, CSV, names from files."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pytest

from dashi.flow.evaluation.result import Evaluation
from dashi.flow.proxy.galerkin._model import GalerkinModel
from dashi.report import _timeline as timeline
from dashi.report import figures
from dashi.report._html import command, took
from dashi.report._run_sections import citation
from dashi.report._scores import as_csv, horizon
from dashi.report._style import svg
from dashi.report._words import WORDS, glossary
from dashi.report.example import example_evaluation, example_report
from dashi.report.films import Fields, film
from dashi.report.page import Report, render

pytest.importorskip("matplotlib")  # everything here draws


def with_horizons(model: str, values: list[float]) -> Evaluation:
    """The example, where the correlation of a model falls below 0.5 at these times."""
    evaluation = example_evaluation(windows=len(values))
    line = evaluation.line(model)
    changed = replace(line, horizons={**line.horizons, 0.5: np.array(values)})
    return replace(evaluation, lines=tuple(changed if one.model == model else one for one in evaluation.lines))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([8.0, 8.0, 8.0, 8.0], "≥ 8.00 all 4 windows held to the end"),
        ([8.0], "≥ 8.00 the window held to the end"),
        ([8.0, 6.0, 5.0, 5.0], "≥ 6.00 [5.00, 7.00] 1 of 4 windows held to the end"),
        ([4.0, 6.0, 5.0, 5.0], "5.00 the same for every seed"),
        ([4.0, 5.0, 6.0, 7.0], "5.50 [4.50, 6.50]"),
        ([4.0], "4.00"),
    ],
)
def test_a_mean_has_an_interval_only_where_there_is_one(values: list[float], told: str) -> None:
    found = with_horizons("galerkin", values)
    cell = horizon(found, found.line("galerkin"), 0.5)
    assert re.sub(r"<[^>]+>", "", cell if isinstance(cell, str) else cell.text) == told


def test_no_interval_of_a_page_has_a_width_of_zero() -> None:
    page = render(Report("Held", evaluation=with_horizons("galerkin", [8.0] * 4), ours="galerkin"))
    intervals = re.findall(r"\[(\d+\.\d\d), (\d+\.\d\d)\]", page)
    assert intervals
    assert all(low != high for low, high in intervals)


def test_a_page_defines_the_words_that_it_uses_and_no_others() -> None:
    page = render(example_report())
    (words,) = re.findall(r'<details class="words">.*?</details>', page, re.DOTALL)
    told = re.findall(r"<dt>(.*?)</dt>", words)
    assert {"proxy", "alone", "window", "holds", "perfect", "reference", "flow time", "eddy turnover"} <= set(told)
    assert all(len(meaning) < 130 for _, meaning in WORDS.values())  # a line each
    assert glossary("<p>nothing</p><style>.proxy{}</style>") == ""
    alone = glossary("<p>a window of the run</p>")
    assert re.findall(r"<dt>(.*?)</dt>", alone) == ["window"]


def test_what_a_galerkin_model_chose_can_be_read_without_knowing_its_symbols() -> None:
    from dashi.flow.equations import Flow
    from dashi.flow.proxy.schema import Schema

    schema = Schema(16, 3)
    model = GalerkinModel(schema, Flow(16, nu=0.01), 0.1, np.full(len(schema.modes), 0.13), 2.0, chosen_on=2)
    assert model.description == (
        "galerkin with an eddy viscosity fitted to training data, times 2 (chosen on 2 validation windows); at k_cut "
        "it is 13 times the flow's own"
    )


def test_the_scores_come_as_csv_in_the_page_itself() -> None:
    report = replace(example_report(), evaluation=with_horizons("galerkin", [8.0] * 4), training=example_evaluation())
    (uri,) = re.findall(r'<a download="scores.csv" href="data:text/csv;charset=utf-8,([^"]*)"', render(report))
    rows = list(csv.DictReader(io.StringIO(unquote(uri))))
    result = report.evaluation
    assert result is not None
    assert len(rows) == 3 * (len(result.lines) + 1)
    best = next(
        row for row in rows if (row["model"], row["threshold"], row["data"]) == ("galerkin", "0.5", "unseen data")
    )
    assert [best[name] for name in ("mean", "low", "high", "held_to_end", "windows")] == ["8.0000", "", "", "4", "4"]
    other = next(row for row in rows if (row["model"], row["threshold"]) == ("truncation", "0.5"))
    assert float(other["mean"]) == pytest.approx(float(result.line("truncation").horizons[0.5].mean()), abs=1e-4)
    assert float(other["low"]) < float(other["mean"]) < float(other["high"])


def test_a_name_in_the_csv_is_no_formula() -> None:
    line = replace(example_evaluation().lines[0], model='=HYPERLINK("x")')
    told = as_csv(Report("Bad", evaluation=replace(example_evaluation(), lines=(line,))))
    assert {row["model"] for row in csv.DictReader(io.StringIO(told))} == {'\'=HYPERLINK("x")'}


def test_every_command_can_be_copied() -> None:
    page = render(example_report())
    assert page.count('<button type="button" class="copy" hidden>Copy</button>') == page.count("<pre ") >= 3
    assert "&lt;b&gt;" in command("<b>")


def test_a_page_says_its_version_and_how_it_is_cited() -> None:
    example = replace(example_report(), versions={"dashi": "0.9"})
    assert citation(example) == (
        'dashi contributors, dashi 0.9: deterministic GPU compute over Vulkan. "An example of a report", run of '
        f"2026-01-01, certificate {'0' * 32}."
    )
    page = render(example)
    assert "dashi 0.9 report, 2026-01-01 00:00 UTC" in page
    assert "How to cite" in page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (114.4, "114 s"),
        (2.53, "2.5 s"),
        (0.0679959, "68 ms"),
        (1.24e-5, "12 µs"),
        (9.6e-7, "960 ns"),
        (0.0, "0 s"),
        (0.9996, "1 s"),
    ],
)
def test_times_have_the_unit_that_suits_them(seconds: float, text: str) -> None:
    assert took(seconds) == text


def test_a_film_has_the_scale_of_its_colours_with_values_and_unit() -> None:
    fields = np.full((2, 8, 8), 10.0)
    fields[:, ::2] = -10.0
    made = film(Fields(np.arange(2.0), fields, fields, unit="1/T"), size=16)
    assert made.ticks == ("≤ −10", "−5", "0", "5", "≥ 10")
    assert made.unit == "vorticity (1/T)"
    assert made.panels == ("reference", "proxy alone", "difference")
    page = render(Report("Film", fields=Fields(np.arange(2.0), fields, fields, unit="1/T")))
    assert f"linear-gradient(to right,{','.join(made.colours)})" in page
    assert "<span>≤ −10</span>" in page
    from dashi.report._style import colour_map

    ends = [colour_map("vik")(place)[:3] for place in (0.0, 1.0)]
    shown = [[int(made.colours[at][c : c + 2], 16) / 255 for c in (1, 3, 5)] for at in (0, -1)]
    assert np.allclose(ends, shown, atol=1 / 255)


HOSTILE = (r"$\frac{$", "$$", r"$\alpha$", r"a_b $x$ \notacommand{", "100 $ and 5 $")


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "draw", [figures.correlation, figures.error, figures.spectra, figures.totals, figures.horizons]
)
def test_names_are_drawn_as_they_are_and_never_typeset(draw: object, name: str) -> None:
    assert callable(draw)
    found = example_evaluation()
    line = replace(found.lines[0], model=name)
    assert f">{name}</text>" in svg(draw(replace(found, lines=(line,))), "one")


@pytest.mark.parametrize("name", HOSTILE)
def test_bands_fields_and_tracks_are_drawn_as_they_are_named(name: str) -> None:
    from dashi.core.traces.trace import Span
    from dashi.report.films import snapshots

    assert f">{name}</text>" in svg(timeline.sheet(np.ones((3, 2)), what=name), "sheet")
    assert f">{name}</text>" in svg(timeline.timeline([Span("stages", name, name, 0, 5)]), "timeline")
    fields = Fields(np.arange(2.0), np.random.default_rng(0).standard_normal((2, 8, 8)), name=name)
    assert f">{name}</text>" in svg(snapshots(fields, [0, 1], size=16), "stills")


def test_powers_of_ten_need_no_typesetting() -> None:
    drawn = svg(figures.spectra(example_evaluation()), "one")
    assert "10⁻²" in drawn
    assert "mathdefault" not in drawn
    assert "$" not in drawn
