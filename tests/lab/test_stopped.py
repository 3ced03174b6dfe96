"""Ctrl-C is never swallowed, whatever is fitted is on disk at once, and what is not finished says so of itself."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from dashi import lab
from dashi.core.operators.affine import Linear
from dashi.core.rollouts._engine import DeviceEngine
from dashi.core.rollouts._host_engine import HostEngine
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import FileError, Interrupted, NoResultError
from dashi.flow.equations import Flow, Kolmogorov
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.initial import ensemble
from dashi.flow.proxy._persistence import Damped
from dashi.flow.simulation import simulate
from dashi.flow.windows.simulated import windows_of
from dashi.io._files import unwritable
from dashi.io._run_folder import CHECKPOINT
from dashi.lab import _fit_files as fit_files
from dashi.lab.demos import main_job, setting
from dashi.report._sections import what_is_shown
from dashi.report.run import read_run
from dashi.runtime._cpu_device import CpuDevice

FLOW = Flow(16, nu=2e-2, dt=0.02)
TINY = setting.DemoSetting(
    Flow(16, nu=2e-2, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0), scheme="etdrk4"),
    k_cut=3, spin_up=0.4, window=0.4, interval=5, certified=20, checked=10, words=("--quick",),
)  # fmt: skip


def fit(out: str, **asked: Any) -> lab.FittedModel:
    plain: dict[str, Any] = {
        "flow": Flow(32, nu=5e-3, dt=0.02, scheme="etdrk4"), "train": (1,), "validate": (2,), "train_steps": 40,
        "frame_every": 5, "spin_up": 20, "initial_options": {"peak": 3}, "k_cut": 5, "host_fft": True,
    }  # fmt: skip
    return lab.fit(lab.FitRequest(**{**plain, **asked}), device="cpu", out=out)


def solve(out: str, n: int = 16) -> Run:
    request = lab.SimulateRequest(
        flow=Flow(n, nu=0.01, dt=0.01), steps=8, frame_every=2, initial_options={"peak": 2}, host_fft=True
    )
    return lab.simulate(request, device="cpu", out=out)


def stopped(job: Callable[[], Any]) -> Any:
    """What a job has that Ctrl-C ends."""
    with pytest.raises(Interrupted) as interrupt:
        job()
    return interrupt.value.partial


def tiny_demo() -> lab.DemoResult:
    return lab.demo(lab.DemoRequest(setting=TINY), device="cpu", out="run")


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
    assert stopped(lambda: fit("m.npz")) is None
    assert [*here.iterdir()] == []


@pytest.mark.parametrize(("engine", "at"), [(HostEngine, 1), (DeviceEngine, 1), (DeviceEngine, 5)])
def test_a_demo_ends_where_ctrl_c_came_in_the_last_block(
    here: Path, monkeypatch: pytest.MonkeyPatch, engine: type, at: int
) -> None:
    monkeypatch.setattr(main_job, "draw", lambda *_: None)
    monkeypatch.setattr(engine, "submit", press(engine.submit, at))
    partial = stopped(tiny_demo)
    assert (partial is None) is (engine is HostEngine)  # the first stage: nothing was finished before
    assert partial is None or partial.summary["stopped"] is True
    assert not (here / "run").exists()


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_a_demo_of_a_rollout_ends_where_ctrl_c_came(here: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """In each of its rollouts: those that are not measured, the measured one, and the one of NumPy."""
    monkeypatch.setattr(DeviceEngine, "submit", press(DeviceEngine.submit, at))
    partial = stopped(lambda: lab.demo_wave(lab.WaveRequest(steps=1), device="cpu", out="run"))
    assert (partial is None) is (at in (1, 3, 4))  # those are not measured, and leave nothing
    assert partial is None or partial.summary["stopped"] is True
    assert not (here / "run").exists()


def test_a_simulation_that_was_finished_all_the_same_is_a_finished_one(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)
    monkeypatch.setattr(HostEngine, "submit", press(HostEngine.submit, 8))
    assert solve("r").stopped is False
    assert not (here / "r" / CHECKPOINT).exists()


# ---- fits


def test_a_fitted_model_is_on_disk_before_its_baselines(
    here: Path, heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list[tuple[bool, list[str]]]()

    def look(*_: Any, **__: Any) -> NoReturn:
        fit = load_fit(here / "m.stopped.npz")
        names.append((fit.finished, list(fit.baselines)))
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(Damped, "fit", look)
        assert stopped(lambda: fit("m.npz")).stopped
    assert names == [(False, ["persistence"])]
    assert not (here / "m.npz").exists()
    asked = lab.EvaluateRequest(model="m.stopped.npz", steps=10, first_seed=9, seeds=1, host_fft=True)
    scores = lab.evaluate(asked, device="cpu", out="s", events=heard)
    assert any("m.stopped.npz is of a fit that was stopped" in line for line in heard.remarks)
    assert scores.document()["fit_finished"] is False
    assert read_run(here / "s").warnings[0].startswith("The model is of a fit that was stopped")
    fit("n.npz", baselines=("persistence",))
    assert load_fit(here / "n.npz").finished
    assert not (here / "n.stopped.npz").exists()


@pytest.mark.parametrize("room", [0, 1])
def test_a_full_disk_does_not_lose_the_scores_of_a_fit(here: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    real, written = fit_files.save_fit, list[Path]()

    def save(path: Path, fitted: Any) -> None:
        if len(written) == room:
            full(path)
        written.append(path)
        real(path, fitted)

    monkeypatch.setattr(fit_files, "save_fit", save)
    there = "m.stopped.npz holds what was written before" if room else "the model is in no file"
    with pytest.raises(FileError, match=rf"Scores are there all the same; {there}\.") as error:
        fit("m.npz", baselines=("persistence",))
    result = error.value.result
    assert isinstance(result, lab.FittedModel)
    assert [one.split for one in result.fit.evaluations] == ["train", "validation"]
    assert result.path == (Path("m.stopped.npz") if room else None)
    assert [path.name for path in here.iterdir()] == ["m.stopped.npz"] * room


# ---- what is told


def test_a_demo_that_is_stopped_while_it_draws_tells_what_it_has(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_job, "draw", stop)
    partial = stopped(tiny_demo)
    assert (partial.summary["stopped"], partial.folder, partial.report) == (True, Path("run-unfinished"), None)
    assert partial.summary["horizons"]


def test_a_stopped_run_says_on_its_page_that_it_is_not_finished(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solve("r")
    assert read_run(here / "r").warnings == ()
    with monkeypatch.context() as during:
        during.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)
        during.setattr(HostEngine, "submit", press(HostEngine.submit, 3))
        assert stopped(lambda: solve("r")).folder == Path("r/unfinished")
    warned = read_run(here / "r" / "unfinished").warnings
    assert [text.split(":")[0] for text in warned] == ["This run is not finished"]
    assert read_run(here / "r").warnings == ()


def test_the_page_of_a_killed_run_says_that_it_is_not_finished(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: Any) -> NoReturn:
        raise Killed

    monkeypatch.setattr("dashi.lab.simulations._leave", kill)
    with pytest.raises(Killed):
        solve("r")
    killed = "This run is not finished: it was stopped, or is still at work."
    assert read_run(here / "r").warnings == (killed,)
    (here / "d").mkdir()
    (here / "d" / "summary.json").write_text('{"stopped": true}')  # as `demo --rollout` leaves it
    assert read_run(here / "d").warnings == (killed,)


def test_the_page_of_a_model_alone_does_not_call_it_the_flow(here: Path, fitted: Path) -> None:
    solve("flow", 32)
    asked = lab.FollowRequest(
        model=fitted, start="flow", steps=4, decode_every=2, observer="snapshots", stage_times=False
    )
    lab.follow(asked, device="cpu", out="p")
    page = read_run(here / "p")
    assert what_is_shown(page) == "What the model did"
    assert page.fields_of == "the model's states, decoded"
    assert page.files["z.npz"].startswith("the z of the model after its last step")
    assert what_is_shown(read_run(here / "flow")) == "What the flow did"


def test_an_evaluation_on_nothing_leaves_nothing(here: Path, fitted: Path) -> None:
    with pytest.raises(NoResultError, match=r"the null device computes nothing\."):
        lab.evaluate(lab.EvaluateRequest(model=fitted), device="null", out="s")
    assert [*here.iterdir()] == []
