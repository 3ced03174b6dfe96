"""The main job in its small form: what it leaves, and that it tells the truth about it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.cli.demo import print_demo
from dashi.core.traces.file import read_trace
from dashi.errors import NoResultError, install_extra
from dashi.flow._fields import read_frame
from dashi.flow.equations import Flow, Kolmogorov
from dashi.flow.evaluation import load_evaluation
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.proxy import load_z
from dashi.io._run_mark import MARK
from dashi.io.metrics import read_metrics
from dashi.lab.demos import _stages as stages
from dashi.lab.demos.setting import DemoSetting
from dashi.lab.events import Silent
from dashi.report._story import read_story
from dashi.report.page import write_report
from dashi.report.run import read_run

FILES = {
    "certificate.json", "continuation.npz", "evaluation-train.json", "evaluation-train.npz", "evaluation-test.json",
    "evaluation-test.npz", "fields.zarr", "inputs.npz", "metrics.json", "model.npz", "report.html", "sheet_energy.npy",
    "story.json", "summary.json", "trace.perfetto-trace", "z.npz",
}  # fmt: skip


TINY = DemoSetting(
    Flow(16, nu=2e-2, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0), scheme="etdrk4"),
    k_cut=3, spin_up=0.4, window=0.4, interval=5, certified=20, checked=10,
)  # fmt: skip
"""So small that it takes a second; what comes of it means nothing."""


@pytest.fixture
def drawn() -> None:
    """Figures of a page need it; `dashi-compute[plot]` brings it."""
    pytest.importorskip("matplotlib")


class Heard(Silent):
    """Events that keep what was remarked."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def remark(self, *lines: str) -> None:
        self.lines += lines


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[lab.DemoResult, list[str]]:
    """One run of the small form on NumPy, and what it said."""
    events = Heard()
    folder = tmp_path_factory.mktemp("demo") / "run"
    return lab.demo(lab.DemoRequest(setting=lab.QUICK), device="cpu", out=folder, events=events), events.lines


@pytest.mark.usefixtures("drawn")
def test_the_main_job_leaves_a_whole_run_folder(done: tuple[lab.DemoResult, list[str]]) -> None:
    folder, summary = done[0].folder, done[0].summary
    assert {path.name for path in folder.iterdir()} == FILES | {MARK}
    assert set(summary["files"]) == FILES
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert done[0].report == folder / "report.html"
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


