"""Claims about fits as a job: what is refused is refused before the work, what is fitted is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from dashi import lab
from dashi.errors import DashiError, FileError, InputError, Interrupted
from dashi.flow import Flow, Kolmogorov
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.proxy._persistence import Damped
from dashi.lab import _fit_files as fit_files

FLOW = Flow(n=16, nu=0.01, dt=0.02)


def request(**more: Any) -> lab.FitRequest:
    asked: dict[str, Any] = {
        "model": "persistence", "flow": FLOW, "train": (1,), "validate": 0, "train_steps": 10, "frame_every": 5,
        "spin_up": 0, "k_cut": 3, "initial_options": {"peak": 2}, "baselines": ("damped",), "host_fft": True, **more,
    }  # fmt: skip
    return lab.FitRequest(**asked)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the seeds 4, 5 and 6, with a frame every 5 steps."""
    out = tmp_path_factory.mktemp("flow") / "run"
    asked = lab.SimulateRequest(
        flow=FLOW, steps=20, seeds=(4, 5, 6), initial_options={"peak": 2}, frame_every=5, host_fft=True
    )
    lab.simulate(asked, device="cpu", out=out)
    return out


def recorded(run: Path, **more: Any) -> lab.FitRequest:
    plain: dict[str, Any] = {"flow": None, "frame_every": None, "spin_up": None, "initial_options": {}}
    return request(source=run, **{**plain, "train": None, "host_fft": False, **more})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"flow": None}, r"there is nothing to fit a model to. Fix: pass `flow=`, or a record as `source=`."),
        ({"model": "galerkn"}, r"there is no model 'galerkn'. Fix: did you mean galerkin"),
        ({"train_steps": 7}, r"use 5 or 10 steps"),
        ({"train_steps": 0}, r"`train_steps=` is 0. Fix: use 1 or more."),
        ({"train": 0}, r"`train=` is 0. Fix: use 1 or more."),
        ({"train": ()}, r"`train=` is \[\]. Fix: name at least one seed"),
        ({"train": (1, 2), "validate": (2,)}, r"seed 2 is in `train=` and in `validate=`."),
        ({"train": range(10**11)}, r"this machine has .* Fix: use fewer seeds or `windows=`"),
        ({"train": range(10**30)}, r"take more than anything holds"),
        ({"anchors": -1}, r"`anchors=` is -1. Fix: use 0 or more."),
        ({"k_cut": 40}, r"k_cut is 40; a grid of 16 x 16 points keeps wave numbers up to 5."),
        ({"model_options": {"foo": 3}}, r"the model persistence has no option 'foo'."),
        ({"initial": "start.npy"}, r"`initial_options=` goes with a named initial condition."),
        ({"variables": ("w",)}, r"`variables=` names what a NetCDF file or a Zarr store holds."),
    ],
)
def test_nothing_is_done_before_it_is_refused(
    here: Path, asked: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("simulate_windows", "read_with_remarks", "fit_model"):
        monkeypatch.setattr(f"dashi.lab.fits.{name}", pytest.fail)
    with pytest.raises(DashiError, match=said):
        lab.fit(request(**asked), device="cpu", out="m.npz")
    assert [*here.iterdir()] == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"flow": Flow(n=32, nu=0.01, dt=0.02)}, r"has n = 16, and `n=` says 32. Fix: leave `n=` away"),
        ({"flow": Flow(n=16, nu=0.5, dt=0.02)}, r"has nu = 0.01, and `nu=` says 0.5."),
        ({"flow": Flow(n=16, nu=0.01, dt=0.02, forcing=Kolmogorov())}, r"has forcing = none, and `forcing=` says"),
        ({"frame_every": 4}, r"has a frame every 5 steps, and `frame_every=` says 4."),
        ({"train": 9}, r"the record has no seed 7; it has 4, 5, 6."),
        ({"host_fft": True}, r"`host_fft=True` is for simulations, and `source=` reads what is there."),
        ({"initial_options": {"peak": 3}}, r"`initial_options=` is for simulations"),
        ({"initial": "random"}, r"`initial=` is for simulations"),
    ],
)
def test_what_contradicts_a_record_is_refused(run: Path, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        lab.fit(recorded(run, **asked), device="cpu")


def test_only_what_is_stated_of_a_record_must_hold(run: Path) -> None:
    other = Flow(n=16, nu=0.5, dt=0.02)
    fitted = lab.fit(recorded(run, flow=other, stated=frozenset({"n", "dt"}), train=1, validate=1), device="cpu")
    training = fitted.fit.training
    assert training is not None
    assert (training.flow.nu, training.seeds, training.validation_seeds) == (0.01, (4,), (5,))
    assert (fitted.path, fitted.stopped) == (None, False)


def test_ctrl_c_before_the_model_is_fitted_gives_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("dashi.lab.fits.simulate_windows", stop)
    with pytest.raises(Interrupted) as stopped:
        lab.fit(request(), device="cpu", out="m.npz")
    assert stopped.value.partial is None
    assert [*here.iterdir()] == []


def test_ctrl_c_while_a_baseline_is_fitted_gives_the_model(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(Damped, "fit", stop)
    with pytest.raises(Interrupted) as stopped:
        lab.fit(request(), device="cpu", out="m.npz")
    partial = stopped.value.partial
    assert isinstance(partial, lab.FittedModel)
    assert (partial.stopped, partial.path, partial.model.name) == (True, Path("m.stopped.npz"), "persistence")
    assert not load_fit(here / "m.stopped.npz").finished
    assert not (here / "m.npz").exists()


def test_a_full_disk_gives_the_fit_with_the_error(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, fit: Any) -> NoReturn:
        raise FileError(f"{path} cannot be written: No space left on device.", "make room on that disk.")

    monkeypatch.setattr(fit_files, "save_fit", full)
    with pytest.raises(FileError, match=r"Scores are there all the same; the model is in no file. Fix: make") as error:
        lab.fit(request(), device="cpu", out="m.npz")
    result = error.value.result
    assert isinstance(result, lab.FittedModel)
    assert [one.split for one in result.evaluations] == ["train"]
    assert "windows: train (1)" in str(result.table())
