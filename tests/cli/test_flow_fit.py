"""Claims about `dashi flow fit`: one file with model, baselines and where the data came from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.errors import InputError, Interrupted
from dashi.flow import Flow
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.proxy.catalogue import load_model
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows.simulated import windows_of
from dashi.runtime._cpu_device import CpuDevice

SMALL = "--n 32 --nu 0.005 --dt 0.02 --set peak=3 --k-cut 5 --device cpu --fast"
FIT = f"flow fit --train-steps 40 --train-seed 1 --frame-every 5 --spin-up 20 {SMALL}"
EVALUATE = "--device cpu --fast --eval-seed 9 --no-train"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


@pytest.fixture
def no_pydmd(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if PyDMD were not installed."""
    import importlib.util
    import sys

    real = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "pydmd", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "pydmd" else real(name, *a))


# ---- fit


def test_a_fit_is_a_model_that_anything_loads(fitted: Path) -> None:
    assert load_model(fitted).name == "galerkin"
    fit = load_fit(fitted)
    assert fit.model.name == "galerkin"
    assert {"persistence", "damped", "truncation"} <= set(fit.baselines)
    assert fit.training is not None
    assert (fit.training.seeds, fit.training.validation_seeds) == ((1, 2), (3,))
    assert fit.training.steps == 40
    assert fit.training.options == {"peak": 3}
    assert len(fit.training.data.digests) == 3 * 9
    assert [one.split for one in fit.evaluations] == ["train", "validation"]
    assert [line.model for line in fit.evaluations[0].lines] == list(fit.models)


def test_baselines_roll_out_after_loading_as_before(fitted: Path, tmp_path: Path) -> None:
    from dashi.flow.evaluation._fits import save_fit

    fit = load_fit(fitted)
    save_fit(tmp_path / "again.npz", fit)
    assert (tmp_path / "again.npz").read_bytes() == fitted.read_bytes()
    z0 = np.random.default_rng(0).standard_normal((1, fit.model.schema.size)).astype(np.float32)
    with CpuDevice() as device:
        for name, one in load_fit(tmp_path / "again.npz").baselines.items():
            assert one.rollout(z0, 2, device=device).shape == (1, 3, one.schema.size), name


def test_dmd_is_fitted_by_pydmd_and_rolled_out_without(fitted: Path, no_pydmd: None) -> None:
    if not {"dmd"} <= set(load_fit(fitted).baselines):
        pytest.skip("PyDMD is not installed here")
    found = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --json")
    assert found.exit_code == 0, found.output
    assert "dmd" in [row["model"] for row in json.loads(found.stdout)["evaluations"][-1]["table"]]


def test_dmd_on_a_linear_flow_finds_its_eigenvalues() -> None:
    pytest.importorskip("pydmd")
    from dashi.flow.proxy._dmd import Dmd
    from dashi.flow.proxy.encode import encode
    from dashi.flow.windows import Windows

    flow = Flow(16, dtype="float64")
    line = np.arange(16) * flow.dx
    waves = [np.cos(line[None, :] + 0 * line[:, None]), np.cos(2 * line[:, None] + line[None, :])]
    fields = np.stack([sum(a**t * w for a, w in zip((0.9, 0.7), waves, strict=True)) for t in range(8)])
    windows = Windows(flow, 10, fields[None], (1,), (0,))
    schema = Schema(16, 4)
    with CpuDevice() as device:
        made = Dmd.fit(schema, windows, None, device=device, rank=2)
        z = encode(schema, fields, device=device)
        np.testing.assert_allclose(made.rollout(z[:1], 7, device=device)[0, :, : schema.numbers], z[:, :-4], atol=1e-9)
    assert "rank 2" in made.description


def test_dmd_chooses_its_rank_as_ridge_chooses_its_penalty() -> None:
    """Least squares over the same pairs, one cut by rank and one damped: neither may be far behind the other."""
    pytest.importorskip("pydmd")
    from dashi.flow.proxy._dmd import Dmd
    from dashi.flow.proxy._linear import Ridge
    from dashi.flow.proxy.carried import encoded, validation_score

    flow, schema = Flow(64, nu=2e-3, dt=0.02, scheme="etdrk4"), Schema(64, 8)
    with CpuDevice() as cpu:
        train, validation, test = (
            windows_of(flow, seeds, device=cpu, steps=100, interval=5, spin_up=50, host_fft=True)
            for seeds in ([1, 2, 3, 4, 5, 6], [11, 12], [21, 22, 23])
        )
        z = encoded(schema, test, device=cpu)
        score = {
            kind.name: validation_score(
                schema, kind.fit(schema, train, validation, device=cpu).rollout(z[:, 0], 20, device=cpu), z
            )
            for kind in (Dmd, Ridge)
        }
    assert score["dmd"] >= score["ridge"] / 2 > 0, score


