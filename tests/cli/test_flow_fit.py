"""Claims about `dashi flow fit`: what its options mean, what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi import lab
from dashi.cli import flow_options as o
from dashi.cli.main import app
from dashi.errors import Interrupted
from dashi.flow import Flow
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.proxy._persistence import Damped
from dashi.flow.proxy.catalogue import MODELS
from dashi.flow.simulation import simulate
from dashi.flow.windows import simulated

SMALL = "--n 16 --nu 0.01 --dt 0.02 --set peak=2 --k-cut 3 --device cpu --host-fft"
FIT = f"flow fit --train-steps 10 --frame-every 5 --spin-up 0 --seeds 1 --validation-seeds 0 {SMALL} --out m.npz"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


def refused(*words: str) -> str:
    done = dashi(*words, "--json")
    assert done.exit_code == 3, done.output
    error = json.loads(done.stdout)["error"]
    return f"{error['what']} Fix: {error['fix']}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--model nothing", "there is no model 'nothing'"),
        ("--option factor", "is not NAME=VALUE"),
        ("--option nothing=1", "has no option 'nothing'"),
        ("--option factor=nan", "the option factor of the model galerkin is 'nan'."),
        ("--option factor=1e999", "the option factor of the model galerkin is"),
        ("--option factor=1 --option factor=2", "--option factor is given twice."),
        (f"--option factor={'9' * 400}", "Fix: use a finite number, 0 or more."),
        ("--set peak=1 --set peak=2", "--set peak is given twice."),
        (f"--set peak={'9' * 400}", "is not NAME=NUMBER."),
        ("--initial start.npy", "--set goes with a named initial condition."),
        ("--train-steps 0", "--train-steps is 0"),
        ("--train-steps 5000000000000", "Fix: use fewer seeds or --windows, a shorter --train-steps"),
        ("--seeds 100000000000", "this machine has"),
        ("--seeds 1000000000000000000000000000000", "take more than anything holds"),
        ("--k-cut 40", "k_cut is 40"),
        ("--n 31", "n = 31"),
    ],
)
def test_what_cannot_be_fitted_is_told_and_nothing_is_written(here: Path, words: str, said: str) -> None:
    assert said in refused(FIT if "--set" not in words else FIT.replace("--set peak=2 ", ""), words)
    assert [*here.iterdir()] == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of the seeds 4, 5 and 6, with a frame every 5 steps."""
    out = tmp_path_factory.mktemp("flow") / "run"
    request = lab.SimulateRequest(
        flow=Flow(16, nu=0.01, dt=0.02), steps=20, seeds=(4, 5, 6), initial_options={"peak": 2}, frame_every=5,
        host_fft=True,
    )  # fmt: skip
    lab.simulate(request, device="cpu", out=out)
    return str(out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--n 32", "has n = 16, and --n says 32. Fix: leave --n away"),
        ("--nu 0.5", "has nu = 0.01, and --nu says 0.5."),
        ("--forcing kolmogorov", "has forcing = none, and --forcing says kolmogorov."),
        ("--frame-every 4", "has a frame every 5 steps, and --frame-every says 4."),
        ("--seeds 9", "the record has no seed 7; it has 4, 5, 6."),
        ("--host-fft", "--host-fft is for simulations, and --from reads what is there."),
        ("--set peak=3", "--set is for simulations"),
        ("--initial random", "--initial is for simulations"),
    ],
)
def test_options_that_contradict_a_run_are_refused(here: Path, run: str, words: str, said: str) -> None:
    assert said in refused(f"flow fit --from {run} --train-steps 10 --k-cut 3 --device cpu --out m.npz", words)
    assert [*here.iterdir()] == []


def test_only_options_that_stand_on_the_line_must_agree_with_a_run_and_seeds_choose(here: Path, run: str) -> None:
    fit = f"flow fit --from {run} --train-steps 10 --k-cut 3 --device cpu --baseline persistence --out m.npz"
    done = dashi(fit, "--n 16 --nu 0.01 --dt 0.02 --frame-every 5 --scheme rk4 --forcing none --seeds 1 --json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["seeds"], told["validation_seeds"], told["stopped"]) == ([4], [5], False)
    chosen = dashi(fit, "--train-seed 5 --seeds 1")
    assert chosen.exit_code == 0, chosen.output
    training = load_fit(here / "m.npz").training
    assert training is not None
    assert (training.seeds, training.validation_seeds) == ((5,), (4,))


def test_ctrl_c_while_a_baseline_is_fitted_tells_where_the_model_is(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Damped, "fit", stop)
    done = dashi(FIT, "--json")
    assert done.exit_code == 130, done.output
    told = json.loads(done.stdout)
    assert (told["stopped"], told["file"], told["baselines"]) == (True, "m.stopped.npz", ["persistence"])
    (here / "m.stopped.npz").rename(here / "m.npz")
    again = dashi(FIT)
    assert again.exit_code == 130, again.output
    assert "the model is whole and in m.stopped.npz; m.npz stays as it was" in again.stderr


def test_ctrl_c_while_data_are_simulated_says_that_nothing_is_written(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*words: Any, **more: Any) -> Any:
        raise Interrupted(simulate(*words, **more))

    monkeypatch.setattr(simulated, "simulate", stop)
    done = dashi(FIT, "--json")
    assert done.exit_code == 130, done.output
    assert json.loads(done.stdout) == {"file": None, "model": "galerkin", "stopped": True}
    assert "nothing was written: the model was not fitted yet" in done.stderr
    assert [*here.iterdir()] == []


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_the_help_has_an_example(command: str) -> None:
    done = dashi(f"flow {command} --help")
    assert done.exit_code == 0
    assert f"dashi flow {command}" in done.stdout.split("Example:")[1]


def test_simulate_and_fit_take_the_same_options_of_a_flow() -> None:
    shown = {name: dashi(f"flow {name} --help").stdout for name in ("simulate", "fit")}
    written = ["--n", "--dt", "--nu", "--drag", "--length", "--smagorinsky", "--scheme", "--dtype", "--forcing",
               "--force", "--initial", "--set", "--beta", "--hyperviscosity", "--hyperviscosity-order"]  # fmt: skip
    assert len(written) == len(o.FLOW)
    for text in shown.values():
        assert all(f"\n  {option} " in text for option in written)
    assert "[default: rk4]" in shown["simulate"]
    assert "[default: etdrk4]" in shown["fit"]


def test_the_help_of_fit_names_every_model() -> None:
    told = " ".join(dashi("flow fit --help").stdout.split())
    assert all(name in told.split("--model NAME")[1].split("--option")[0] for name in MODELS)
