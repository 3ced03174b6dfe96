"""Claims about the figures and films of reports."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.traces.trace import Span
from dashi.errors import ShapeError
from dashi.report import _timeline as timeline
from dashi.report import figures, films
from dashi.report._style import VARIABLES, svg
from dashi.report.example import example_evaluation, example_report
from dashi.report.films import Fields, film, finer
from dashi.report.page import Report, render

pytest.importorskip("matplotlib")  # everything here draws


@pytest.mark.parametrize(
    "draw", [figures.correlation, figures.error, figures.spectra, figures.totals, figures.horizons]
)
def test_figures_show_every_model(draw: Any) -> None:
    evaluation = example_evaluation()
    drawn = svg(draw(evaluation), "one")
    for line in evaluation.lines:
        assert f">{line.model}</text>" in drawn
    only = svg(draw(evaluation, models=("ridge",)), "one")
    assert ">ridge</text>" in only
    assert ">damped</text>" not in only


def test_colours_in_drawings_are_those_of_the_page() -> None:
    drawn = svg(figures.totals(example_evaluation()), "one")
    assert "var(--ink)" in drawn
    assert [colour for colour in VARIABLES if colour in drawn] == []
    style = Path(figures.__file__).with_name("page.css").read_text()
    light, dark, chosen = re.findall(r"--blue: (#\w+)", style)
    assert dark == chosen != light
    assert all(style.count(f"{name}: #") == 3 for name in VARIABLES.values())


def test_a_field_on_a_finer_grid_is_the_same_field() -> None:
    rng = np.random.default_rng(2)
    modes = np.fft.rfft2(rng.standard_normal((24, 24)))
    modes[8:17], modes[:, 8:] = 0, 0  # dealiased
    field = np.fft.irfft2(modes, s=(24, 24))
    # Sums of 24^2 terms in float64: rounding alone.
    assert np.abs(finer(field, 72)[::3, ::3] - field).max() < 1e-12 * np.abs(field).max()
    assert finer(field, 16) is field


def test_a_film_has_its_frames_below_one_another() -> None:
    import base64
    import io

    from PIL import Image

    times = np.linspace(0, 3, 7)
    fields = np.random.default_rng(1).standard_normal((7, 16, 16))
    result = film(Fields(times, fields, 0.5 * fields), most=5, size=32)
    assert result.frames == len(result.times) == 5
    assert (result.times[0], result.times[-1]) == (0.0, 3.0)
    picture = Image.open(io.BytesIO(base64.b64decode(result.uri.split(",", 1)[1])))
    assert picture.size == (result.width, result.frames * result.height) == (3 * 32 + 2 * films._GAP, 5 * 32)


def test_a_film_shows_the_whole_of_a_field_that_is_larger_than_it() -> None:
    field = np.zeros((2, 300, 300))
    field[:, 290:, 290:] = 1.0
    drawn = films._frame(Fields(np.arange(2.0), field), 0, 256)
    assert (drawn[2, 253] != drawn[-1, 0]).any()  # the corner, drawn above and to the right


def test_fields_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"fields have shapes \(2, 8, 8\) and \(2, 8, 4\), and 2 times"):
        Fields(np.arange(2.0), np.zeros((2, 8, 8)), np.zeros((2, 8, 4)))


def test_a_sheet_of_nothing_can_be_drawn() -> None:
    assert "<svg" in svg(timeline.sheet(np.zeros((3, 4))), "sheet")
    assert "<svg" in svg(timeline.sheet(np.array([[np.nan, 1.0], [np.inf, 2.0]]), end=3.0), "sheet")


def test_a_timeline_names_stages_and_queues() -> None:
    spans = [Span("stages", "fit", "fit", 0, 4 * 10**9), Span("GPU", "queue 0", "flow", 10**9, 2 * 10**9)]
    drawn = svg(timeline.timeline(spans), "timeline")
    assert ">fit</text>" in drawn
    assert ">queue 0 *</text>" in drawn
    assert ">4 s</text>" in drawn
    assert ">1 s</text>" in drawn


def test_a_canonical_figure_says_when_the_model_leaves_it() -> None:
    example = example_report().continuation
    assert example is not None
    assert not figures.leaves(example)
    high = replace(example, alone=np.where(example.times > 5, 20.0, example.alone))
    assert figures.leaves(high)
    assert figures.leaves(replace(example, alone=np.where(example.times > 5, np.nan, example.alone)))
    assert "A line that leaves the picture is far from the truth." in render(Report("High", continuation=high))
    low, top = figures.limits(high)
    assert low <= np.nanmin(example.reference) < np.nanmax(example.reference) < top < 20