def test_a_dmd_that_is_not_finite_is_refused() -> None:
    from dashi.flow.proxy._dmd import Dmd

    schema = Schema(16, 2)
    held = schema.parts["modes"].stop
    model = Dmd(schema, 0.1, np.ones((held, 2), np.complex128), np.ones(2, np.complex128))
    for name, values in model.arrays.items():
        spoilt = {**model.arrays, name: np.full_like(values, np.nan)}
        with pytest.raises(InputError, match=f"{name}.*not finite.*Fix: "):
            Dmd.restore(schema, 0.1, spoilt, {})


def test_without_pydmd_the_other_baselines_are_fitted_and_it_is_told(here: Path, no_pydmd: None) -> None:
    found = dashi(FIT, "--out m.npz --seeds 1 --validation-seeds 0")
    assert found.exit_code == 0, found.output
    assert "pip install 'dashi-compute[dmd]'" in found.stderr
    assert set(load_fit(here / "m.npz").baselines) == {"persistence", "damped", "truncation"}
    asked = dashi(FIT, "--out n.npz --seeds 1 --validation-seeds 0 --baseline dmd")
    assert asked.exit_code == 3
    assert "PyDMD is not installed" in asked.stderr
    assert not (here / "n.npz").exists()


def test_a_fit_from_a_run_splits_its_members(here: Path) -> None:
    words = "flow simulate --n 32 --nu 0.005 --dt 0.02 --set peak=3 --device cpu --fast --steps 60 --members 3 --seed 4"
    assert dashi(words, "--frame-every 5 --out run").exit_code == 0
    found = dashi("flow fit --from run --train-steps 40 --spin-up 10 --k-cut 5 --device cpu --out m.npz --json")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert (told["seeds"], told["validation_seeds"]) == ([4, 5], [6])
    chosen = dashi("flow fit --from run --train-steps 40 --train-seed 5 --seeds 1 --k-cut 5 --device cpu --out n.npz")
    assert chosen.exit_code == 0, chosen.output
    training = load_fit(here / "n.npz").training
    assert training is not None
    assert (training.seeds, training.validation_seeds) == ((5,), (4,))
    missing = dashi("flow fit --from run --train-steps 40 --train-seed 9 --k-cut 5 --device cpu --out o.npz")
    assert missing.exit_code == 3
    assert "no seed 9; it has 4, 5, 6" in missing.stderr
    scored = dashi("flow evaluate n.npz --from run --start 10 --eval-steps 40 --eval-seed 6 --seeds 1 --device cpu")
    assert scored.exit_code == 0, scored.output
    again = dashi("flow evaluate n.npz --from run --start 10 --eval-steps 40 --device cpu")
    assert again.exit_code == 3
    assert "overlap" in again.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--model nothing", "there is no model 'nothing'"),
        ("--baseline nothing", "there is no baseline 'nothing'"),
        ("--option factor", "is not NAME=VALUE"),
        ("--option nothing=1", "has no option 'nothing'"),
        ("--train-steps 42", "use 40 or 45 steps"),
        ("--train-steps 0", "--train-steps is 0"),
        ("--spin-up -1", "--spin-up is -1"),
        ("--k-cut 40", "k_cut is 40"),
        ("--n 31", "n = 31"),
    ],
)
def test_what_cannot_be_fitted_is_told_and_nothing_is_written(here: Path, words: str, said: str) -> None:
    found = dashi(FIT, "--out m.npz --seeds 1 --validation-seeds 0", words)
    assert found.exit_code == 3, found.output
    assert said in found.stderr
    assert "Fix: " in found.stderr
    assert not (here / "m.npz").exists()


@pytest.mark.parametrize(("source", "said"), [("nowhere", "there is no nowhere"), ("nowhere.nc", "there is no file")])
def test_data_that_are_not_there_are_told(here: Path, source: str, said: str) -> None:
    found = dashi(f"flow fit --from {source} --k-cut 5 --device cpu --out m.npz")
    assert found.exit_code == 3, found.output
    assert said in found.stderr
    assert not (here / "m.npz").exists()


