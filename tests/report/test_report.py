"""The report is one file that refers to nothing outside it; its figures show what they are given."""

from __future__ import annotations

import base64
import hashlib
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

import dashi
from dashi.core.observations.sheet import save_sheet
from dashi.core.traces.trace import Span, write_trace
from dashi.errors import FileError, InputError
from dashi.flow.evaluation import save_evaluation
from dashi.flow.evaluation.result import Evaluation
from dashi.io.arrays import write_arrays
from dashi.report import films
from dashi.report._story import STORY, Story, read_story, write_story
from dashi.report.example import example_evaluation, example_report
from dashi.report.films import Fields, film, snapshots
from dashi.report.page import BandEnergies, Report, render, write_report
from dashi.report.run import CONTINUATION, EVALUATION, TRACE, read_run

pytest.importorskip("matplotlib")  # everything here draws

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
        result = dict(attrs)
        assert len(result) == len(attrs), f"an attribute of {tag} is there twice"
        self.links += [value or "" for name, value in attrs if name in LINKS]
        self.ids += [result["id"] or ""] if "id" in result else []
        if tag in ("img", "image") or result.get("role") == "img":
            self.alone.append({"tag": tag, **result})
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


def test_the_page_forbids_the_browser_to_ask_for_anything_and_to_run_other_scripts(text: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text
    assert re.findall(r"<[^>]*\son\w+=", text) == []  # no handler beside it
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
    result = Page(render(report))
    assert bad in result.words
    assert [link for link in result.links if not link.startswith(("#", "data:"))] == []
    assert not any("onerror" in one for one in result.alone)


def test_the_page_is_the_same_every_time(text: str, tmp_path: Path) -> None:
    write_report(tmp_path / "again.html", example_report())
    assert (tmp_path / "again.html").read_text() == text


def spoiled(evaluation: Evaluation) -> Evaluation:
    """As after a blow-up: correlation 0, everything else infinite or not a number."""
    line = evaluation.lines[1]
    by_name: dict[str, Any] = {
        name: np.full_like(getattr(line, name), np.inf) for name in ("relative_l2", "energy", "enstrophy")
    }
    bad = replace(
        line,
        correlation=np.full_like(line.correlation, np.nan),
        spectrum=np.full_like(line.spectrum, np.inf),
        **by_name,
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


def broken_fields() -> Fields:
    """A prediction that is NaN and infinite from the third of six frames on, of which every tenth was read."""
    fields = np.random.default_rng(1).standard_normal((6, 16, 16))
    proxy = fields.copy()
    proxy[2:, 4:6, 7:9] = np.nan
    proxy[3, 0, 0] = -np.inf
    return Fields(np.linspace(0, 5, 6), fields, proxy, numbers=tuple(range(0, 60, 10)))


def test_fields_that_are_not_finite_are_told_first_on_the_page() -> None:
    words = " ".join(Page(render(Report("Spoiled", fields=broken_fields()))).words)
    assert (
        "Vorticity of the proxy alone is not finite from frame 20, t = 2, on (the 9 before it were not read). 4 of 6 "
        "frames hold NaN or infinities; in that one it is 4 of 256 values, the first (NaN) in row 4, column 7. They "
        "are drawn in magenta."
    ) in words
    assert words.index("is not finite from frame") < words.index("What it foresees")
    whole = Report("Whole", fields=Fields(np.arange(2.0), np.ones((2, 8, 8))))
    assert 'class="warning"' not in render(whole)


def test_what_is_not_finite_is_magenta_in_film_and_stills() -> None:
    import io

    from PIL import Image

    fields = broken_fields()
    made = film(fields, most=6, size=32)
    picture = Image.open(io.BytesIO(base64.b64decode(made.uri.split(",", 1)[1]))).convert("RGB")
    pixels = np.asarray(picture).reshape(6, 32, -1, 3).astype(int)
    # Row 4 of 16 is row 8 of 32, from below; WebP changes colours a little.
    row, column = 31 - 9, 32 + films._GAP + 15
    assert np.abs(pixels[2, row, column] - (255, 0, 255)).max() < 60
    assert np.abs(pixels[1, row, column] - (255, 0, 255)).max() > 90
    image = snapshots(fields, [0, 3]).axes[3].images[0]  # the proxy of the second
    assert np.isnan(image.get_array().filled(np.nan)).any()
    assert image.cmap.get_bad().tolist() == [1.0, 0.0, 1.0, 1.0]


def test_fields_without_a_prediction_have_one_panel() -> None:
    fields = Fields(np.arange(3.0), np.random.default_rng(0).standard_normal((3, 16, 16)))
    assert len(snapshots(fields, [0, 2]).axes) == 2 + 1  # and the scale
    words = " ".join(Page(render(Report("Fields", fields=fields))).words)
    assert "difference" not in words


def test_a_sheet_that_is_not_finite_is_told_first_on_the_page() -> None:
    energies = np.ones((5, 3))
    energies[2:, 1], energies[3, 2] = np.nan, np.inf
    words = " ".join(Page(render(Report("Sheet", sheet=BandEnergies(energies, end=8.0, what="shell", first=1)))).words)
    assert "The sheet is not finite from row 2, t = 4, on: 4 of 15 energies are NaN or infinite, in that row" in words
    assert "those of shell 2. They are drawn in magenta." in words
    assert BandEnergies(np.zeros((2, 2))).broken == []


def test_without_matplotlib_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"matplotlib is not installed.* Fix: pip install 'dashi-compute\[plot\]'"):
        render(example_report())


@pytest.mark.parametrize("part", ["matplotlib.figure", "matplotlib.ticker", "PIL.Image"])
def test_every_part_of_the_extra_that_is_missing_is_an_error_with_a_fix(
    monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setitem(sys.modules, part, None)
    with pytest.raises(
        InputError, match=r"(matplotlib|Pillow) is not installed.* Fix: pip install 'dashi-compute\[plot\]'"
    ):
        render(example_report())


def test_the_picture_of_a_rollout_needs_the_extra_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dashi.report._wave import draw_wave

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"matplotlib is not installed.* Fix: pip install 'dashi-compute\[plot\]'"):
        draw_wave(tmp_path / "state.png", np.ones((2, 2)), [1.0], 1, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "said", "unsaid"),
    [
        ("reference", "1 kernel of the hot loop, computed by NumPy: no SPIR-V ran here", "by the digest of what ran"),
        ("software", "1 kernel of the hot loop, by the digest of what ran", "no SPIR-V ran here"),
        ("null", "1 kernel of the hot loop, recorded alone: the null device runs nothing", "what ran"),
    ],
)
def test_digests_are_called_those_of_what_ran_only_if_it_did(kind: str, said: str, unsaid: str) -> None:
    metrics = example_report().metrics
    assert metrics is not None
    words = " ".join(Page(render(Report("Run", metrics=metrics.model_copy(update={"op_device_type": kind})))).words)
    assert said in words
    assert unsaid not in words


