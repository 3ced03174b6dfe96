"""The report is one file that refers to nothing outside it; its figures show what they are given."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.sheet import save_sheet
from dashi.core.trace import Span, write_trace
from dashi.errors import FileError, InputError, ShapeError
from dashi.flow.evaluation import save_evaluation
from dashi.flow.evaluation.result import Evaluation
from dashi.io.arrays import write_arrays
from dashi.report import figures, films, records
from dashi.report.example import example_evaluation, example_report
from dashi.report.films import Fields, film, finer, snapshots
from dashi.report.page import Report, render, write_report
from dashi.report.run import CONTINUATION, EVALUATION, TRACE, read_run
from dashi.report.story import STORY, Story, read_story, write_story
from dashi.report.style import VARIABLES, svg

VOID = {"meta", "link", "img", "input", "br", "hr"}
LINKS = {"src", "href", "xlink:href", "srcset", "action", "data", "poster", "background", "formaction", "ping"}


class Page(HTMLParser):
    """Checks that tags match, and keeps what could lead elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.alone: list[dict[str, str | None]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), f"an attribute of {tag} is there twice"
        self.links += [value or "" for name, value in attrs if name in LINKS]
        self.ids += [found["id"] or ""] if "id" in found else []
        if tag in ("img", "image") or found.get("role") == "img":
            self.alone.append({"tag": tag, **found})
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def text() -> str:
    return render(example_report())


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_page_refers_to_nothing_outside_it(text: str, page: Page) -> None:
    assert page.links
    assert [link for link in page.links if not link.startswith(("#", "data:"))] == []
    assert re.findall(r"url\((?!['\"]?(?:#|data:))", text) == []
    assert "@import" not in text
    # Names of XML vocabularies are no addresses that anything asks for; there is no other.
    outside = set(re.findall(r"https?://[^\"'\s<)]+", text))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_the_page_forbids_the_browser_to_ask_for_anything(text: str) -> None:
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'" in text
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text


def test_every_part_of_the_page_has_a_name_of_its_own(text: str, page: Page) -> None:
    assert [name for name, count in Counter(page.ids).items() if count > 1] == []
    inner = {link[1:] for link in page.links if link.startswith("#")} | set(re.findall(r"url\(#([^)]+)\)", text))
    assert inner <= set(page.ids)
    assert len(inner) > 5


def test_every_picture_says_what_it_shows(page: Page) -> None:
    told = [one for one in page.alone if one["tag"] != "image"]
    assert len(told) >= 9
    assert all(one.get("alt") or one.get("aria-label") for one in told)


def test_every_section_is_there(page: Page) -> None:
    words = " ".join(page.words)
    for title in (
        "What it foresees", "How long does it hold?", "Energy, spectra, errors", "Where it ran", "Proof", "Repeat it",
        "Snapshots", "Correlation against time", "Energy spectra", "Energy and enstrophy", "Timeline", "The sheet",
        "Reference, proxy, and the proxy alone", "dashi verify certificate.json", "dashi report --example",
    ):  # fmt: skip
        assert title in words


def test_what_is_not_there_is_left_out() -> None:
    words = " ".join(Page(render(Report("Nothing <b>here</b>"))).words)
    assert "Nothing <b>here</b>" in words
    assert "Proof" not in words


@pytest.mark.parametrize("bad", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style><b>", "a & b"])
def test_text_from_a_run_stays_text(bad: str) -> None:
    line = replace(example_evaluation().lines[0], model=bad, story=bad + ".")
    proof = example_report().proof
    assert proof is not None
    report = Report(
        bad, bad, bad, bad, ((bad, bad),), fields_of=bad, notes=(bad,), settings={bad: bad}, files={bad: bad},
        evaluation=replace(example_evaluation(), lines=(line,)), proof=replace(proof, digest=bad, checked=bad),
        spans=(Span("stages", bad, bad, 0, 10),),
    )  # fmt: skip
    made = Page(render(report))
    assert bad in made.words
    assert [link for link in made.links if not link.startswith(("#", "data:"))] == []
    assert not any("onerror" in one for one in made.alone)


def test_the_page_is_the_same_every_time(text: str, tmp_path: Path) -> None:
    write_report(tmp_path / "again.html", example_report())
    assert (tmp_path / "again.html").read_text() == text


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


def spoiled(evaluation: Evaluation) -> Evaluation:
    """As after a blow-up: correlation 0, everything else infinite or not a number."""
    line = evaluation.lines[1]
    made: dict[str, Any] = {
        name: np.full_like(getattr(line, name), np.inf) for name in ("relative_l2", "energy", "enstrophy")
    }
    bad = replace(
        line, correlation=np.full_like(line.correlation, np.nan), spectrum=np.full_like(line.spectrum, np.inf), **made
    )
    return replace(evaluation, lines=(evaluation.lines[0], bad))


def test_what_blew_up_is_drawn_without_a_warning() -> None:
    words = " ".join(Page(render(Report("Spoiled", evaluation=spoiled(example_evaluation())))).words)
    assert "galerkin" in words
    assert "nan" not in words


def test_one_window_has_no_interval() -> None:
    evaluation = example_evaluation(windows=1)
    words = " ".join(Page(render(Report("One", evaluation=evaluation))).words)
    assert "1 window of 1 seed" in words
    assert "nan" not in words


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
    made = film(Fields(times, fields, 0.5 * fields), most=5, size=32)
    assert made.frames == len(made.times) == 5
    assert (made.times[0], made.times[-1]) == (0.0, 3.0)
    picture = Image.open(io.BytesIO(base64.b64decode(made.uri.split(",", 1)[1])))
    assert picture.size == (made.width, made.frames * made.height) == (3 * 32 + 2 * films._GAP, 5 * 32)


def test_fields_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"fields have shapes \(2, 8, 8\) and \(2, 8, 4\), and 2 times"):
        Fields(np.arange(2.0), np.zeros((2, 8, 8)), np.zeros((2, 8, 4)))


