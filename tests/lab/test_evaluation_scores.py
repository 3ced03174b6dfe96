"""Claims about the scores of an evaluation: unseen data, all baselines beside, and a record that repeats it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.errors import DashiError, FileError, InputError, Interrupted
from dashi.flow import Flow
from dashi.flow.evaluation import evaluate as score
from dashi.flow.evaluation import load_evaluation
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.evaluation._record import read_record
from dashi.flow.evaluation.files import array_text, text_array
from dashi.flow.proxy._perfect import Perfect
from dashi.flow.proxy.catalogue import MODELS
from dashi.flow.windows import Windows
from dashi.flow.windows.simulated import windows_of
from dashi.io.arrays import read_arrays, write_arrays
from dashi.lab import evaluations
from dashi.lab.evaluations import perfect_model
from dashi.runtime._cpu_device import CpuDevice

SHORT: dict[str, Any] = {"seeds": 1, "steps": 40}
RECORD: dict[str, Any] = {"first_seed": None, "host_fft": False}
"""Of what is read, and not simulated."""


def evaluate(model: Path, out: str | None = None, *, events: Any = lab.SILENT, **asked: Any) -> lab.ModelScores:
    request = lab.EvaluateRequest(**{"model": model, "first_seed": 9, "host_fft": True, **asked})
    return lab.evaluate(request, device="cpu", out=out, events=events)


def simulate(out: str, n: int = 32, nu: float = 5e-3, **asked: Any) -> None:
    request = lab.SimulateRequest(
        flow=Flow(n, nu=nu, dt=0.02), **{"initial_options": {"peak": 3}, "host_fft": True, "seeds": (40,), **asked}
    )
    lab.simulate(request, device="cpu", out=out)


def test_an_evaluation_shows_train_and_test_with_all_baselines(fitted: Path, here: Path) -> None:
    document = evaluate(fitted, "scores", steps=60, perfect=True).document()
    assert [one["split"] for one in document["evaluations"]] == ["train", "validation", "test"]
    test = document["evaluations"][-1]
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
    document = summary["evaluations"][-1]
    assert document["settings"]["fast"] == "yes"
    assert document["settings"]["device"]
    ran = {row["model"]: row["device"] for row in document["table"]}
    assert ran["persistence"] == ran["damped"] == "NumPy on the host"
    assert ran["galerkin"] == ran["perfect"] == "NumPy's own transforms"


def test_seen_seeds_are_refused_before_anything_is_computed_unless_allowed(fitted: Path, heard: Any) -> None:
    with pytest.raises(InputError, match="seed 3"):
        evaluate(fitted, first_seed=3, steps=40, events=heard)
    assert heard.parts == []
    assert evaluate(fitted, first_seed=3, **SHORT, start=65).evaluations[-1].seeds == (3,)
    evaluate(fitted, first_seed=3, **SHORT, allow_overlap=True, events=heard)
    assert any("overlap those trained on" in line for line in heard.remarks)


def test_scores_on_seen_data_never_say_that_they_are_of_unseen_data(fitted: Path, here: Path) -> None:
    scores = evaluate(fitted, "s", first_seed=3, **SHORT, allow_overlap=True)
    assert scores.table().tables[-1].title == "windows: test, seen before (1)"
    kept = json.loads((here / "s" / "evaluation.json").read_text())
    assert [one["data"] for one in kept["evaluations"]] == [
        "training data",
        "validation data",
        "data that overlap those trained on",
    ]
    assert load_evaluation(here / "s" / "evaluation-test.npz").data_kind == "data that overlap those trained on"
    assert json.loads((here / "s" / "evaluation-test.json").read_text())["data"] == "data that overlap those trained on"
    assert evaluate(fitted, **SHORT).evaluations[-1].data_kind == "unseen data"


def test_the_record_says_how_to_repeat_it_and_where_it_ran(fitted: Path, here: Path) -> None:
    evaluate(fitted, "s", first_seed=None, seeds=1, perturb=(("nu", 0.01),))
    stored = read_record(here / "s")
    assert stored is not None
    assert stored.command == (
        f"dashi flow evaluate {fitted} --eval-steps 80 --eval-seed 4 --seeds 1 --windows 1 --start 20 "
        "--perturb nu=0.01 --host-fft --device cpu --out s"
    )
    assert stored.device is not None
    assert (stored.device.spec, stored.device.type, stored.device.fallback) == ("cpu", "reference", "")
    assert set(stored.versions) == {"dashi", "Python", "NumPy", "driver", "system"}
    assert "trained on" in stored.settings
    assert stored.finished
    assert stored.stopped is False
    content = (here / "s" / "evaluation-test.npz").read_bytes()
    evaluate(fitted, "s", steps=80, first_seed=4, seeds=1, windows=1, start=20, perturb=(("nu", 0.01),))
    ours, theirs = load_evaluation(here / "s" / "evaluation-test.npz"), read_arrays(here / "s" / "evaluation-test.npz")
    (here / "kept.npz").write_bytes(content)
    for name, values in read_arrays(here / "kept.npz").items():
        if name != "head":  # that has the seconds
            np.testing.assert_array_equal(values, theirs[name])
    assert {line.model: line.device for line in ours.lines}["galerkin"] == "NumPy's own transforms"
    (here / "s" / "evaluation.json").write_text('{"command": 3}')
    with pytest.raises(FileError, match=r"is no record of an evaluation. Fix: "):
        read_record(here / "s")
    assert read_record(here) is None


def test_nothing_is_trained(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fitted, whatever is evaluated, and the file stays as it is."""

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError

    for kind in MODELS.values():
        monkeypatch.setattr(kind, "fit", never)
    before = fitted.read_bytes()
    scores = evaluate(fitted, **SHORT, perfect=True, residual=True, perturb=(("nu", 0.01),))
    assert len(scores.evaluations) == 4
    assert fitted.read_bytes() == before


