"""Claims about fits: what is refused is refused before the work, and nothing asked for is passed over."""

from __future__ import annotations

import errno
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.errors import DashiError, FileError, InputError
from dashi.flow import Flow
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.proxy.catalogue import load_model
from dashi.io import _files as files
from dashi.io.arrays import read_arrays, write_arrays
from dashi.lab._capacity import require_memory

NU: dict[str, Any] = {"nu": 0.01, "dt": 0.02}
FLOW = Flow(16, **NU, scheme="etdrk4")


def fit(out: str = "m.npz", **asked: Any) -> lab.FittedModel:
    plain: dict[str, Any] = {
        "flow": FLOW, "train": (0,), "validate": 0, "train_steps": 10, "frame_every": 5, "spin_up": 0, "k_cut": 3,
        "initial_options": {"peak": 2}, "host_fft": True,
    }  # fmt: skip
    return lab.fit(lab.FitRequest(**{**plain, **asked}), device="cpu", out=out)


def fit_record(source: str, out: str = "m.npz", **asked: Any) -> lab.FittedModel:
    return lab.fit(lab.FitRequest(source=source, **{"train_steps": 10, "k_cut": 3, **asked}), device="cpu", out=out)


def simulate(out: Path | str, **asked: Any) -> None:
    plain: dict[str, Any] = {"flow": Flow(16, **NU), "steps": 20, "frame_every": 5, "host_fft": True}
    lab.simulate(lab.SimulateRequest(**{**plain, **asked}), device="cpu", out=out)


