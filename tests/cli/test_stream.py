"""`dashi stream plan` and `explain`, and `dashi devices calibrate`: they ask the library and print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "stream" / "worked_example.yaml")
ON_NUMPY = ["--bind", "gpu_weak=cpu", "--bind", "gpu_mid=cpu", "--bind", "gpu_strong=cpu", "--no-measure"]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path / "cache"))


def test_plan_prints_stages_links_and_the_prediction(tmp_path: Path) -> None:
    done = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["stream", "plan", EXAMPLE, *ON_NUMPY])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["stage", "device", "ops", "depth", "µs", "link", "µs", "window"]
    assert lines[1].startswith("cpu0   cpu (cpu)         pq_pack_bits pq_lut_build")
    assert "period" in done.stderr
    assert "never measured, so times are rough: cpu (dashi devices calibrate)" in done.stderr
    assert not (tmp_path / "cache").exists()


def test_plan_and_explain_have_documents() -> None:
    done = CliRunner().invoke(app, ["stream", "plan", EXAMPLE, *ON_NUMPY, "--json"])
    document = json.loads(done.stdout)
    assert [stage["id"] for stage in document["stages"]] == ["cpu0", "gpu0", "gpu1", "gpu2"]
    assert document["predicted_period_us"] > 0
    assert document["stages"][3]["observers"] == {"defect_local": 10, "reduce_max": 10}
    done = CliRunner().invoke(app, ["stream", "explain", EXAMPLE, *ON_NUMPY, "--json"])
    document = json.loads(done.stdout)
    assert {one["op"] for one in document["candidates"] if one["chosen"]} >= {"fma3", "reduce_max"}
    assert [link["mode"] for link in document["links"]] == ["HOST_STAGING", "P2P", "P2P"]


def test_explain_names_the_rule_that_excludes_a_stage() -> None:
    done = CliRunner().invoke(app, ["stream", "explain", EXAMPLE, *ON_NUMPY])
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "R2 role: op 'fma3' reaches depth 2; stage 'cpu0' on device 'cpu' (cpu) goes to 1." in text
    assert "cpu0->gpu0 HOST_STAGING none" in text


def test_errors_have_file_line_fix_and_the_flag(tmp_path: Path) -> None:
    file = tmp_path / "chain.yaml"
    file.write_text(Path(EXAMPLE).read_text().replace("  gpu_mid: vulkan:0\n", ""))
    done = CliRunner().invoke(app, ["stream", "plan", str(file)])
    assert done.exit_code == 3
    assert f"{file}:12: stage 'gpu1' wants the device 'gpu_mid', which nothing binds." in done.stderr
    assert "--bind gpu_mid=vulkan:0" in done.stderr
    done = CliRunner().invoke(app, ["stream", "plan", EXAMPLE, "--bind", "gpu_mid"])
    assert done.exit_code == 2
    assert "'gpu_mid' is not NAME=DEVICE" in done.stderr


def test_calibrate_measures_and_shows(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["devices", "calibrate", "--device", "cpu"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].split()[:2] == ["device", "name"]
    again = CliRunner().invoke(app, ["devices", "calibrate", "--device", "cpu", "--json"])
    (device,) = json.loads(again.stdout)["devices"]
    assert f"{device['fp32_gflops']:.3g}" in done.stdout
    assert (tmp_path / "cache" / "calibration").is_dir()
