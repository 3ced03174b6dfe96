"""Claims about `dashi flow simulate`: what its options mean, what its errors and remarks say."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app

BASE = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --host-fft --look-every 4 --frame-every 4"
BASE += " --hash-every 4"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--field nothing --out run", "there is no field 'nothing'"),
        ("--set speed=nan", "--set speed=nan is not NAME=NUMBER"),
        ("--members 100000000", "GiB"),
    ],
)
def test_what_cannot_be_meant_is_told(here: Path, words: str, said: str) -> None:
    done = dashi(BASE if "--out" in words else BASE.replace("--frame-every 4", ""), "--steps 4", words)
    assert done.exit_code == 3, done.output
    assert said in done.stderr
    assert "Fix: " in done.stderr
    assert not (here / "run").exists()


def test_frames_without_a_folder_are_told() -> None:
    done = dashi(BASE, "--steps 4")
    assert done.exit_code == 3
    assert "--frame-every writes frames to a run folder.\nFix: name it with --out" in done.stderr


def test_options_of_a_run_that_is_there_are_named_as_flags(here: Path) -> None:
    assert dashi(BASE, "--steps 12 --out run").exit_code == 0
    other = dashi(BASE, "--steps 12 --seed 5 --out run")
    assert other.exit_code == 3
    assert "with other settings (seed is 0 there, 5 here).\nFix: replace it with --overwrite, or choose" in other.stderr
    assert json.loads(dashi(BASE, "--steps 12 --seed 5 --out run --overwrite --json").stdout)["folder"] == "run"


def test_a_stopped_run_says_how_to_go_on_and_does(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.flow._trajectory import Trajectory

    real = Trajectory.add

    presses = iter([signal.SIGINT])

    def pressed(self: Trajectory, *rest: Any) -> None:
        real(self, *rest)
        for number in presses:
            signal.raise_signal(number)

    with monkeypatch.context() as during:
        during.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)  # blocks of one step
        during.setattr(Trajectory, "add", pressed)
        stopped = dashi(BASE, "--steps 2000 --out run")
    assert stopped.exit_code == 130, stopped.output
    assert "go on: dashi " in stopped.stderr
    line = stopped.stderr.split("go on: dashi ")[1].splitlines()[0]
    assert line.endswith(" --resume")
    assert dashi(line).exit_code == 0
