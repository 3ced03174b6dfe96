"""Claims about `dashi flow fit`: what is refused is refused before the work, and nothing asked for is passed over."""

from __future__ import annotations

import errno
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli import flow_options as o
from dashi.cli.main import app
from dashi.errors import FileError, InputError
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.proxy.catalogue import MODELS, load_model
from dashi.io import _files as files
from dashi.io.arrays import read_arrays, write_arrays
from dashi.lab._capacity import require_memory

SMALL = "--n 16 --nu 0.01 --dt 0.02 --set peak=2 --k-cut 3 --device cpu --fast"
FIT = f"flow fit --train-steps 10 --frame-every 5 --spin-up 0 --seeds 1 --validation-seeds 0 {SMALL} --out m.npz"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


def refused(*words: str) -> str:
    found = dashi(*words, "--json")
    assert found.exit_code == 3, found.output
    error = json.loads(found.stdout)["error"]
    return f"{error['what']} Fix: {error['fix']}"


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
    words = "flow simulate --n 16 --nu 0.01 --dt 0.02 --set peak=2 --device cpu --fast --steps 20 --members 3 --seed 4"
    assert dashi(words, f"--frame-every 5 --out {out}").exit_code == 0
    return str(out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--option foo=3", "the model galerkin has no option 'foo'. Fix: use factor, strategy"),
        (
            "--option factor=nan",
            "the option factor of the model galerkin is 'nan'. Fix: use a finite number, 0 or more.",
        ),
        ("--option factor=1e999", "the option factor of the model galerkin is"),
        ("--option strategy=sideways", "Fix: use one of auto, grid, triads, numpy."),
        ("--model delay --option delays=9", "Fix: use 1 to 2 delays."),
        ("--model delay --option delays=1.5", "Fix: use a whole number, 1 or more."),
        ("--model ridge --option penalty=-1", "Fix: use a finite number, 0 or more."),
        ("--model slaved --option depth=9", "Fix: use a whole number from 1 to 4."),
        ("--model slaved --option rate=-1", "rate is -1. Fix: use a positive number."),
        ("--model slaved --smagorinsky 0.17", "the flow has an eddy viscosity of its own"),
        ("--baseline slaved --smagorinsky 0.17", "the flow has an eddy viscosity of its own"),
        ("--model dmd --option rank=0", "Fix: use a whole number, 1 or more."),
        ("--model perfect --option x=1", "leave it away: the model has none."),
        ("--k-cut nan", "k_cut is nan."),
        ("--anchors 999", "999 anchors were asked for; the mid band of 3 to 4.5 has 20 modes."),
        ("--seeds 100000000000", "this machine has"),
        ("--train-steps 5000000000000", "Fix: use fewer seeds or --windows, a shorter --train-steps"),
        ("--seeds 1000000000000000000000000000000", "take more than anything holds"),
        ("--out m.npz/m.npz", "m.npz is no folder. Fix: choose another place."),
        ("--out .", ". cannot be written: it is a folder. Fix: name a file."),
        (f"--out {'x' * 250}", "cannot be written: File name too long."),
        ("--out loop", "cannot be written: "),
        ("--out dangling", "leads nowhere. Fix: choose another place."),
        ("--initial start.npy", "--set goes with a named initial condition."),
        ("--option factor=1 --option factor=2", "--option factor is given twice."),
        (f"--option factor={'9' * 400}", "Fix: use a finite number, 0 or more."),
    ],
)
def test_nothing_is_done_before_it_is_refused(here: Path, no_work: None, words: str, said: str) -> None:
    (here / "loop").symlink_to("loop")
    (here / "dangling").symlink_to("nowhere/m.npz")
    if "m.npz/m.npz" in words:
        (here / "m.npz").write_text("mine")
    if "dmd" in words:
        pytest.importorskip("pydmd")  # without it, that is what is told
    assert said in refused(FIT, words)
    assert {path.name for path in here.iterdir()} <= {"m.npz", "loop", "dangling"}


def test_dmd_without_pydmd_is_refused_first(here: Path, no_work: None, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "pydmd", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "pydmd" else real(name, *a))
    for words in ("--model dmd", "--baseline dmd"):
        assert "PyDMD is not installed" in refused(FIT, words)


def test_a_read_only_place_is_refused_first(here: Path, no_work: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files, "open_part", denied)  # root may write everywhere
    told = refused(FIT)
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
    ("words", "said"),
    [
        ("--n 32", "has n = 16, and --n says 32. Fix: leave --n away"),
        ("--nu 0.5", "has nu = 0.01, and --nu says 0.5."),
        ("--length 1", "has length = 6.28"),
        ("--dtype float64", "has dtype = float32, and --dtype says float64."),
        ("--forcing kolmogorov", "has forcing = none, and --forcing says kolmogorov."),
        ("--frame-every 4", "has a frame every 5 steps, and --frame-every says 4."),
        ("--seeds 9", "the record has no seed 7; it has 4, 5, 6."),
        ("--fast", "--fast is for simulations, and --from reads what is there."),
        ("--set peak=3", "--set is for simulations"),
        ("--initial random", "--initial is for simulations"),
    ],
)
def test_options_that_contradict_a_run_are_refused(here: Path, run: str, words: str, said: str) -> None:
    fit = f"flow fit --from {run} --train-steps 10 --k-cut 3 --device cpu --out m.npz"
    assert said in refused(fit, words)
    assert [*here.iterdir()] == []


