"""Ctrl-C is never swallowed, whatever is fitted is on disk at once, and what is not finished says so of itself."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.core.operators.affine import Linear
from dashi.core.rollouts._engine import DeviceEngine
from dashi.core.rollouts._host_engine import HostEngine
from dashi.core.rollouts.rollout import rollout
from dashi.errors import Interrupted
from dashi.flow.equations import Flow, Kolmogorov
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.initial import ensemble
from dashi.flow.proxy._persistence import Damped
from dashi.flow.simulation import simulate
from dashi.flow.windows.simulated import windows_of
from dashi.io._files import unwritable
from dashi.io._run_folder import CHECKPOINT
from dashi.lab import _fit_files as fit_files
from dashi.lab.demos import _stages as stages
from dashi.lab.demos import main_job, setting
from dashi.report._sections import what_is_shown
from dashi.report.run import read_run
from dashi.runtime._cpu_device import CpuDevice

FLOW = Flow(16, nu=2e-2, dt=0.02)
TINY = setting.DemoSetting(
    Flow(16, nu=2e-2, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0), scheme="etdrk4"),
    k_cut=3, spin_up=0.4, window=0.4, interval=5, certified=20, checked=10, words=("--quick",),
)  # fmt: skip
FIT = (
    "flow fit --train-steps 40 --train-seed 1 --frame-every 5 --spin-up 20 --n 32 --nu 0.005 --dt 0.02 --set peak=3 "
    "--k-cut 5 --seeds 1 --device cpu --fast"
)
SIMULATE = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --fast --steps 8 --frame-every 2"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


def press(then: Callable[..., Any], at: int = 1) -> Callable[..., Any]:
    """Ctrl-C in the call of that number, and then what was asked for."""
    calls = list[bool]()

    def both(*args: Any, **kwargs: Any) -> Any:
        calls.append(True)
        if len(calls) == at:
            os.kill(os.getpid(), signal.SIGINT)
        return then(*args, **kwargs)

    return both


def stop(*_: Any, **__: Any) -> NoReturn:
    raise KeyboardInterrupt


def full(path: Path, *_: Any) -> NoReturn:
    raise unwritable(path, OSError(errno.ENOSPC, "No space left on device"))


# ---- in the last block


def test_a_run_that_ended_in_spite_of_ctrl_c_is_whole_and_says_that_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    with CpuDevice() as device:
        monkeypatch.setattr(HostEngine, "submit", press(HostEngine.submit))
        with pytest.raises(Interrupted) as stop:
            simulate(FLOW, ensemble(FLOW, "random", [1]), 3, device=device, host_fft=True)
        run = stop.value.partial
        assert (run.steps, run.stopped) == (3, False)
        again = simulate(FLOW, run.state, 6, device=device, host_fft=True, resume=run)
        assert again.steps == 6  # it was of that time, not of the first
        monkeypatch.setattr(DeviceEngine, "submit", press(DeviceEngine.submit))
        with pytest.raises(Interrupted) as stop:
            rollout(Linear(np.eye(4, dtype=np.float32)), np.ones(4, np.float32), 3, device=device)
        assert (stop.value.partial.steps, stop.value.partial.stopped) == (3, False)


@pytest.mark.parametrize("at", [1, 2])
def test_windows_do_not_go_on_after_ctrl_c(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    monkeypatch.setattr(HostEngine, "submit", press(HostEngine.submit, at))
    with CpuDevice() as device, pytest.raises(KeyboardInterrupt):
        windows_of(FLOW, [1], device=device, steps=2, interval=2, spin_up=3, host_fft=True)


def test_a_fit_ends_where_ctrl_c_came_while_the_spin_up_ran(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostEngine, "submit", press(HostEngine.submit))
    found = dashi(FIT, "--out m.npz --json")
    assert found.exit_code == 130, found.output
    assert json.loads(found.stdout) == {"file": None, "model": "galerkin", "stopped": True}
    assert [*here.iterdir()] == []


@pytest.mark.parametrize(("engine", "at"), [(HostEngine, 1), (DeviceEngine, 1), (DeviceEngine, 5)])
def test_a_demo_ends_where_ctrl_c_came_in_the_last_block(
    here: Path, monkeypatch: pytest.MonkeyPatch, engine: type, at: int
) -> None:
    monkeypatch.setattr(setting, "QUICK", TINY)
    monkeypatch.setattr(main_job, "draw", lambda *_: None)
    monkeypatch.setattr(engine, "submit", press(engine.submit, at))
    found = dashi("demo --quick --device cpu --out run --json")
    assert found.exit_code == 130, found.output
    assert json.loads(found.stdout)["stopped"] is True
    assert not (here / "run").exists()


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_a_demo_of_a_rollout_ends_where_ctrl_c_came(here: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """In each of its rollouts: those that are not measured, the measured one, and the one of NumPy."""
    monkeypatch.setattr(DeviceEngine, "submit", press(DeviceEngine.submit, at))
    found = dashi("demo --rollout --steps 1 --device cpu --out run --json")
    assert found.exit_code == 130, found.output
    assert json.loads(found.stdout)["stopped"] is True
    assert not (here / "run").exists()


def test_a_simulation_that_was_finished_all_the_same_is_a_finished_one(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)
    monkeypatch.setattr(HostEngine, "submit", press(HostEngine.submit, 8))
    found = dashi(SIMULATE, "--out r --json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["stopped"] is False
    assert not (here / "r" / CHECKPOINT).exists()


# ---- fits


def test_a_fitted_model_is_on_disk_before_its_baselines(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[tuple[bool, list[str]]]()

    def look(*_: Any, **__: Any) -> NoReturn:
        fit = load_fit(here / "m.stopped.npz")
        seen.append((fit.finished, list(fit.baselines)))
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(Damped, "fit", look)
        assert dashi(FIT, "--out m.npz").exit_code == 130
    assert seen == [(False, ["persistence"])]
    assert not (here / "m.npz").exists()
    evaluate = "--eval-steps 10 --eval-seed 9 --seeds 1 --device cpu --fast --no-train"
    scored = dashi(f"flow evaluate m.stopped.npz {evaluate} --out s --json")
    assert scored.exit_code == 0, scored.output
    assert "m.stopped.npz is of a fit that was stopped" in scored.stderr
    assert json.loads(scored.stdout)["fit_finished"] is False
    assert read_run(here / "s").warnings[0].startswith("The model is of a fit that was stopped")
    assert dashi(FIT, "--out n.npz --baseline persistence").exit_code == 0
    assert load_fit(here / "n.npz").finished
    assert not (here / "n.stopped.npz").exists()


@pytest.mark.parametrize("room", [0, 1])
def test_a_full_disk_does_not_lose_the_scores_of_a_fit(here: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    real, written = fit_files.save_fit, list[Path]()

    def save(path: Path, fit: Any) -> None:
        if len(written) == room:
            full(path)
        written.append(path)
        real(path, fit)

    monkeypatch.setattr(fit_files, "save_fit", save)
    found = dashi(FIT, "--out m.npz --baseline persistence --json")
    assert found.exit_code == 3, found.output
    told = json.loads(found.stdout)
    assert [one["split"] for one in told["evaluations"]] == ["train", "validation"]
    assert told["file"] == ("m.stopped.npz" if room else None)
    there = "m.stopped.npz holds what was written before" if room else "the model is in no file"
    assert f"Scores are there all the same; {there}." in told["error"]["what"]
    assert [path.name for path in here.iterdir()] == ["m.stopped.npz"] * room


# ---- what is told


@pytest.mark.parametrize("words", ["demo --quick --device cpu", f"{SIMULATE} --out r", "report r"])
def test_with_json_there_is_a_document_of_whatever_was_stopped(
    here: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    (here / "r").mkdir()
    monkeypatch.setattr(stages, "simulate", stop)
    monkeypatch.setattr("dashi.lab.simulations.solve", stop)
    monkeypatch.setattr("dashi.report.run.read_run", stop)
    found = dashi(words, "--json")
    assert found.exit_code == 130, found.output
    assert json.loads(found.stdout) == {"stopped": True}


def test_a_demo_that_is_stopped_while_it_draws_tells_what_it_has(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting, "QUICK", TINY)
    monkeypatch.setattr(main_job, "draw", stop)
    found = dashi("demo --quick --device cpu --out run --json")
    assert found.exit_code == 130, found.output
    told = json.loads(found.stdout)
    assert (told["stopped"], told["folder"], told["report"]) == (True, "run-unfinished", None)
    assert told["horizons"]


def test_a_stopped_run_says_what_stays_how_to_go_on_and_on_its_page_that_it_is_not_finished(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dashi(SIMULATE, "--out r").exit_code == 0
    assert read_run(here / "r").warnings == ()
    with monkeypatch.context() as during:
        during.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)
        during.setattr(HostEngine, "submit", press(HostEngine.submit, 3))
        found = dashi(SIMULATE, "--out r")
    assert found.exit_code == 130, found.output
    assert found.stderr.splitlines()[-3:] == [
        "what was done is in r/unfinished; the finished run in r stays as it was",
        f"go on: dashi {SIMULATE} --out r --resume",
        "stopped",
    ]
    warned = read_run(here / "r" / "unfinished").warnings
    assert [text.split(":")[0] for text in warned] == ["This run is not finished"]
    assert read_run(here / "r").warnings == ()


def test_a_rollout_that_is_stopped_says_how_to_go_on(
    here: Path, write_inputs: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_inputs(4)
    words = "rollout --A A.npz --z0 z0.npz --steps 40 --hash-every 10 --observe-every 1 --device cpu --out r"
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)
    monkeypatch.setattr(DeviceEngine, "submit", press(DeviceEngine.submit, 3))
    found = dashi(words)
    assert found.exit_code == 130, found.output
    assert found.stderr.splitlines()[-3:] == ["what was done is in r", f"go on: dashi {words} --resume", "stopped"]
    assert read_run(here / "r").warnings[0].startswith("This run is not finished: it ended after ")


def test_the_page_of_a_killed_run_says_that_it_is_not_finished(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: Any) -> NoReturn:
        raise Killed

    monkeypatch.setattr("dashi.lab.simulations._leave", kill)
    with pytest.raises(Killed):
        CliRunner().invoke(app, [*SIMULATE.split(), "--out", "r"], catch_exceptions=True)
    killed = "This run is not finished: it was stopped, or is still at work."
    assert read_run(here / "r").warnings == (killed,)
    (here / "d").mkdir()
    (here / "d" / "summary.json").write_text('{"stopped": true}')  # as `demo --rollout` leaves it
    assert read_run(here / "d").warnings == (killed,)


def test_the_page_of_a_model_alone_does_not_call_it_the_flow(here: Path, fitted: Path) -> None:
    assert dashi(SIMULATE.replace("--n 16", "--n 32"), "--out flow").exit_code == 0
    words = f"flow rollout --model {fitted} --from flow --steps 4 --decode-every 2 --device cpu --no-stage-times"
    found = dashi(words, "--observer snapshots --out p")
    assert found.exit_code == 0, found.output
    page = read_run(here / "p")
    assert what_is_shown(page) == "What the model did"
    assert page.fields_of == "the model's states, decoded"
    assert page.files["z.npz"].startswith("the z of the model after its last step")
    assert what_is_shown(read_run(here / "flow")) == "What the flow did"


# ---- refused before anything is written


def test_what_is_no_run_has_no_page(here: Path) -> None:
    (here / "text.txt").write_text("mine")
    (here / "mine").mkdir()
    (here / "mine" / "model.npz").write_text("mine")
    for name in ("text.txt", "mine", "nowhere"):
        found = dashi(f"report {name}")
        assert found.exit_code == 3, found.output
        assert f"{name} is not the folder of a run." in found.stderr
    assert [path.name for path in (here / "mine").iterdir()] == ["model.npz"]


def test_an_evaluation_on_nothing_leaves_nothing(here: Path, fitted: Path) -> None:
    found = dashi(f"flow evaluate {fitted} --device null --out s")
    assert found.exit_code == 3, found.output
    assert "the null device computes nothing." in found.stderr
    assert [*here.iterdir()] == []
