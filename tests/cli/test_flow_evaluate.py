"""Claims about `dashi flow evaluate`: unseen data, all baselines beside, nothing lost."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.errors import FileError
from dashi.flow import Flow
from dashi.flow.evaluation import evaluate, load_evaluation
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.evaluation._record import read_record
from dashi.flow.evaluation.kept import array_text, text_array
from dashi.flow.proxy._perfect import Perfect
from dashi.flow.proxy.catalogue import MODELS
from dashi.flow.windows import Windows
from dashi.flow.windows.simulated import windows_of
from dashi.io.arrays import read_arrays, write_arrays
from dashi.lab import evaluations
from dashi.lab.evaluations import perfect_model
from dashi.runtime._cpu_device import CpuDevice

EVALUATE = "--device cpu --fast --eval-seed 9 --no-train"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


def test_an_evaluation_shows_train_and_test_with_all_baselines(fitted: Path, here: Path) -> None:
    found = dashi("flow evaluate", str(fitted), EVALUATE, "--eval-steps 60 --perfect --out scores --json")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert [one["split"] for one in told["evaluations"]] == ["train", "validation", "test"]
    test = told["evaluations"][-1]
    names = [row["model"] for row in test["table"]]
    assert names[0] == "galerkin"
    assert {"persistence", "damped", "truncation", "perfect"} <= set(names)
    assert [one["seed"] for one in test["windows"]] == [9, 10]
    assert len(test["series"]["time"]) == 13
    series = test["series"]["models"]["galerkin"]
    assert set(series) >= {"correlation", "relative_l2", "energy_drift", "enstrophy_drift", "spectrum_error"}
    kept = load_evaluation(here / "scores" / "evaluation-test.npz")
    assert kept.line("galerkin").continued.shape == (2, 8)
    assert kept.settings["train_steps"] == 40
    drawn = read_arrays(here / "scores" / "continuation.npz")
    assert {len(values) for values in drawn.values()} == {21}
    assert np.isnan(drawn["reference"][13:]).all()
    assert np.isfinite(drawn["alone"]).all()
    assert np.less(drawn["proxy"][:13], drawn["reference"][:13]).all()
    assert drawn["alone"][0] == pytest.approx(drawn["proxy"][0], rel=1e-5)
    summary = json.loads((here / "scores" / "evaluation.json").read_text())
    assert summary["stopped"] is False
    told = summary["evaluations"][-1]
    assert told["settings"]["fast"] == "yes"
    assert told["settings"]["device"]
    ran = {row["model"]: row["device"] for row in told["table"]}
    assert ran["persistence"] == ran["damped"] == "NumPy on the host"
    assert ran["galerkin"] == ran["perfect"] == "NumPy's own transforms"


def test_seen_seeds_are_refused_before_anything_is_computed_unless_told(fitted: Path) -> None:
    refused = dashi("flow evaluate", str(fitted), "--device cpu --fast --eval-seed 3 --eval-steps 40 --json")
    assert refused.exit_code == 3
    assert json.loads(refused.stdout)["error"]["type"] == "InputError"
    assert "seed 3" in refused.stderr
    assert "rolling out" not in refused.stderr
    seed = "--device cpu --fast --eval-seed 3 --seeds 1 --eval-steps 40"
    later = dashi("flow evaluate", str(fitted), seed, "--start 65")
    assert later.exit_code == 0, later.output
    told = dashi("flow evaluate", str(fitted), seed, "--allow-overlap")
    assert told.exit_code == 0, told.output
    assert "overlap those trained on" in told.stderr


def test_scores_on_seen_data_never_say_that_they_are_of_unseen_data(fitted: Path, here: Path) -> None:
    words = "--device cpu --fast --eval-seed 3 --seeds 1 --eval-steps 40 --allow-overlap --out s"
    found = dashi("flow evaluate", str(fitted), words)
    assert found.exit_code == 0, found.output
    assert "test, seen before (1)" in found.stdout
    assert "test (1)" not in found.stdout
    kept = json.loads((here / "s" / "evaluation.json").read_text())
    assert [one["data"] for one in kept["evaluations"]] == [
        "training data",
        "validation data",
        "data that overlap those trained on",
    ]
    assert load_evaluation(here / "s" / "evaluation-test.npz").data_kind == "data that overlap those trained on"
    assert json.loads((here / "s" / "evaluation-test.json").read_text())["data"] == "data that overlap those trained on"
    fine = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --json")
    assert json.loads(fine.stdout)["evaluations"][-1]["data"] == "unseen data"


def test_the_record_says_how_to_repeat_it_and_where_it_ran(fitted: Path, here: Path) -> None:
    first = dashi("flow evaluate", str(fitted), "--device cpu --fast --seeds 1 --perturb nu=0.01 --out s")
    assert first.exit_code == 0, first.output
    made = read_record(here / "s")
    assert made is not None
    assert made.command == (
        f"dashi flow evaluate {fitted} --eval-steps 80 --eval-seed 4 --seeds 1 --windows 1 --start 20 "
        "--perturb nu=0.01 --fast --device cpu --out s"
    )
    assert made.device is not None
    assert (made.device.spec, made.device.type, made.device.fallback) == ("cpu", "reference", "")
    assert set(made.versions) == {"dashi", "Python", "NumPy", "driver", "system"}
    assert "trained on" in made.settings
    assert made.finished
    assert made.stopped is False
    kept = (here / "s" / "evaluation-test.npz").read_bytes()
    again = dashi(made.command.removeprefix("dashi "))
    assert again.exit_code == 0, again.output
    ours, theirs = load_evaluation(here / "s" / "evaluation-test.npz"), read_arrays(here / "s" / "evaluation-test.npz")
    (here / "kept.npz").write_bytes(kept)
    for name, values in read_arrays(here / "kept.npz").items():
        if name != "head":  # that has the seconds
            np.testing.assert_array_equal(values, theirs[name])
    assert {line.model: line.device for line in ours.lines}["galerkin"] == "NumPy's own transforms"
    (here / "s" / "evaluation.json").write_text('{"command": 3}')
    with pytest.raises(FileError, match=r"is no record of an evaluation. Fix: "):
        read_record(here / "s")
    assert read_record(here) is None


def test_no_train_holds_literally(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fitted, whatever is evaluated, and the file stays as it is."""

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError

    for kind in MODELS.values():
        monkeypatch.setattr(kind, "fit", never)
    before = fitted.read_bytes()
    words = "--seeds 1 --eval-steps 40 --perfect --residual --perturb nu=0.01 --json"
    found = dashi("flow evaluate", str(fitted), EVALUATE, words)
    assert found.exit_code == 0, found.output
    assert len(json.loads(found.stdout)["evaluations"]) == 4
    assert fitted.read_bytes() == before