def test_a_file_that_is_no_model_is_not_written_over(here: Path) -> None:
    (here / "m.npz").write_text("mine")
    found = dashi(FIT, "--out m.npz")
    assert found.exit_code == 3
    assert "is no model" in found.stderr
    assert (here / "m.npz").read_text() == "mine"


def test_a_netcdf_file_is_fitted_and_scored_as_well(here: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    words = "flow simulate --n 32 --nu 0.005 --dt 0.02 --set peak=3 --device cpu --fast --steps 90 --frame-every 5"
    assert dashi(words, "--members 2 --out run").exit_code == 0
    with xarray.open_zarr(here / "run" / "fields.zarr") as data:
        bare = data[["vorticity"]].load()
    for variable in (bare, bare["vorticity"], bare["x"], bare["y"], bare["time"]):
        variable.attrs = {}
    bare.drop_vars("member").to_netcdf(here / "mine.nc", engine="scipy")
    words = "flow fit --from mine.nc --nu 0.005 --dt 0.02 --train-steps 40 --k-cut 5 --device cpu --out m.npz --json"
    found = dashi(words)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["seeds"] == [-1]
    again = dashi("flow evaluate m.npz --from mine.nc --eval-steps 40 --device cpu")
    assert again.exit_code == 3
    assert "frames are the very same" in again.stderr


def test_ctrl_c_while_a_baseline_is_fitted_keeps_the_model(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.flow.proxy._persistence import Damped

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Damped, "fit", stop)
    found = dashi(FIT, "--out m.npz --seeds 1 --json")
    assert found.exit_code == 130, found.output
    told = json.loads(found.stdout)
    assert (told["stopped"], told["file"], told["baselines"]) == (True, "m.stopped.npz", ["persistence"])
    assert not (here / "m.npz").exists()
    fit = load_fit(here / "m.stopped.npz")
    assert fit.model.name == "galerkin"
    assert list(fit.baselines) == ["persistence"]
    # What is there stays: the next one that is stopped lies beside it, and says so.
    (here / "m.stopped.npz").rename(here / "m.npz")
    before = (here / "m.npz").read_bytes()
    again = dashi(FIT, "--out m.npz --seeds 1")
    assert again.exit_code == 130, again.output
    assert "the model is whole and in m.stopped.npz; m.npz stays as it was" in again.stderr
    assert (here / "m.npz").read_bytes() == before
    assert load_model(here / "m.stopped.npz").name == "galerkin"
    # So does what lies beside it, be it such a model or a file of somebody else.
    (here / "m.stopped-2.npz").write_text("mine")
    before = (here / "m.stopped.npz").read_bytes()
    assert json.loads(dashi(FIT, "--out m.npz --seeds 1 --json").stdout)["file"] == "m.stopped-3.npz"
    assert (here / "m.stopped.npz").read_bytes() == before
    assert (here / "m.stopped-2.npz").read_text() == "mine"


def test_ctrl_c_while_data_are_simulated_writes_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.flow.simulation import simulate
    from dashi.flow.windows import simulated

    def stopped(*words: Any, **more: Any) -> Any:
        raise Interrupted(simulate(*words, **more))

    monkeypatch.setattr(simulated, "simulate", stopped)
    found = dashi(FIT, "--out m.npz --seeds 1 --json")
    assert found.exit_code == 130, found.output
    assert json.loads(found.stdout) == {"file": None, "model": "galerkin", "stopped": True}
    assert "nothing was written: the model was not fitted yet" in found.stderr
    assert [*here.iterdir()] == []


def test_ctrl_c_while_the_last_model_is_scored_stops_the_fit(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.flow.proxy._persistence import Persistence

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Persistence, "rollout", stop)
    found = dashi(FIT, "--out m.npz --seeds 1 --baseline persistence --json")
    assert found.exit_code == 130, found.output
    told = json.loads(found.stdout)
    assert told["stopped"]
    assert [one["split"] for one in told["evaluations"]] == ["train"]
    assert load_model(here / "m.stopped.npz").name == "galerkin"


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_the_help_has_an_example(command: str) -> None:
    found = dashi(f"flow {command} --help")
    assert found.exit_code == 0
    assert f"dashi flow {command}" in found.stdout.split("Example:")[1]


def test_a_copy_of_a_model_is_the_model(fitted: Path, tmp_path: Path) -> None:
    shutil.copy(fitted, tmp_path / "copy.npz")
    assert load_fit(tmp_path / "copy.npz").model.description == load_fit(fitted).model.description