def refused(out: str = "m.npz", **asked: Any) -> str:
    with pytest.raises(DashiError) as error:
        fit(out, **asked)
    return str(error.value)


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is simulated, read or fitted is a failure."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("work was done before it was refused")

    for name in ("simulate_windows", "read_with_remarks", "fit_model"):
        monkeypatch.setattr(f"dashi.lab.fits.{name}", never)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of the seeds 4, 5 and 6, with a frame every 5 steps."""
    out = tmp_path_factory.mktemp("flow") / "run"
    simulate(out, seeds=(4, 5, 6), initial_options={"peak": 2})
    return str(out)


def option(model: str = "galerkin", **options: Any) -> dict[str, Any]:
    return {"model": model, "model_options": options}


OWN_VISCOSITY = Flow(16, **NU, smagorinsky=0.17)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (option(foo=3), "the model galerkin has no option 'foo'. Fix: use factor, strategy"),
        (
            option(factor="nan"),
            "the option factor of the model galerkin is 'nan'. Fix: use a finite number, 0 or more.",
        ),
        (option(factor=float("inf")), "the option factor of the model galerkin is"),
        (option(factor=int("9" * 400)), "Fix: use a finite number, 0 or more."),
        (option(strategy="sideways"), "Fix: use one of auto, grid, triads, numpy."),
        (option("delay", delays=9), "Fix: use 1 to 2 delays."),
        (option("delay", delays=1.5), "Fix: use a whole number, 1 or more."),
        (option("ridge", penalty=-1), "Fix: use a finite number, 0 or more."),
        (option("slaved", depth=9), "Fix: use a whole number from 1 to 4."),
        (option("slaved", rate=-1), "rate is -1. Fix: use a positive number."),
        ({"model": "slaved", "flow": OWN_VISCOSITY}, "the flow has an eddy viscosity of its own"),
        ({"baselines": ("slaved",), "flow": OWN_VISCOSITY}, "the flow has an eddy viscosity of its own"),
        (option("dmd", rank=0), "Fix: use a whole number, 1 or more."),
        (option("perfect", x=1), "leave it away: the model has none."),
        ({"k_cut": float("nan")}, "k_cut is nan."),
        ({"anchors": 999}, "999 anchors were asked for; the mid band of 3 to 4.5 has 20 modes."),
        ({"train_steps": 5 * 10**12}, "Fix: use fewer seeds or `windows=`, a shorter `train_steps=`"),
        ({"initial": "start.npy"}, "`initial_options=` goes with a named initial condition."),
    ],
)
def test_nothing_is_done_before_it_is_refused(here: Path, no_work: None, asked: dict[str, Any], said: str) -> None:
    if asked.get("model") == "dmd":
        pytest.importorskip("pydmd")  # without it, that is what is told
    assert said in refused(**asked)
    assert [*here.iterdir()] == []


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("m.npz/m.npz", "m.npz is no folder. Fix: choose another place."),
        (".", ". cannot be written: it is a folder. Fix: name a file."),
        ("x" * 250, "cannot be written: File name too long."),
        ("loop", "cannot be written: "),
        ("dangling", "leads nowhere. Fix: choose another place."),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_first(here: Path, no_work: None, out: str, said: str) -> None:
    (here / "loop").symlink_to("loop")
    (here / "dangling").symlink_to("nowhere/m.npz")
    (here / "m.npz").write_text("mine")
    assert said in refused(out)
    assert {path.name for path in here.iterdir()} == {"m.npz", "loop", "dangling"}


def test_dmd_without_pydmd_is_refused_first(here: Path, no_work: None, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "pydmd", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "pydmd" else real(name, *a))
    assert "PyDMD is not installed" in refused(model="dmd")
    assert "PyDMD is not installed" in refused(baselines=("dmd",))


def test_a_read_only_place_is_refused_first(here: Path, no_work: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files, "open_part", denied)  # root may write everywhere
    told = refused()
    assert (
        told
        == "m.npz cannot be written: Permission denied. Fix: get permission to write there, or choose another place."
    )


def test_memory_is_asked_for_only_where_there_is_so_much() -> None:
    require_memory(1, "it", "fix.")
    with pytest.raises(InputError, match=r"it take about 512 TiB; this machine has .* of memory. Fix: fix."):
        require_memory(1 << 49, "it", "fix.")


# ---- recorded data


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        (Flow(16, **NU, length=1.0), "has length = 6.28"),
        (Flow(16, **NU, dtype="float64"), "has dtype = float32, and `dtype=` says float64."),
    ],
)
def test_flows_that_contradict_a_run_are_refused(here: Path, run: str, flow: Flow, said: str) -> None:
    with pytest.raises(InputError, match=said):
        fit_record(run, flow=flow)
    assert [*here.iterdir()] == []


def test_a_flow_that_says_the_same_as_a_run_passes_and_seeds_choose(here: Path, run: str) -> None:
    result = fit_record(run, flow=Flow(16, **NU), frame_every=5, train=1, baselines=("persistence",))
    training = result.fit.training
    assert training is not None
    assert (training.seeds, training.validation_seeds, result.stopped) == ((4,), (5,), False)


def test_seeds_choose_nothing_where_none_is_known(here: Path) -> None:
    np.save(here / "start.npy", np.random.default_rng(0).standard_normal((16, 16)))
    simulate("run", initial="start.npy")
    for train in ((1,), 1):
        with pytest.raises(
            InputError, match=r"seed made it, so none can be chosen. Fix: leave seeds to train on away."
        ):
            fit_record("run", train=train)


# ---- an initial condition from a file


def test_a_flow_that_starts_from_a_file_is_fitted(here: Path) -> None:
    fields = np.random.default_rng(0).standard_normal((3, 16, 16))
    np.save(here / "start.npy", fields)
    asked: dict[str, Any] = {"initial": "start.npy", "initial_options": {}, "baselines": ("persistence",)}
    fit(**asked, train=range(2), validate=range(2, 3))
    training = load_fit(here / "m.npz").training
    assert training is not None
    assert (training.initial, training.seeds, training.validation_seeds) == ("start.npy", (-1,), (-1,))
    # The very fields: what is scored on them is refused, wherever it comes from.
    assert len(training.data.digests) == 3 * 3
    simulate("run", flow=FLOW, initial="start.npy", steps=10)
    with pytest.raises(InputError, match="overlap"):
        lab.evaluate(lab.EvaluateRequest(model="m.npz", source="run"), device="cpu")
    told = refused(**asked, train=range(3), validate=range(3, 4))
    assert "holds 3 field(s), and 3 for training and 1 for validation" in told


@pytest.mark.parametrize(
    ("initial", "options", "said"),
    [
        ("random", {"peak": 0}, "there is no initial condition 'random' with peak = 0."),
        ("random", {"speed": 1e300}, "there is no initial condition 'random' with speed = 1e+300."),
        ("lamb-dipole", {"radius": 0}, "there is no initial condition 'lamb-dipole' with radius = 0."),
        ("text.npy", {}, "the field holds <U1, and no numbers. Fix: save it as float32 or float64."),
        ("line.npy", {}, "the field has shape (3,), the flow 16 x 16 points. Fix: pass fields (n, n) or"),
        ("wide.npy", {}, "Fix: pass fields (n, n) or (members, n, n), or use n = 8."),
        ("empty.npy", {}, "is neither an .npz nor an .npy file"),
    ],
)
def test_a_start_that_is_none_is_told(here: Path, initial: str, options: dict[str, Any], said: str) -> None:
    np.save(here / "text.npy", np.full((16, 16), "a"))
    np.save(here / "line.npy", np.zeros(3))
    np.save(here / "wide.npy", np.zeros((8, 8)))
    (here / "empty.npy").touch()
    assert said in refused(initial=initial, initial_options=options)
    assert not (here / "m.npz").exists()


# ---- files


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("note_training_seen_spans", np.nan),
        ("note_training_seen_spans", np.inf),
        ("note_training_seen_seeds", np.nan),
    ],
)
def test_what_was_seen_must_be_numbers(fitted: Path, tmp_path: Path, name: str, value: float) -> None:
    arrays = read_arrays(fitted)
    arrays[name] = np.full(arrays[name].shape, value, np.float64)
    write_arrays(tmp_path / "odd.npz", arrays)
    with pytest.raises(FileError, match=r"damaged: what was seen .*Fix: fit it again"):
        load_fit(tmp_path / "odd.npz")


def test_a_flow_that_lacks_a_parameter_is_not_completed(fitted: Path, tmp_path: Path) -> None:
    arrays = read_arrays(fitted)
    head = json.loads(bytes(np.asarray(arrays["note_training_head"])))
    del head["flow"]["nu"]
    arrays["note_training_head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    write_arrays(tmp_path / "odd.npz", arrays)
    with pytest.raises(FileError, match="'nu' is missing"):
        load_fit(tmp_path / "odd.npz")


def test_a_dmd_model_is_loaded_rolled_out_and_evaluated(here: Path, run: str) -> None:
    pytest.importorskip("pydmd")
    fit(model="dmd", train=(0, 1), baselines=("persistence",))
    assert load_model(here / "m.npz").name == "dmd"
    asked = lab.EvaluateRequest(model="m.npz", host_fft=True, seeds=1, steps=10)
    assert "dmd" in [line.model for line in lab.evaluate(asked, device="cpu").evaluations[-1].lines]
    rolled = lab.follow(lab.FollowRequest(model="m.npz", start=run, steps=3, stage_times=False), device="cpu")
    assert rolled.metrics.operator == "dmd"
