"""`dashi demo`, the main job in its small form, and `dashi report`."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.demo_story import print_summary
from dashi.cli.main import app
from dashi.core.traces.file import read_trace
from dashi.errors import install_extra
from dashi.flow.evaluation import load_evaluation
from dashi.flow.evaluation.fits import load_fit
from dashi.flow.fields import read_frame
from dashi.flow.proxy import load_z
from dashi.io.metrics import read_metrics
from dashi.io.run_mark import MARK
from dashi.report.page import GENERATOR
from dashi.report.run import read_run
from dashi.report.story import Story, read_story, write_story

FILES = {
    "certificate.json", "continuation.npz", "evaluation-train.json", "evaluation-train.npz", "evaluation-test.json",
    "evaluation-test.npz", "fields.zarr", "inputs.npz", "metrics.json", "model.npz", "report.html", "sheet_energy.npy",
    "story.json", "summary.json", "trace.perfetto-trace", "z.npz",
}  # fmt: skip


def call(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def drawn() -> None:
    """Figures of a page need it; `dashi-compute[plot]` brings it."""
    pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], str]:
    """One run of the small form on NumPy: its folder, what it printed, and what it said."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    made = call("demo", "--quick", "--device", "cpu", "--out", str(folder), "--json")
    assert made.exit_code == 0, made.output
    return folder, json.loads(made.stdout), made.stderr


@pytest.mark.usefixtures("drawn")
def test_the_main_job_leaves_a_whole_run_folder(done: tuple[Path, dict[str, Any], str]) -> None:
    folder, summary, _ = done
    assert {path.name for path in folder.iterdir()} == FILES | {MARK}
    assert set(summary["files"]) == FILES
    kept = json.loads((folder / "summary.json").read_text())
    assert kept == {k: v for k, v in summary.items() if k not in ("folder", "report", "total_seconds")}
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


