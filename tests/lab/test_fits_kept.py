"""Claims about the file of a fit: model, baselines, where the data came from; and what Ctrl-C leaves of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.errors import DashiError, FileError, InputError, Interrupted
from dashi.flow import Flow
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.proxy.catalogue import load_model
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows.simulated import windows_of
from dashi.runtime._cpu_device import CpuDevice

FLOW = Flow(32, nu=5e-3, dt=0.02, scheme="etdrk4")


def fit(out: str = "m.npz", *, events: Any = lab.SILENT, **asked: Any) -> lab.FittedModel:
    plain: dict[str, Any] = {
        "flow": FLOW, "train": (1,), "validate": range(2, 3), "train_steps": 40, "frame_every": 5, "spin_up": 20,
        "initial_options": {"peak": 3}, "k_cut": 5, "host_fft": True,
    }  # fmt: skip
    return lab.fit(lab.FitRequest(**{**plain, **asked}), device="cpu", out=out, events=events)


def fit_record(source: str, out: str = "m.npz", **asked: Any) -> lab.FittedModel:
    return lab.fit(lab.FitRequest(source=source, **{"train_steps": 40, "k_cut": 5, **asked}), device="cpu", out=out)


def stopped(out: str = "m.npz", **asked: Any) -> lab.FittedModel | None:
    """A fit that Ctrl-C ends: what it has."""
    with pytest.raises(Interrupted) as stop:
        fit(out, **asked)
    return stop.value.partial


def simulate(out: str, **asked: Any) -> None:
    request = lab.SimulateRequest(
        flow=Flow(32, nu=5e-3, dt=0.02), initial_options={"peak": 3}, host_fft=True, frame_every=5, **asked
    )
    lab.simulate(request, device="cpu", out=out)


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
    asked = lab.EvaluateRequest(model=fitted, first_seed=9, seeds=1, steps=40, host_fft=True)
    assert "dmd" in [line.model for line in lab.evaluate(asked, device="cpu").evaluations[-1].lines]


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
        model = Dmd.fit(schema, windows, None, device=device, rank=2)
        z = encode(schema, fields, device=device)
        np.testing.assert_allclose(model.rollout(z[:1], 7, device=device)[0, :, : schema.numbers], z[:, :-4], atol=1e-9)
    assert "rank 2" in model.description


def test_dmd_chooses_its_rank_as_ridge_chooses_its_penalty() -> None:
    """Least squares over the same pairs, one cut by rank and one damped: neither may be far behind the other."""
    pytest.importorskip("pydmd")
    from dashi.flow.proxy._dmd import Dmd
    from dashi.flow.proxy._linear import Ridge
    from dashi.flow.proxy.states import encoded, validation_score

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


def test_without_pydmd_the_other_baselines_are_fitted_and_it_is_told(here: Path, no_pydmd: None, heard: Any) -> None:
    fit(validate=0, events=heard)
    assert any("pip install 'dashi-compute[dmd]'" in line for line in heard.remarks)
    assert set(load_fit(here / "m.npz").baselines) == {"persistence", "damped", "truncation"}
    with pytest.raises(InputError, match="PyDMD is not installed"):
        fit("n.npz", validate=0, baselines=("dmd",))
    assert not (here / "n.npz").exists()


def test_a_fit_from_a_run_splits_its_members(here: Path) -> None:
    simulate("run", steps=60, seeds=(4, 5, 6))
    first = fit_record("run", spin_up=10).fit.training
    assert first is not None
    assert (first.seeds, first.validation_seeds) == ((4, 5), (6,))
    fit_record("run", "n.npz", train=(5,))
    training = load_fit(here / "n.npz").training
    assert training is not None
    assert (training.seeds, training.validation_seeds) == ((5,), (4,))
    with pytest.raises(InputError, match="no seed 9; it has 4, 5, 6"):
        fit_record("run", "o.npz", train=(9, 10))
    asked: dict[str, Any] = {"model": "n.npz", "source": "run", "start": 10, "steps": 40}
    assert lab.evaluate(lab.EvaluateRequest(**asked, first_seed=6, seeds=1), device="cpu").evaluations
    with pytest.raises(InputError, match="overlap"):
        lab.evaluate(lab.EvaluateRequest(**asked), device="cpu")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"baselines": ("nothing",)}, "there is no baseline 'nothing'"),
        ({"train_steps": 42}, "use 40 or 45 steps"),
        ({"spin_up": -1}, "`spin_up=` is -1"),
    ],
)
def test_what_cannot_be_fitted_is_told_and_nothing_is_written(here: Path, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(DashiError, match=said):
        fit(validate=0, **asked)
    assert not (here / "m.npz").exists()


@pytest.mark.parametrize(("source", "said"), [("nowhere", "there is no nowhere"), ("nowhere.nc", "there is no file")])
def test_data_that_are_not_there_are_told(here: Path, source: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        fit_record(source)
    assert not (here / "m.npz").exists()


def test_a_file_that_is_no_model_is_not_written_over(here: Path) -> None:
    (here / "m.npz").write_text("mine")
    with pytest.raises(FileError, match="is no model"):
        fit()
    assert (here / "m.npz").read_text() == "mine"


def test_a_netcdf_file_is_fitted_and_scored_as_well(here: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    simulate("run", steps=90, seeds=(0, 1))
    with xarray.open_zarr(here / "run" / "fields.zarr") as data:
        bare = data[["vorticity"]].load()
    for variable in (bare, bare["vorticity"], bare["x"], bare["y"], bare["time"]):
        variable.attrs = {}
    bare.drop_vars("member").to_netcdf(here / "mine.nc", engine="scipy")
    stated = frozenset({"nu", "dt"})
    training = fit_record("mine.nc", flow=Flow(32, nu=5e-3, dt=0.02), stated=stated).fit.training
    assert training is not None
    assert training.seeds == (-1,)
    with pytest.raises(InputError, match="frames are the very same"):
        lab.evaluate(lab.EvaluateRequest(model="m.npz", source="mine.nc", steps=40), device="cpu")


def test_ctrl_c_while_a_baseline_is_fitted_keeps_the_model(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.flow.proxy._persistence import Damped

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Damped, "fit", stop)
    partial = stopped()
    assert partial is not None
    assert (partial.stopped, partial.path, [*partial.fit.baselines]) == (True, Path("m.stopped.npz"), ["persistence"])
    assert not (here / "m.npz").exists()
    fit = load_fit(here / "m.stopped.npz")
    assert fit.model.name == "galerkin"
    assert list(fit.baselines) == ["persistence"]
    # What is there stays: the next one that is stopped lies beside it, and says so.
    (here / "m.stopped.npz").rename(here / "m.npz")
    before = (here / "m.npz").read_bytes()
    again = stopped()
    assert again is not None
    assert again.path == Path("m.stopped.npz")
    assert (here / "m.npz").read_bytes() == before
    assert load_model(here / "m.stopped.npz").name == "galerkin"
    # So does what lies beside it, be it such a model or a file of somebody else.
    (here / "m.stopped-2.npz").write_text("mine")
    before = (here / "m.stopped.npz").read_bytes()
    third = stopped()
    assert third is not None
    assert third.path == Path("m.stopped-3.npz")
    assert (here / "m.stopped.npz").read_bytes() == before
    assert (here / "m.stopped-2.npz").read_text() == "mine"


def test_ctrl_c_while_data_are_simulated_writes_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.flow.simulation import simulate as solve
    from dashi.flow.windows import simulated

    def stop(*words: Any, **more: Any) -> Any:
        raise Interrupted(solve(*words, **more))

    monkeypatch.setattr(simulated, "simulate", stop)
    assert stopped() is None
    assert [*here.iterdir()] == []


def test_ctrl_c_while_the_last_model_is_scored_stops_the_fit(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.flow.proxy._persistence import Persistence

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Persistence, "rollout", stop)
    partial = stopped(baselines=("persistence",))
    assert partial is not None
    assert partial.stopped
    assert [one.split for one in partial.fit.evaluations] == ["train"]
    assert load_model(here / "m.stopped.npz").name == "galerkin"


def test_a_copy_of_a_model_is_the_model(fitted: Path, tmp_path: Path) -> None:
    shutil.copy(fitted, tmp_path / "copy.npz")
    assert load_fit(tmp_path / "copy.npz").model.description == load_fit(fitted).model.description