def test_a_drawn_residual_is_shown_with_dashes(fitted: Path) -> None:
    found = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --residual --json")
    assert found.exit_code == 0, found.output
    row = json.loads(found.stdout)["evaluations"][-1]["table"][-1]
    assert row["model"] == "galerkin + seeded residual"
    assert row["correlation"]["mean"] is None
    assert row["horizons"]["0.5"]["mean"] is None
    assert 0 < row["spectrum_error"]["mean"] < 3


@pytest.mark.parametrize("change", ["nu=0.01", "cs=0.17", "dt=0.01", "n=48"])
def test_flows_with_other_parameters_are_scored_too(fitted: Path, here: Path, change: str) -> None:
    found = dashi(
        "flow evaluate", str(fitted), EVALUATE, f"--seeds 1 --eval-steps 40 --perturb {change} --out s --json"
    )
    assert found.exit_code == 0, found.output
    last = json.loads(found.stdout)["evaluations"][-1]
    assert last["settings"]["perturbed"] == change
    assert len(last["series"]["time"]) == 9
    assert last["series"]["time"][-1] == pytest.approx(0.8)
    assert (here / "s" / f"evaluation-test-{change}.npz").is_file()
    assert ("galerkin, told nu" in [row["model"] for row in last["table"]]) == change.startswith("nu")


def test_the_perfect_model_is_of_the_flow_that_is_scored(fitted: Path) -> None:
    schema, flow = load_fit(fitted).model.schema, Flow(48, nu=0.05, dt=0.01)
    with CpuDevice() as cpu:
        windows = windows_of(
            flow, [1], device=cpu, steps=100, interval=10, host_fft=True, options={"peak": 2}, initial="random"
        )
    made = perfect_model(schema, windows)
    assert isinstance(made, Perfect)
    assert made.flow == windows.flow
    assert (made.schema.n, made.schema.k_cut, made.interval) == (48, schema.k_cut, pytest.approx(0.1))
    with CpuDevice() as cpu:
        models = {"perfect": made, "other": replace(made, flow=replace(flow, nu=0.005))}
        ours, other = evaluate(models, windows, device=cpu, split="test").lines
    assert ours.relative_l2[0, -1] < other.relative_l2[0, -1] / 2