def folder_of_parts(folder: Path) -> None:
    save_evaluation(folder / EVALUATION, example_evaluation())
    save_sheet(folder / "sheet_energy.npy", np.ones((4, 3)))
    write_trace(folder / TRACE, [Span("stages", "fit", "fit", 0, 5)])
    times = np.arange(-2.0, 3.0)
    write_arrays(folder / CONTINUATION, dict.fromkeys(("times", "reference", "proxy", "alone"), times))
    write_story(folder, Story(title="A run", sheet_first=1, sheet_band="shell", tiles=[("1", "one")]))


def test_a_run_folder_becomes_a_report(tmp_path: Path) -> None:
    folder_of_parts(tmp_path)
    run = read_run(tmp_path)
    assert run.title == "A run"
    assert run.tiles == (("1", "one"),)
    assert run.evaluation is not None
    assert [line.model for line in run.evaluation.lines] == [line.model for line in example_evaluation().lines]
    assert run.sheet is not None
    assert (run.sheet.first, run.sheet.what) == (1, "shell")
    assert set(run.files) == {EVALUATION, "sheet_energy.npy", TRACE, CONTINUATION, STORY}


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
    run = read_run(tmp_path, shown_as=Path("runs/scores"))
    assert run.title == "How far models of a flow see: scores"
    assert run.summary.startswith("On unseen data, perfect follows the flow for 4.92 units of flow time (1.17 eddy ")
    assert "Beside it: galerkin for 4.10, truncation for " in run.summary
    assert run.ours == "perfect"  # the first is the one that was evaluated


