"""Models remember what they were fitted to, in files too, and are not scored on it unless that is asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.errors import InputError
from dashi.flow import Flow, windows_of
from dashi.flow.evaluation import evaluate
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.proxy import MODELS, Model, Schema, load_model, save_model
from dashi.flow.windows import Windows

FLOW = Flow(16, nu=2e-2, dt=0.02)
SCHEMA = Schema(16, k_cut=3)


def windows(*seeds: int, **more: Any) -> Windows:
    asked: dict[str, Any] = {
        "steps": 20,
        "interval": 5,
        "spin_up": 5,
        "options": {"peak": 2.0},
        "host_fft": True,
        **more,
    }
    return windows_of(FLOW, seeds, device="cpu", **asked)


@pytest.fixture(scope="module")
def data() -> dict[str, Windows]:
    return {"train": windows(1, 2), "validation": windows(3), "test": windows(4)}


@pytest.fixture(scope="module")
def model(data: dict[str, Windows]) -> Model:
    return MODELS["galerkin"].fit(SCHEMA, data["train"], data["validation"], device="cpu")


def test_a_model_is_not_scored_on_what_it_was_fitted_to(model: Model, data: dict[str, Windows]) -> None:
    for name, said in (("train", "seed 1 from time 0.1 to 0.5"), ("validation", "seed 3 from time")):
        with pytest.raises(InputError, match=f"overlap those trained on: {said}") as error:
            evaluate({"galerkin": model}, data[name], device="cpu", split="test")
        assert "allow_overlap=True" in error.value.fix
        allowed = evaluate({"galerkin": model}, data[name], device="cpu", split="test", allow_overlap=True)
        assert allowed.data_kind == "data that overlap those trained on"
        assert evaluate({"galerkin": model}, data[name], device="cpu", split=name).settings.get("overlap") is None
    # The same fields under another name are known by their values.
    renamed = replace(data["train"], seeds=(7, 8))
    with pytest.raises(InputError, match="frames are the very same"):
        evaluate({"galerkin": model}, renamed, device="cpu", split="test")
    assert evaluate({"galerkin": model}, data["test"], device="cpu", split="test").data_kind == "unseen data"


def test_one_model_of_several_that_has_seen_the_windows_is_enough(model: Model, data: dict[str, Windows]) -> None:
    other = MODELS["damped"].fit(SCHEMA, data["test"], None, device="cpu")
    with pytest.raises(InputError, match="seed 4 from time"):
        evaluate({"galerkin": model, "damped": other}, data["test"], device="cpu", split="test")


@pytest.mark.parametrize("name", ["galerkin", "slaved"])
def test_a_closure_for_another_flow_still_remembers(name: str, data: dict[str, Windows]) -> None:
    options: dict[str, Any] = {"iterations": 1, "long_iterations": 0} if name == "slaved" else {}
    fitted = MODELS[name].fit(SCHEMA, data["train"], None, device="cpu", **options)
    assert fitted.training is not None
    other: Any = fitted
    assert other.of_flow(replace(FLOW, nu=1e-2)).training is fitted.training


def test_a_model_that_was_saved_is_scored_by_the_command_line(
    model: Model, data: dict[str, Windows], here: Path
) -> None:
    save_model("m.npz", model)
    again = load_model("m.npz")
    assert again.training is not None
    assert model.training is not None
    assert again.training.data == model.training.data
    assert load_fit(Path("m.npz")).training is not None
    found = CliRunner().invoke(app, ["flow", "evaluate", "m.npz", "--device", "cpu", "--host-fft", "--json"])
    assert found.exit_code == 0, found.output
    scores = json.loads(found.stdout)["evaluations"][0]
    assert [one["seed"] for one in scores["windows"]] == [4, 5]  # the first that nobody has seen
    assert scores["windows"][0]["start"] == 5
    told = CliRunner().invoke(app, ["flow", "evaluate", "m.npz", "--eval-seed", "1", "--device", "cpu", "--host-fft"])
    assert told.exit_code == 3
    assert "overlap those trained on" in told.stderr


def test_a_model_of_windows_that_no_seed_made_is_scored_on_recorded_data(data: dict[str, Windows], here: Path) -> None:
    fitted = MODELS["damped"].fit(SCHEMA, replace(data["train"], origin=None), None, device="cpu")
    save_model("m.npz", fitted)
    result = CliRunner().invoke(app, ["flow", "evaluate", "m.npz", "--device", "cpu", "--host-fft"])
    assert result.exit_code == 3
    assert "m.npz was trained on the fields of recorded windows, and seeds make other flows than that." in result.stderr
    assert "give --from a run" in result.stderr
    words = "flow simulate --n 16 --nu 0.02 --dt 0.02 --set peak=2 --seed 9 --steps 40 --frame-every 5 --host-fft"
    assert CliRunner().invoke(app, [*words.split(), "--device", "cpu", "--out", "run"]).exit_code == 0
    found = CliRunner().invoke(app, ["flow", "evaluate", "m.npz", "--from", "run", "--device", "cpu", "--json"])
    assert found.exit_code == 0, found.output