def test_a_run_of_another_flow_is_scored_and_named_as_such(fitted: Path, here: Path) -> None:
    words = "flow simulate --n 48 --nu 0.004 --dt 0.02 --set peak=3 --device cpu --fast --steps 60 --seed 40"
    assert dashi(words, "--frame-every 5 --out run").exit_code == 0
    found = dashi("flow evaluate", str(fitted), "--from run --start 20 --eval-steps 40 --device cpu --json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["evaluations"][-1]["settings"]["perturbed"] == "n=48 nu=0.004"
    assert dashi(words, "--frame-every 7 --out other").exit_code == 0
    uneven = dashi("flow evaluate", str(fitted), "--from other --eval-steps 42 --device cpu")
    assert uneven.exit_code == 3
    assert "the windows have one every 0.14" in uneven.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--eval-steps 42", "use 40 or 45 steps"),
        ("--perturb nu", "is not NAME=NUMBER"),
        ("--perturb dt=0.013", "does not divide"),
        ("--perturb nu=1 --from nowhere", "--perturb is for simulations, and --from reads what is there"),
        ("--from nowhere", "--fast is for simulations, and --from reads what is there"),
        ("--device nowhere", "nowhere"),
        ("--start -3", "--start is -3"),
        ("--eval-steps -5", "--eval-steps is -5"),
        ("--perturb nu=nan", "--perturb nu=nan is not NAME=NUMBER"),
        ("--perturb nu=0.01 --perturb nu=0.010", "--perturb has nu=0.01 twice"),
        ("--perturb n=8", "holds modes up to 5, which a grid of 8 x 8 points does not"),
        ("--perturb n=4096 --seeds 900", "GiB"),
        ("--n 48", "--n goes with --compat v4"),
        ("--compat v4", "and MODEL changes none of it"),
    ],
)
def test_what_cannot_be_evaluated_is_told(fitted: Path, words: str, said: str) -> None:
    found = dashi("flow evaluate", str(fitted), EVALUATE, words)
    assert found.exit_code == 3, found.output
    assert said in found.stderr
    assert "Fix: " in found.stderr
    assert "seed(s), on" not in found.stderr  # nothing was simulated before


@pytest.mark.parametrize("option", ["--start 0", "--seeds 0", "--no-train", "--perturb nu=1", "--out here"])
def test_the_compatibility_mode_passes_over_nothing_that_was_asked_for(option: str) -> None:
    found = dashi("flow evaluate --compat v4", option)
    assert found.exit_code == 3, found.output
    name = option.split()[0]
    assert f"--compat v4 has a setting of its own, and {name} changes none of it." in found.stderr
    assert f"Fix: leave {name} away." in found.stderr


def test_windows_and_seeds_of_a_record_are_those_asked_for(
    fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of small files, whose safety is not what is tested
    words = "flow simulate --n 32 --nu 0.005 --dt 0.02 --set peak=3 --device cpu --fast --steps 85 --seed 40"
    assert dashi(words, "--members 2 --frame-every 5 --out run").exit_code == 0
    seen: list[Windows] = []

    def look(_: Any, windows: Windows, **__: Any) -> Any:
        seen.append(windows)
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluations, "require_disjoint", look)

    def windows(more: str) -> list[tuple[int, int]]:
        assert dashi("flow evaluate", str(fitted), "--from run --eval-steps 40 --device cpu", more).exit_code == 130
        return [*zip(seen[-1].seeds, seen[-1].starts, strict=True)]

    both = [(seed, start) for seed in (40, 41) for start in (0, 45)]
    assert windows("") == both
    assert windows("--windows 1") == [both[0], both[2]]
    assert windows("--seeds 1") == both[:2]
    assert windows("--eval-seed 41 --start 20") == [(41, 20)]
    for more, said in (
        ("--windows 3", "holds 2 windows of 9 frames after step 0, not 3"),
        ("--eval-seed 9", "run does not have seed 9; it has 40, 41"),
        ("--eval-seed 41 --seeds 2", "run does not have 2 seeds from 41 on; it has 40, 41"),
        ("--start 85", "holds 1 frames between steps 85 and the end"),
    ):
        found = dashi("flow evaluate", str(fitted), "--from run --eval-steps 40 --device cpu", more)
        assert found.exit_code == 3
        assert said in found.stderr


