"""`dashi demo`: what it prints, and its exit codes; and `dashi report`."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.core.traces.file import read_trace
from dashi.flow.equations import Flow, Kolmogorov
from dashi.lab.demos import _stages as stages
from dashi.lab.demos import setting
from dashi.report._story import Story, write_story
from dashi.report.page import GENERATOR
from dashi.report.run import read_run


def call(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


TINY = setting.DemoSetting(
    Flow(16, nu=2e-2, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0), scheme="etdrk4"),
    k_cut=3, spin_up=0.4, window=0.4, interval=5, certified=20, checked=10, words=("--quick",),
)  # fmt: skip
"""So small that it takes a second; what comes of it means nothing."""


@pytest.fixture
def drawn() -> None:
    """Figures of a page need it; `dashi-compute[plot]` brings it."""
    pytest.importorskip("matplotlib")


def test_the_document_is_the_summary_with_its_places(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting, "QUICK", TINY)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # the page is not what this is about
    done = call("demo", "--quick", "--device", "cpu", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    kept = json.loads((here / "runs" / "demo-quick" / "summary.json").read_text())
    more = {"folder": "runs/demo-quick", "report": None, "total_seconds": document["total_seconds"]}
    assert document == {**kept, **more}
    assert done.stderr.startswith("the main job on NumPy")
    for stage in ("simulate", "fit", "roll out", "decode", "score", "check"):
        assert f"\n{stage}: " in done.stderr


def test_a_hash_that_differs_is_exit_code_1(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting, "QUICK", TINY)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(stages, "check", lambda work: setattr(work.results, "differs", 3))
    assert call("demo", "--quick", "--device", "cpu").exit_code == 1


def test_a_device_that_is_not_there_is_named_when_another_takes_its_place(here: Path) -> None:
    words = "flow simulate --n 32 --steps 2 --device vulkan:99 --allow-fallback"
    result = call(*words.split())
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("vulkan:99 cannot be opened, so instead: ")
    assert "auto" not in result.stderr


@pytest.mark.parametrize("words", [("report", "--example"), ("report", "run")])
def test_a_report_is_written_over_nothing_but_a_report(here: Path, words: tuple[str, ...]) -> None:
    (here / "run").mkdir()
    write_story(here / "run", Story(title="A run"))
    (here / "thesis.html").write_text("<!doctype html><p>all of it</p>")
    for name, what in {"thesis.html": "is there already and is no report.", "run": "is a folder."}.items():
        result = call(*words, "--out", name)
        assert result.exit_code == 3
        assert result.stderr.startswith(f"error: {name} {what}\nFix: ")
    assert (here / "thesis.html").read_text() == "<!doctype html><p>all of it</p>"
    result = call(*words, "--out", "/proc/none/page.html")
    assert result.exit_code == 3
    assert "drawing the report" not in result.stderr  # refused before the work


def test_an_earlier_report_and_an_empty_file_are_written_over(here: Path) -> None:
    (here / "run").mkdir()
    write_story(here / "run", Story(title="A run"))
    page = here / "page.html"
    page.touch()
    for _ in range(2):
        assert call("report", "run", "--out", "page.html").exit_code == 0
    assert "<title>A run</title>" in page.read_text()
    # Pages did not always name what made them.
    unnamed = page.read_text().replace(f"{GENERATOR}\n", "")
    page.write_text(unnamed)
    assert call("report", "run", "--out", "page.html").exit_code == 0
    page.write_text(unnamed.replace("it loads nothing", "it is somebody's"))
    assert call("report", "run", "--out", "page.html").exit_code == 3


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("demo", "--steps", "5"), "error: --steps goes with --rollout."),
        (("demo", "--rollout", "--quick"), "error: --rollout makes no report."),
        (("report",), "error: a report is of one run, or of the example."),
        (("report", "runs/demo", "--example"), "error: a report is of one run, or of the example."),
        (("report", "nowhere"), "error: nowhere is not the folder of a run."),
    ],
)
def test_wrong_calls_are_explained(here: Path, words: tuple[str, ...], what: str) -> None:
    result = call(*words)
    assert result.exit_code == 3
    assert result.stderr.startswith(what)
    assert "\nFix: " in result.stderr


@pytest.mark.usefixtures("drawn")
def test_a_rollout_has_a_report_too(here: Path) -> None:
    assert call("demo", "--rollout", "--device", "cpu", "--steps", "200").exit_code == 0
    words = "rollout --z0 runs/demo-rollout/inputs.npz --A runs/demo-rollout/inputs.npz --steps 200 --device cpu"
    words += " --out runs/wave --sheet-every 10"
    assert call(*words.split()).exit_code == 0
    assert call("report", "runs/wave").exit_code == 0
    page = (here / "runs" / "wave" / "report.html").read_text()
    assert "dashi rollout: wave" in page
    assert page.count("<code>dashi verify runs/wave/certificate.json</code>") == 1
    assert page.count(f"<code>dashi {words}</code>") == 1
    assert "The sheet" in page


@pytest.mark.usefixtures("drawn")
def test_a_simulation_has_a_report_too(here: Path) -> None:
    words = "flow simulate --n 32 --steps 20 --device cpu --host-fft --out runs/flow --json"
    result = call(*words.split())
    assert result.exit_code == 0
    assert call("report", "runs/flow").exit_code == 0
    page = (here / "runs" / "flow" / "report.html").read_text()
    assert "<h1>Simulation of a decaying flow, 32 × 32 points: flow</h1>" in page
    assert re.search(r"<dt>a step</dt><dd>[\d.]+ [mµ]?s</dd>", page)
    assert "What the flow did" in page
    assert "What it foresees" not in page  # nothing was foreseen
    assert "data:image/webp" in page
    document, measured = json.loads(result.stdout), read_run(here / "runs" / "flow").measures
    assert measured is not None
    # The fields were kept in float32, and sums over their modes are in float64: the rounding of 1024 values.
    assert measured.energy[-1] == pytest.approx(document["energy"][0], rel=1e-5)
    assert measured.enstrophy[-1] == pytest.approx(document["enstrophy"][0], rel=1e-5)
    assert measured.spectra.sum(axis=1) == pytest.approx(measured.energy)


def test_a_simulation_that_was_killed_within_its_first_frame_has_a_report(here: Path) -> None:
    words = "flow simulate --n 32 --steps 20 --device cpu --host-fft --out runs/flow"
    assert call(*words.split()).exit_code == 0
    shutil.rmtree(here / "runs" / "flow" / "fields.zarr" / "time")  # the last that a frame writes
    assert call("report", "runs/flow").exit_code == 0
    assert "What the flow did" not in (here / "runs" / "flow" / "report.html").read_text()


def test_simulations_and_rollouts_can_be_traced(here: Path) -> None:
    run = "flow simulate --n 32 --steps 20 --frame-every 5 --device cpu --out runs/flow --trace s"
    assert call(*run.split()).exit_code == 0
    spans = read_trace(here / "s")
    assert [span.name for span in spans if span.group == "stages"] == ["encode", "sim"]
    assert "steps one by one" in {span.name for span in spans if span.track == "queue 0"}
    again = "flow rollout --fit-from runs/flow --k-cut 4 --steps 10 --device cpu --no-stage-times --trace t"
    assert call(*again.split()).exit_code == 0
    spans = read_trace(here / "t")
    assert {"learn", "rollout"} <= {span.track for span in spans if span.group == "stages"}
    assert "many steps in a workgroup" in {span.name for span in spans}  # decodes are recorded behind them