def test_options_that_say_the_same_as_a_run_pass_and_seeds_choose(here: Path, run: str) -> None:
    fit = f"flow fit --from {run} --train-steps 10 --k-cut 3 --device cpu --baseline persistence --out m.npz"
    found = dashi(fit, "--n 16 --nu 0.01 --dt 0.02 --frame-every 5 --scheme rk4 --forcing none --seeds 1 --json")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert (told["seeds"], told["validation_seeds"], told["stopped"]) == ([4], [5], False)


def test_seeds_choose_nothing_where_none_is_known(here: Path) -> None:
    np.save(here / "start.npy", np.random.default_rng(0).standard_normal((16, 16)))
    words = "flow simulate --n 16 --nu 0.01 --dt 0.02 --initial start.npy --device cpu --fast --steps 20"
    assert dashi(words, "--frame-every 5 --out run").exit_code == 0
    fit = "flow fit --from run --train-steps 10 --k-cut 3 --device cpu --out m.npz"
    for words in ("--train-seed 1", "--seeds 1"):
        assert "which seed made it, so none can be chosen. Fix: leave seeds to train on away." in refused(fit, words)


# ---- an initial condition from a file


def test_a_flow_that_starts_from_a_file_is_fitted(here: Path) -> None:
    fields = np.random.default_rng(0).standard_normal((3, 16, 16))
    np.save(here / "start.npy", fields)
    words = "flow fit --train-steps 10 --frame-every 5 --spin-up 0 --n 16 --nu 0.01 --dt 0.02 --k-cut 3 --device cpu"
    fit = f"{words} --fast --baseline persistence --initial start.npy --out m.npz"
    found = dashi(fit, "--seeds 2 --validation-seeds 1")
    assert found.exit_code == 0, found.output
    training = load_fit(here / "m.npz").training
    assert training is not None
    assert (training.initial, training.seeds, training.validation_seeds) == ("start.npy", (-1,), (-1,))
    # The very fields: what is scored on them is refused, wherever it comes from.
    assert len(training.data.digests) == 3 * 3
    assert dashi("flow simulate --n 16 --nu 0.01 --dt 0.02 --initial start.npy --scheme etdrk4 --device cpu --fast",
                 "--steps 10 --frame-every 5 --out run").exit_code == 0  # fmt: skip
    assert "overlap" in refused("flow evaluate m.npz --from run --device cpu")
    assert "holds 3 field(s), and 3 for training and 1 for validation" in refused(fit, "--seeds 3")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--set peak=0", "there is no initial condition 'random' with peak = 0."),
        ("--set speed=1e300", "there is no initial condition 'random' with speed = 1e+300."),
        ("--initial lamb-dipole --set radius=0", "there is no initial condition 'lamb-dipole' with radius = 0."),
        ("--set peak=1 --set peak=2", "--set peak is given twice."),
        (f"--set peak={'9' * 400}", "is not NAME=NUMBER."),
        ("--initial text.npy", "the field holds <U1, and no numbers. Fix: save it as float32 or float64."),
        ("--initial line.npy", "the field has shape (3,), the flow 16 x 16 points. Fix: pass fields (n, n) or"),
        ("--initial wide.npy", "Fix: pass fields (n, n) or (members, n, n), or use n = 8."),
        ("--initial empty.npy", "is neither an .npz nor an .npy file"),
    ],
)
def test_a_start_that_is_none_is_told(here: Path, words: str, said: str) -> None:
    np.save(here / "text.npy", np.full((16, 16), "a"))
    np.save(here / "line.npy", np.zeros(3))
    np.save(here / "wide.npy", np.zeros((8, 8)))
    (here / "empty.npy").touch()
    fit = FIT.replace("--set peak=2 ", "")
    assert said in refused(fit, words)
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
    fit = dashi(FIT, "--model dmd --seeds 2 --baseline persistence")
    assert fit.exit_code == 0, fit.output
    assert load_model(here / "m.npz").name == "dmd"
    scored = dashi("flow evaluate m.npz --device cpu --fast --seeds 1 --eval-steps 10 --json")
    assert scored.exit_code == 0, scored.output
    assert "dmd" in [row["model"] for row in json.loads(scored.stdout)["evaluations"][-1]["table"]]
    rolled = dashi(f"flow rollout --model m.npz --from {run} --steps 3 --device cpu --no-stage-times --json")
    assert rolled.exit_code == 0, rolled.output
    assert json.loads(rolled.stdout)["operator"] == "dmd"


# ---- the options of a flow, declared once


def test_simulate_and_fit_take_the_same_options_of_a_flow() -> None:
    shown = {name: dashi(f"flow {name} --help").stdout for name in ("simulate", "fit")}
    written = ["--n", "--dt", "--nu", "--drag", "--length", "--smagorinsky", "--scheme", "--dtype", "--forcing",
               "--force", "--initial", "--set"]  # fmt: skip
    assert len(written) == len(o.FLOW)
    for text in shown.values():
        assert all(f"\n  {option} " in text for option in written)
    assert "[default: rk4]" in shown["simulate"]
    assert "[default: etdrk4]" in shown["fit"]


def test_the_help_of_fit_names_every_model() -> None:
    told = " ".join(dashi("flow fit --help").stdout.split())
    assert all(name in told.split("--model NAME")[1].split("--option")[0] for name in MODELS)