def test_fields_without_a_prediction_have_one_panel() -> None:
    fields = Fields(np.arange(3.0), np.random.default_rng(0).standard_normal((3, 16, 16)))
    assert len(snapshots(fields, [0, 2]).axes) == 2 + 1  # and the scale
    words = " ".join(Page(render(Report("Fields", fields=fields))).words)
    assert "difference" not in words


def test_a_sheet_of_nothing_can_be_drawn() -> None:
    assert "<svg" in svg(records.sheet(np.zeros((3, 4))), "sheet")
    assert "<svg" in svg(records.sheet(np.array([[np.nan, 1.0], [np.inf, 2.0]]), end=3.0), "sheet")


def test_a_timeline_names_stages_and_queues() -> None:
    spans = [Span("stages", "fit", "fit", 0, 4 * 10**9), Span("GPU", "queue 0", "flow", 10**9, 2 * 10**9)]
    drawn = svg(records.timeline(spans), "timeline")
    assert ">fit</text>" in drawn
    assert ">queue 0 *</text>" in drawn
    assert ">4 s</text>" in drawn


def test_without_matplotlib_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"matplotlib is not installed.* Fix: pip install 'dashi\[plot\]'"):
        render(example_report())


def folder_of_parts(folder: Path) -> None:
    save_evaluation(folder / EVALUATION, example_evaluation())
    save_sheet(folder / "sheet_energy.npy", np.ones((4, 3)))
    write_trace(folder / TRACE, [Span("stages", "fit", "fit", 0, 5)])
    times = np.arange(-2.0, 3.0)
    write_arrays(folder / CONTINUATION, dict.fromkeys(("times", "reference", "proxy", "alone"), times))
    write_story(folder, Story(title="A run", sheet_first=1, sheet_band="shell", tiles=[("1", "one")]))


def test_a_run_folder_becomes_a_report(tmp_path: Path) -> None:
    folder_of_parts(tmp_path)
    made = read_run(tmp_path)
    assert made.title == "A run"
    assert made.tiles == (("1", "one"),)
    assert made.evaluation is not None
    assert [line.model for line in made.evaluation.lines] == [line.model for line in example_evaluation().lines]
    assert made.sheet is not None
    assert (made.sheet.first, made.sheet.what) == (1, "shell")
    assert set(made.files) == {EVALUATION, "sheet_energy.npy", TRACE, CONTINUATION, STORY}


@pytest.mark.parametrize("name", [EVALUATION, "sheet_energy.npy", TRACE, CONTINUATION, STORY])
@pytest.mark.parametrize("content", [b"", b"\x00garbage", b'{"schema_version": 9}'])
def test_a_damaged_file_is_an_error_with_a_fix(tmp_path: Path, name: str, content: bytes) -> None:
    folder_of_parts(tmp_path)
    (tmp_path / name).write_bytes(content)
    if (name, content) == (TRACE, b""):
        assert read_run(tmp_path).spans == ()  # an empty trace is one in which nothing happened
        return
    with pytest.raises(FileError, match="Fix: "):
        read_run(tmp_path)


def test_scores_alone_tell_their_story(tmp_path: Path) -> None:
    save_evaluation(tmp_path / EVALUATION, example_evaluation())
    made = read_run(tmp_path, shown_as=Path("runs/scores"))
    assert made.title == "How far models of a flow see: scores"
    assert "on unseen data: perfect for " in made.summary
    assert made.ours == "perfect"  # the first is the one that was evaluated


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is not the folder of a run"):
        read_run(tmp_path)


@pytest.mark.parametrize("odd", [{"title": 3}, {"title": "x", "more": 1}, {"title": "x" * 5000}, {}])
def test_a_story_that_is_none_is_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    (tmp_path / STORY).write_text(json.dumps({"schema_version": 1, **odd}))
    with pytest.raises(FileError, match="is not the story of a run"):
        read_story(tmp_path)