def test_a_drawn_residual_is_shown_with_dashes(fitted: Path) -> None:
    row = evaluate(fitted, **SHORT, residual=True).document()["evaluations"][-1]["table"][-1]
    assert row["model"] == "galerkin + seeded residual"
    assert row["correlation"]["mean"] is None
    assert row["horizons"]["0.5"]["mean"] is None
    assert 0 < row["spectrum_error"]["mean"] < 3


@pytest.mark.parametrize("change", ["nu=0.01", "drag=0.2", "cs=0.17", "dt=0.01", "n=48"])
def test_flows_with_other_parameters_are_scored_too(fitted: Path, here: Path, change: str) -> None:
    name, value = change.split("=")
    last = evaluate(fitted, "s", **SHORT, perturb=((name, float(value)),)).document()["evaluations"][-1]
    assert last["settings"]["perturbed"] == change
    assert len(last["series"]["time"]) == 9
    assert last["series"]["time"][-1] == pytest.approx(0.8)
    assert (here / "s" / f"evaluation-test-{change}.npz").is_file()
    told = [row["model"] for row in last["table"] if ", told " in row["model"]]
    assert told == ([f"galerkin, told {name}"] if name in ("nu", "drag") else [])


def test_the_perfect_model_is_of_the_flow_that_is_scored(fitted: Path) -> None:
    schema, flow = load_fit(fitted).model.schema, Flow(48, nu=0.05, dt=0.01)
    with CpuDevice() as cpu:
        windows = windows_of(
            flow, [1], device=cpu, steps=100, interval=10, host_fft=True, options={"peak": 2}, initial="random"
        )
    model = perfect_model(schema, windows)
    assert isinstance(model, Perfect)
    assert model.flow == windows.flow
    assert (model.schema.n, model.schema.k_cut, model.interval) == (48, schema.k_cut, pytest.approx(0.1))
    with CpuDevice() as cpu:
        models = {"perfect": model, "other": replace(model, flow=replace(flow, nu=0.005))}
        ours, other = score(models, windows, device=cpu, split="test").lines
    assert ours.relative_l2[0, -1] < other.relative_l2[0, -1] / 2


def test_a_run_of_another_flow_is_scored_and_named_as_such(fitted: Path, here: Path) -> None:
    simulate("run", 48, 0.004, steps=60, frame_every=5)
    scores = evaluate(fitted, source="run", start=20, steps=40, **RECORD)
    assert scores.evaluations[-1].settings["perturbed"] == "n=48 nu=0.004"
    simulate("other", 48, 0.004, steps=60, frame_every=7)
    with pytest.raises(InputError, match=r"the windows have one every 0.14"):
        evaluate(fitted, source="other", steps=42, **RECORD)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"steps": 42}, "use 40 or 45 steps"),
        ({"perturb": (("dt", 0.013),)}, "does not divide"),
        ({"start": -3}, "`start=` is -3"),
        ({"perturb": (("n", 8),)}, "holds modes up to 5, which a grid of 8 x 8 points does not"),
        ({"perturb": (("n", 4096),), "seeds": 900}, "GiB"),
    ],
)
def test_what_cannot_be_evaluated_is_told_before_anything_is_simulated(
    fitted: Path, asked: dict[str, Any], said: str, heard: Any
) -> None:
    with pytest.raises(DashiError, match=said):
        evaluate(fitted, **asked, events=heard)
    assert heard.parts == []