@pytest.mark.usefixtures("drawn")
def test_the_page_and_the_terminal_name_the_same_times_and_scores(
    done: tuple[Path, dict[str, Any], str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, summary, _ = done
    page = (folder / "report.html").read_text()
    to_scores = f"{summary['seconds']:.0f} s"
    assert re.search(rf"from the seeds to the scores, without drawing this page</dt><dd>{to_scores}</dd>", page)
    print_summary(summary, as_json=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"time {summary['total_seconds']:.0f} s, {to_scores} from the seeds to the scores, the rest to" in printed
    assert summary["total_seconds"] >= summary["seconds"]
    for model, value in summary["horizons"].items():
        assert re.search(rf"</svg>{model}</th><td[^>]*>(?:≥ )?{value:.2f}\b", page)
        assert f"{value:.2f} {model}" in printed


def test_models_are_judged_on_seeds_that_none_has_seen(done: tuple[Path, dict[str, Any], str]) -> None:
    folder, summary, _ = done
    found = load_evaluation(folder / "evaluation-test.npz")
    assert set(found.seeds) == {4, 5}
    assert set(load_evaluation(folder / "evaluation-train.npz").seeds) == {1, 2}
    assert [line.model for line in found.lines] == [*summary["horizons"]]
    assert {"galerkin", "persistence", "damped", "truncation", "perfect"} <= set(summary["horizons"])
    # Whatever the small form says little about: knowing the equation beats standing still.
    assert summary["horizons"]["galerkin"] > summary["horizons"]["persistence"]


def test_the_run_tells_where_it_ran(done: tuple[Path, dict[str, Any], str]) -> None:
    folder, summary, said = done
    metrics = read_metrics(folder / "metrics.json")
    assert (metrics.op_backend_used, metrics.decode_backend_used, metrics.gpu_hotloop_active) == ("cpu", "cpu", False)
    assert [flag.name for flag in metrics.perf_flags] == ["solver"]
    assert metrics.stage_seconds.sim
    assert metrics.eval is not None
    assert "All ran on NumPy, as asked" in said
    assert summary["notes"][0].startswith("All ran on NumPy, as asked")
    for stage in ("simulate", "fit", "roll out", "decode", "score", "check"):
        assert f"\n{stage}: " in said


def test_the_trace_has_a_track_for_each_stage_and_for_the_queue(done: tuple[Path, dict[str, Any], str]) -> None:
    spans = read_trace(done[0] / "trace.perfetto-trace")
    stages = [span.track for span in spans if span.group == "stages"]
    assert stages == ["simulate", "fit", "roll out", "decode", "score", "check"]
    queue = [span for span in spans if span.group != "stages"]
    assert {span.track for span in queue} == {"queue 0"}
    assert {"encode", "decode snapshots"} <= {span.name for span in queue}


def test_the_fields_shown_are_the_ones_kept(done: tuple[Path, dict[str, Any], str]) -> None:
    pytest.importorskip("zarr")
    xarray: Any = pytest.importorskip("xarray")
    opened = xarray.open_zarr(done[0] / "fields.zarr")
    assert opened.vorticity.dims == ("time", "y", "x")
    assert opened.vorticity.shape == opened.vorticity_proxy.shape == (21, 32, 32)
    assert opened.vorticity.attrs["units"] == "1/T"
    assert np.array_equal(opened.vorticity_proxy.values[-1], read_frame(done[0] / "fields.zarr", "vorticity_proxy"))


def test_the_certificate_of_the_main_job_verifies(done: tuple[Path, dict[str, Any], str]) -> None:
    verified = call("verify", str(done[0] / "certificate.json"), "--device", "cpu")
    assert verified.exit_code == 0, verified.output
    assert "hashes are the same" in verified.stdout
    assert json.loads((done[0] / "certificate.json").read_text())["digest"] == done[1]["certificate_digest"]


def test_the_model_and_its_states_can_be_used_again(done: tuple[Path, dict[str, Any], str]) -> None:
    fit = load_fit(done[0] / "model.npz")
    assert fit.model.name == "galerkin"
    assert fit.model.story == done[1]["model"]
    assert set(fit.baselines) == {"truncation", "ridge", "damped", "persistence"}
    assert fit.training is not None
    assert (fit.training.seeds, fit.training.validation_seeds) == ((1, 2), (3,))
    assert [one.split for one in fit.evaluations] == ["train"]
    schema, z = load_z(done[0] / "z.npz")
    assert schema == fit.model.schema
    assert z.shape == (41, schema.size)  # twice as long as the window


@pytest.mark.usefixtures("drawn")
def test_a_horizon_beyond_the_window_is_a_bound_everywhere(
    done: tuple[Path, dict[str, Any], str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, summary, _ = done
    found = load_evaluation(folder / "evaluation-test.npz")
    ends = [line.model for line in found.lines if (line.horizons[0.5] >= found.times[-1]).any()]
    assert summary["at_least"] == ends
    assert "galerkin" in ends  # the windows of the small form are too short for it
    assert "persistence" not in ends
    print_summary(summary, as_json=False)
    printed = capsys.readouterr().out
    assert f">= {summary['horizons']['galerkin']:.2f}  galerkin" in printed
    assert f"   {summary['horizons']['persistence']:.2f}  persistence" in printed
    story = read_story(folder)
    assert story is not None
    shown = f"≥ {summary['horizons']['galerkin']:.2f}"
    assert story.tiles[0][0] == shown
    assert f"points for {shown} units of flow time" in story.summary
    assert "at least" not in (folder / "report.html").read_text()


@pytest.mark.usefixtures("drawn")
def test_the_page_repeats_the_run_and_says_that_numpy_ran_no_spirv(done: tuple[Path, dict[str, Any], str]) -> None:
    folder = done[0]
    page = (folder / "report.html").read_text()
    assert f"dashi demo --quick --device cpu --out {folder}</code>" in page
    assert f"dashi verify {folder}/certificate.json</code>" in page
    assert "of the hot loop, computed by NumPy: no SPIR-V ran here" in page
    assert "by the digest of what ran" not in page
    assert "no: NumPy computed it, and nothing was dispatched" in page
    assert 'class="warning"' not in page


@pytest.mark.usefixtures("drawn")
def test_the_report_made_again_is_the_same(done: tuple[Path, dict[str, Any], str], tmp_path: Path) -> None:
    folder = done[0]
    made = call("report", str(folder), "--out", str(tmp_path / "again.html"), "--json")
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert told["report"] == str(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (folder / "report.html").read_bytes()
    assert told["summary"] in (folder / "report.html").read_text().replace("&#x27;", "'")


def test_a_hash_that_differs_is_a_failure(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.cli import demo_job

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # the page is not what this is about
    right, seen = demo_job.rollout, list[int]()

    def rollout(operator: Any, z0: Any, *rest: Any, **more: Any) -> Any:
        seen.append(1)
        return right(operator, z0 if len(seen) == 1 else z0[:, ::-1].copy(), *rest, **more)

    monkeypatch.setattr(demo_job, "rollout", rollout)
    made = call("demo", "--quick", "--device", "cpu")
    assert made.exit_code == 1
    assert "FAILED: other bits on" in made.stdout
    assert (here / "runs" / "demo-quick" / "certificate.json").is_file()


@pytest.mark.usefixtures("vulkan_session")
def test_the_main_job_has_the_same_bits_on_vulkan_and_numpy(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # the page is not what this is about
    made = call("demo", "--quick", "--device", "vulkan:0", "--json")
    assert made.exit_code == 0, made.output
    summary = json.loads(made.stdout)
    assert summary["verified"] == f"same bits on {summary['device']['name']} and NumPy over the first 20 steps"
    assert summary["metrics"]["perf_flags"] == []
    assert summary["metrics"]["hotloop_dispatches"] > 0
    certificate = here / "runs" / "demo-quick" / "certificate.json"
    assert json.loads(certificate.read_text())["steps"] == 200  # the whole rollout, twice as long as the window
    verified = call("verify", str(certificate), "--device", "cpu")
    assert "all 40 hashes are the same" in verified.stdout


def test_without_matplotlib_everything_but_the_page_is_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    made = call("demo", "--quick", "--device", "cpu", "--out", "run")
    assert made.exit_code == 0, made.output
    said = f"no report: matplotlib is not installed; it draws the figures. Fix: {install_extra('plot')}, then dashi "
    assert f"{said}report run" in made.stderr
    assert {path.name for path in (here / "run").iterdir()} == (FILES | {MARK}) - {"report.html"}


def test_the_null_device_is_refused_before_anything_is_written(here: Path) -> None:
    made = call("demo", "--quick", "--device", "null")
    assert made.exit_code == 3
    assert "the null device computes nothing" in made.stderr
    assert not (here / "runs").exists()


def test_a_device_that_is_not_there_is_named_when_another_takes_its_place(here: Path) -> None:
    words = "flow simulate --n 32 --steps 2 --device vulkan:99 --allow-fallback"
    made = call(*words.split())
    assert made.exit_code == 0, made.output
    assert made.stderr.startswith("vulkan:99 cannot be opened, so instead: ")
    assert "auto" not in made.stderr


@pytest.mark.parametrize("words", [("report", "--example"), ("report", "run")])
def test_a_report_is_written_over_nothing_but_a_report(here: Path, words: tuple[str, ...]) -> None:
    (here / "run").mkdir()
    write_story(here / "run", Story(title="A run"))
    (here / "thesis.html").write_text("<!doctype html><p>all of it</p>")
    for name, what in {"thesis.html": "is there already and is no report.", "run": "is a folder."}.items():
        made = call(*words, "--out", name)
        assert made.exit_code == 3
        assert made.stderr.startswith(f"error: {name} {what}\nFix: ")
    assert (here / "thesis.html").read_text() == "<!doctype html><p>all of it</p>"
    made = call(*words, "--out", "/proc/none/page.html")
    assert made.exit_code == 3
    assert "drawing the report" not in made.stderr  # refused before the work


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
    made = call(*words)
    assert made.exit_code == 3
    assert made.stderr.startswith(what)
    assert "\nFix: " in made.stderr


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
    words = "flow simulate --n 32 --steps 20 --device cpu --fast --out runs/flow --json"
    made = call(*words.split())
    assert made.exit_code == 0
    assert call("report", "runs/flow").exit_code == 0
    page = (here / "runs" / "flow" / "report.html").read_text()
    assert "<h1>Simulation of a decaying flow, 32 × 32 points: flow</h1>" in page
    assert re.search(r"<dt>a step</dt><dd>[\d.]+ [mµ]?s</dd>", page)
    assert "What the flow did" in page
    assert "What it foresees" not in page  # nothing was foreseen
    assert "data:image/webp" in page
    told, measured = json.loads(made.stdout), read_run(here / "runs" / "flow").measures
    assert measured is not None
    # The fields were kept in float32, and sums over their modes are in float64: the rounding of 1024 values.
    assert measured.energy[-1] == pytest.approx(told["energy"][0], rel=1e-5)
    assert measured.enstrophy[-1] == pytest.approx(told["enstrophy"][0], rel=1e-5)
    assert measured.spectra.sum(axis=1) == pytest.approx(measured.energy)


def test_a_simulation_that_was_killed_within_its_first_frame_has_a_report(here: Path) -> None:
    words = "flow simulate --n 32 --steps 20 --device cpu --fast --out runs/flow"
    assert call(*words.split()).exit_code == 0
    shutil.rmtree(here / "runs" / "flow" / "fields.zarr" / "time")  # the last that a frame writes
    assert call("report", "runs/flow").exit_code == 0
    assert "What the flow did" not in (here / "runs" / "flow" / "report.html").read_text()


def test_simulations_and_rollouts_can_be_traced(here: Path) -> None:
    run = "flow simulate --n 32 --steps 20 --frame-every 5 --device cpu --out runs/flow --trace s"
    assert call(*run.split()).exit_code == 0
    spans = read_trace(here / "s")
    assert [span.name for span in spans if span.group == "stages"] == ["sim"]
    assert "rollout stepwise" in {span.name for span in spans if span.track == "queue 0"}
    again = "flow rollout --fit-from runs/flow --k-cut 4 --steps 10 --device cpu --no-stage-times --trace t"
    assert call(*again.split()).exit_code == 0
    spans = read_trace(here / "t")
    assert {"learn", "rollout"} <= {span.track for span in spans if span.group == "stages"}
    assert "decode metrics" in {span.name for span in spans}


@pytest.mark.long
@pytest.mark.usefixtures("vulkan_session")
def test_the_whole_main_job_ends_in_the_hash_that_the_tutorial_names(here: Path) -> None:
    made = call("demo", "--device", "vulkan:0", "--json")
    assert made.exit_code == 0, made.output
    summary = json.loads(made.stdout)
    assert f"`{summary['hash']}`" in (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
    horizons = summary["horizons"]
    assert horizons["perfect"] > horizons["galerkin"] > horizons["truncation"] > 3 * horizons["persistence"]
    assert (here / "runs" / "demo" / "report.html").stat().st_size < 4 << 20
