"""What commands say when Ctrl-C stops them, and that a folder which is no run has no page."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.core.rollouts._engine import DeviceEngine
from dashi.core.rollouts._host_engine import HostEngine
from dashi.lab.demos import _stages as stages
from dashi.report.run import read_run

SIMULATE = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --host-fft --steps 8 --frame-every 2"


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


def test_a_stopped_run_says_what_stays_and_how_to_go_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dashi(SIMULATE, "--out r").exit_code == 0
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


def test_what_is_no_run_has_no_page(here: Path) -> None:
    (here / "text.txt").write_text("mine")
    (here / "mine").mkdir()
    (here / "mine" / "model.npz").write_text("mine")
    for name in ("text.txt", "mine", "nowhere"):
        found = dashi(f"report {name}")
        assert found.exit_code == 3, found.output
        assert f"{name} is not the folder of a run." in found.stderr
    assert [path.name for path in (here / "mine").iterdir()] == ["model.npz"]