@pytest.mark.usefixtures("drawn")
def test_the_page_and_the_terminal_name_the_same_times_and_scores(
    done: tuple[lab.DemoResult, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, summary = done[0].folder, done[0].summary
    page = (folder / "report.html").read_text()
    to_scores = f"{summary['seconds']:.0f} s"
    assert re.search(rf"from the seeds to the scores, without drawing this page</dt><dd>{to_scores}</dd>", page)
    print_demo(done[0], as_json=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"time {done[0].seconds:.0f} s, {to_scores} from the seeds to the scores, the rest to" in printed
    assert done[0].seconds >= summary["seconds"]
    for model, value in summary["horizons"].items():
        assert re.search(rf"</svg>{model}</th><td[^>]*>(?:≥ )?{value:.2f}\b", page)
        assert f"{value:.2f} {model}" in printed


def test_models_are_judged_on_seeds_that_none_has_seen(done: tuple[lab.DemoResult, list[str]]) -> None:
    folder, summary = done[0].folder, done[0].summary
    evaluation = load_evaluation(folder / "evaluation-test.npz")
    assert set(evaluation.seeds) == {4, 5}
    assert set(load_evaluation(folder / "evaluation-train.npz").seeds) == {1, 2}
    assert [line.model for line in evaluation.lines] == [*summary["horizons"]]
    assert {"galerkin", "persistence", "damped", "truncation", "perfect"} <= set(summary["horizons"])
    # Whatever the small form says little about: knowing the equation beats standing still.
    assert summary["horizons"]["galerkin"] > summary["horizons"]["persistence"]


def test_the_run_tells_where_it_ran(done: tuple[lab.DemoResult, list[str]]) -> None:
    folder, summary, said = done[0].folder, done[0].summary, done[1]
    metrics = read_metrics(folder / "metrics.json")
    assert (metrics.op_backend_used, metrics.decode_backend_used, metrics.gpu_hotloop_active) == ("cpu", "cpu", False)
    assert [flag.name for flag in metrics.perf_flags] == ["solver"]
    assert metrics.stage_seconds.sim
    assert metrics.eval is not None
    assert any(line.startswith("All ran on NumPy, as asked") for line in said)
    assert summary["notes"][0].startswith("All ran on NumPy, as asked")
    for stage in ("simulate", "fit", "roll out", "decode", "score", "check"):
        assert any(line.startswith(f"{stage}: ") for line in said)


def test_the_trace_has_a_track_for_each_stage_and_for_the_queue(done: tuple[lab.DemoResult, list[str]]) -> None:
    spans = read_trace(done[0].folder / "trace.perfetto-trace")
    stages = [span.track for span in spans if span.group == "stages"]
    assert stages == ["simulate", "fit", "roll out", "decode", "score", "check"]
    queue = [span for span in spans if span.group != "stages"]
    assert {span.track for span in queue} == {"queue 0"}
    assert {"encode", "decode snapshots"} <= {span.name for span in queue}


def test_the_fields_shown_are_the_ones_kept(done: tuple[lab.DemoResult, list[str]]) -> None:
    pytest.importorskip("zarr")
    xarray: Any = pytest.importorskip("xarray")
    opened = xarray.open_zarr(done[0].folder / "fields.zarr")
    assert opened.vorticity.dims == ("time", "y", "x")
    assert opened.vorticity.shape == opened.vorticity_proxy.shape == (21, 32, 32)
    assert opened.vorticity.attrs["units"] == "1/T"
    assert np.array_equal(
        opened.vorticity_proxy.values[-1], read_frame(done[0].folder / "fields.zarr", "vorticity_proxy")
    )


def test_the_certificate_of_the_main_job_verifies(done: tuple[lab.DemoResult, list[str]]) -> None:
    assert lab.verify(lab.VerifyRequest(certificate=done[0].folder), device="cpu").same
    assert (
        json.loads((done[0].folder / "certificate.json").read_text())["digest"] == done[0].summary["certificate_digest"]
    )


def test_the_model_and_its_states_can_be_used_again(done: tuple[lab.DemoResult, list[str]]) -> None:
    fit = load_fit(done[0].folder / "model.npz")
    assert fit.model.name == "galerkin"
    assert fit.model.description == done[0].summary["model"]
    assert set(fit.baselines) == {"truncation", "ridge", "damped", "persistence"}
    assert fit.training is not None
    assert (fit.training.seeds, fit.training.validation_seeds) == ((1, 2), (3,))
    assert [one.split for one in fit.evaluations] == ["train"]
    schema, z = load_z(done[0].folder / "z.npz")
    assert schema == fit.model.schema
    assert z.shape == (41, schema.size)  # twice as long as the window


@pytest.mark.usefixtures("drawn")
def test_a_horizon_beyond_the_window_is_a_bound_everywhere(
    done: tuple[lab.DemoResult, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, summary = done[0].folder, done[0].summary
    found = load_evaluation(folder / "evaluation-test.npz")
    ends = [line.model for line in found.lines if (line.horizons[0.5] >= found.times[-1]).any()]
    assert summary["at_least"] == ends
    assert "galerkin" in ends  # the windows of the small form are too short for it
    assert "persistence" not in ends
    print_demo(done[0], as_json=False)
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
def test_the_page_repeats_the_run_and_says_that_numpy_ran_no_spirv(done: tuple[lab.DemoResult, list[str]]) -> None:
    folder = done[0].folder
    page = (folder / "report.html").read_text()
    assert f"dashi demo --quick --device cpu --out {folder}</code>" in page
    assert f"dashi verify {folder}/certificate.json</code>" in page
    assert "of the hot loop, computed by NumPy: no SPIR-V ran here" in page
    assert "by the digest of what ran" not in page
    assert "no: NumPy computed it, and nothing was dispatched" in page
    assert 'class="warning"' not in page


@pytest.mark.usefixtures("drawn")
def test_the_report_made_again_is_the_same(done: tuple[lab.DemoResult, list[str]], tmp_path: Path) -> None:
    folder = done[0].folder
    write_report(tmp_path / "again.html", read_run(folder))
    assert (tmp_path / "again.html").read_bytes() == (folder / "report.html").read_bytes()


def test_a_hash_that_differs_is_a_failure(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # the page is not what this is about
    right, calls = stages.rollout, list[int]()

    def rollout(operator: Any, z0: Any, *rest: Any, **more: Any) -> Any:
        calls.append(1)
        return right(operator, z0 if len(calls) == 1 else z0[:, ::-1].copy(), *rest, **more)

    monkeypatch.setattr(stages, "rollout", rollout)
    result = lab.demo(lab.DemoRequest(setting=TINY), device="cpu", out="run")
    assert not result.same
    assert result.summary["verified"].startswith("FAILED: other bits on")
    assert (here / "run" / "certificate.json").is_file()


@pytest.mark.usefixtures("vulkan_session", "here")
def test_the_main_job_has_the_same_bits_on_vulkan_and_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # the page is not what this is about
    result = lab.demo(lab.DemoRequest(setting=lab.QUICK), device="vulkan:0", out="run")
    name = result.summary["device"]["name"]
    assert result.summary["verified"] == f"same bits on {name} and NumPy over the first 20 steps"
    assert result.summary["metrics"]["perf_flags"] == []
    assert result.summary["metrics"]["hotloop_dispatches"] > 0
    verified = lab.verify(lab.VerifyRequest(certificate="run"), device="cpu")
    assert verified.certificate.steps == 200  # the whole rollout, twice as long as the window
    assert verified.sentences[0].endswith("all 40 hashes are the same")


def test_without_matplotlib_everything_but_the_page_is_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    events = Heard()
    assert lab.demo(lab.DemoRequest(setting=TINY), device="cpu", out="run", events=events).report is None
    said = f"no report: matplotlib is not installed; it draws the figures. Fix: {install_extra('plot')}, then dashi "
    assert f"{said}report run" in events.lines
    assert {path.name for path in (here / "run").iterdir()} == (FILES | {MARK}) - {"report.html"}


def test_the_null_device_is_refused_before_anything_is_written(here: Path) -> None:
    with pytest.raises(NoResultError, match="the null device computes nothing"):
        lab.demo(lab.DemoRequest(setting=TINY), device="null", out="run")
    assert not list(here.iterdir())


@pytest.mark.long
@pytest.mark.usefixtures("vulkan_session")
def test_the_whole_main_job_ends_in_the_hash_that_the_tutorial_names(here: Path) -> None:
    result = lab.demo(device="vulkan:0")
    assert f"`{result.summary['hash']}`" in (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
    horizons = result.summary["horizons"]
    assert horizons["perfect"] > horizons["galerkin"] > horizons["truncation"] > 3 * horizons["persistence"]
    assert (here / "runs" / "demo" / "report.html").stat().st_size < 4 << 20