def test_a_zarr_store_of_ones_own_is_scored_and_a_model_of_it_wants_one(fitted: Path, here: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    with CpuDevice() as cpu:
        flow = Flow(32, nu=5e-3, dt=0.02)
        windows = windows_of(flow, [30], device=cpu, steps=45, interval=5, host_fft=True, options={"peak": 3})
    place = {axis: np.arange(32) * flow.dx for axis in ("y", "x")}
    data = xarray.Dataset({"vorticity": (("time", "y", "x"), windows.fields[0])}, {"time": windows.times, **place})
    data.to_zarr(here / "mine.zarr", consolidated=False)
    found = dashi("flow evaluate", str(fitted), "--from mine.zarr --eval-steps 40 --device cpu --json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["evaluations"][-1]["windows"] == [{"seed": -1, "start": 0}]
    for more, said in (
        ("--eval-seed 3", "mine.zarr has no seeds"),
        ("--start 1000", "the data end at step 45: no two frames are left from step 1000 on"),
        ("--windows 2 --eval-steps 40", "the data hold 1 windows of 9 frames, not 2"),
    ):
        refused = dashi("flow evaluate", str(fitted), "--from mine.zarr --device cpu", more)
        assert refused.exit_code == 3
        assert said in refused.stderr
    arrays = read_arrays(fitted)
    head = {**json.loads(array_text(arrays["note_training_head"])), "source": "mine.zarr"}
    write_arrays(here / "own.npz", {**arrays, "note_training_head": text_array(json.dumps(head))})
    refused = dashi("flow evaluate own.npz --device cpu --fast")
    assert refused.exit_code == 3
    assert "was trained on the fields of mine.zarr, and seeds make other flows than that" in refused.stderr


def test_a_file_without_a_model_or_of_another_version_is_refused(fitted: Path, tmp_path: Path) -> None:
    assert dashi("flow evaluate", str(tmp_path / "none.npz")).exit_code == 3
    arrays = read_arrays(fitted)

    def changed(name: str, value: int) -> Any:
        return text_array(json.dumps({**json.loads(array_text(arrays["note_training_head"])), name: value}))

    def endless(heads: Any) -> Any:
        return text_array(json.dumps([{**one, "interval": float("inf")} for one in json.loads(array_text(heads))]))

    changes = {
        "schema": ({"schema_version": np.array(2)}, "schema version 2"),
        "version": ({"version": np.array(9)}, "version 9"),
        "notes": ({"note_training_version": np.array(9)}, "what it was trained on"),
        "head": ({"note_training_head": np.zeros(3, np.uint8)}, "damaged"),
        "interval": ({"note_training_head": changed("interval", 0)}, "interval is 0"),
        "steps": ({"note_training_head": changed("steps", -40)}, "steps is -40"),
        "spin": ({"note_training_head": changed("spin_up", 10**12)}, "spin_up is 1000000000000"),
        "baseline": ({"note_baselines": endless(arrays["note_baselines"])}, "time between frames of"),
    }
    for name, (change, said) in changes.items():
        write_arrays(tmp_path / f"{name}.npz", {**arrays, **change})
        found = dashi("flow evaluate", str(tmp_path / f"{name}.npz"))
        assert found.exit_code == 3, found.output
        assert said in found.stderr, name
    write_arrays(tmp_path / "bare.npz", {k: v for k, v in arrays.items() if not k.startswith("note_")})
    assert "does not say what its model was trained on" in dashi("flow evaluate", str(tmp_path / "bare.npz")).stderr


def test_a_table_for_people_has_a_row_for_each_model(fitted: Path) -> None:
    found = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert "windows: test (1)" in lines
    blocks = [block.splitlines() for block in found.stdout.split("windows: test (1)\n")[1].split("\n\n")]
    for heading, *rows in blocks:
        assert heading.startswith("model")
        assert [row.split("  ")[0] for row in rows] == list(load_fit(fitted).models)


def test_evaluate_without_a_model_is_wrong_usage() -> None:
    assert dashi("flow evaluate").exit_code == 2