def test_windows_and_seeds_of_a_record_are_those_asked_for(
    fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of small files, whose safety is not what is tested
    simulate("run", steps=85, seeds=(40, 41), frame_every=5)
    batches: list[Windows] = []

    def look(_: Any, windows: Windows, **__: Any) -> Any:
        batches.append(windows)
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluations, "require_disjoint", look)

    def windows(**more: Any) -> list[tuple[int, int]]:
        with pytest.raises(Interrupted):
            evaluate(fitted, source="run", steps=40, **{**RECORD, **more})
        return [*zip(batches[-1].seeds, batches[-1].starts, strict=True)]

    both = [(seed, start) for seed in (40, 41) for start in (0, 45)]
    assert windows() == both
    assert windows(windows=1) == [both[0], both[2]]
    assert windows(seeds=1) == both[:2]
    assert windows(first_seed=41, start=20) == [(41, 20)]
    refusals: tuple[tuple[dict[str, Any], str], ...] = (
        ({"windows": 3}, "holds 2 windows of 9 frames after step 0, not 3"),
        ({"first_seed": 9}, "run does not have seed 9; it has 40, 41"),
        ({"first_seed": 41, "seeds": 2}, "run does not have 2 seeds from 41 on; it has 40, 41"),
        ({"start": 85}, "holds 1 frames between steps 85 and the end"),
    )
    for more, said in refusals:
        with pytest.raises(DashiError, match=said):
            evaluate(fitted, source="run", steps=40, **{**RECORD, **more})


def test_a_zarr_store_of_ones_own_is_scored_and_a_model_of_it_wants_one(fitted: Path, here: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    with CpuDevice() as cpu:
        flow = Flow(32, nu=5e-3, dt=0.02)
        windows = windows_of(flow, [30], device=cpu, steps=45, interval=5, host_fft=True, options={"peak": 3})
    place = {axis: np.arange(32) * flow.dx for axis in ("y", "x")}
    data = xarray.Dataset({"vorticity": (("time", "y", "x"), windows.fields[0])}, {"time": windows.times, **place})
    data.to_zarr(here / "mine.zarr", consolidated=False)
    scores = evaluate(fitted, source="mine.zarr", steps=40, **RECORD)
    assert scores.document()["evaluations"][-1]["windows"] == [{"seed": -1, "start": 0}]
    refusals: tuple[tuple[dict[str, Any], str], ...] = (
        ({"first_seed": 3}, "mine.zarr has no seeds"),
        ({"start": 1000}, "the data end at step 45: no two frames are left from step 1000 on"),
        ({"windows": 2, "steps": 40}, "the data hold 1 windows of 9 frames, not 2"),
    )
    for more, said in refusals:
        with pytest.raises(DashiError, match=said):
            evaluate(fitted, source="mine.zarr", **{**RECORD, **more})
    arrays = read_arrays(fitted)
    head = {**json.loads(array_text(arrays["note_training_head"])), "source": "mine.zarr"}
    write_arrays(here / "own.npz", {**arrays, "note_training_head": text_array(json.dumps(head))})
    with pytest.raises(InputError, match=r"trained on the fields of mine.zarr, and seeds make other flows than that"):
        evaluate(here / "own.npz", first_seed=None)


def test_a_file_without_a_model_or_of_another_version_is_refused(fitted: Path, tmp_path: Path) -> None:
    def refused(name: str) -> str:
        with pytest.raises(DashiError) as error:
            evaluate(tmp_path / f"{name}.npz", first_seed=None, host_fft=False)
        return str(error.value)

    assert "there is no file" in refused("none")
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
        assert said in refused(name), name
    write_arrays(tmp_path / "bare.npz", {k: v for k, v in arrays.items() if not k.startswith("note_")})
    assert "does not say what its model was trained on" in refused("bare")