def record_of(folder: Path, **more: Any) -> None:
    """What `dashi flow evaluate --out` leaves beside its scores."""
    device = {"requested": "vulkan:9", "spec": "cpu", "name": "NumPy 2", "type": "reference", "driver": "numpy 2"}
    by_name = {
        "command": "dashi flow evaluate model.npz --device cpu --out runs/scores", "finished": "2026-01-02T03:04:05Z",
        "device": {**device, "fallback": "there is no Vulkan device 9."}, "settings": {"model": "galerkin"},
        "versions": {"dashi": "1"}, "evaluations": [], **more,
    }  # fmt: skip
    (folder / "evaluation.json").write_text(json.dumps(by_name))


def test_the_report_of_an_evaluation_tells_where_it_ran_and_how_to_repeat_it(tmp_path: Path) -> None:
    save_evaluation(tmp_path / EVALUATION, example_evaluation())
    save_evaluation(tmp_path / "evaluation-test-nu=0.02.npz", example_evaluation())
    record_of(tmp_path)
    run = read_run(tmp_path, shown_as=Path("runs/scores"))
    page = Page(render(run))
    words = " ".join(page.words)
    assert {"where", "repeat"} <= set(page.ids)
    assert "dashi flow evaluate model.npz --device cpu --out runs/scores" in page.words
    assert "2026-01-02 03:04 UTC" in words
    assert run.places[0].device == "NumPy 2 (reference, numpy 2)"
    assert "Fell back. cpu in place of vulkan:9: there is no Vulkan device 9." in words
    rolled = [place.part for place in run.places[1:]]
    assert rolled == [f"rollout of {line.model}" for line in example_evaluation().lines]
    assert run.files["evaluation-test-nu=0.02.npz"] == "the same where nu=0.02"
    assert run.warnings == ()


def test_an_evaluation_that_was_stopped_or_overlaps_is_not_shown_as_one_that_was_not(tmp_path: Path) -> None:
    save_evaluation(tmp_path / EVALUATION, replace(example_evaluation(), settings={"overlap": "yes"}))
    record_of(tmp_path, stopped=True)
    made = read_run(tmp_path)
    text = render(made)
    assert text.count('class="warning"') == 3  # and the fallback
    assert "This evaluation is not finished" in text
    assert "this page says nothing of unseen data" in text
    assert "data that overlap those trained on. Bands reach" in text


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is not the folder of a run"):
        read_run(tmp_path)


@pytest.mark.parametrize("odd", [{"title": 3}, {"title": "x", "more": 1}, {"title": "x" * 5000}, {}])
def test_a_story_that_is_none_is_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    (tmp_path / STORY).write_text(json.dumps({"schema_version": 1, **odd}))
    with pytest.raises(FileError, match="is not the story of a run"):
        read_story(tmp_path)


def test_a_report_is_written_into_the_folder_of_a_run(tmp_path: Path) -> None:
    write_story(tmp_path, Story(title="A run"))
    page = dashi.report.write(tmp_path)
    assert page == tmp_path / "report.html"
    assert "<title>A run</title>" in page.read_text()
    assert dashi.report.write(str(tmp_path), out=tmp_path / "other.html").name == "other.html"
    (tmp_path / "thesis.html").write_text("<!doctype html><p>all of it</p>")
    with pytest.raises(
        FileError, match=r"thesis\.html is there already and is no report\. Fix: choose another with `o"
    ):
        dashi.report.write(tmp_path, out=tmp_path / "thesis.html")
    with pytest.raises(FileError, match=r"is not the folder of a run\. Fix: name one"):
        dashi.report.write(tmp_path / "none")
