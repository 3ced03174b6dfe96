"""Long work is seen to go on: lines with rate and time left, from the first seconds, in every phase."""

from __future__ import annotations

import io
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli import flow_job, progress
from dashi.cli.flow_setup import faster_choice
from dashi.cli.main import app
from dashi.cli.output import print_error
from dashi.cli.progress import Lines, rate_text
from dashi.errors import InputError
from dashi.flow import Flow, ensemble
from dashi.runtime.cpu_device import CpuDevice
from dashi.runtime.info import DeviceInfo


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(progress, "remark", lines.append)
    return lines


def test_a_line_comes_in_the_first_seconds_even_if_nothing_is_finished(said: list[str]) -> None:
    clock = Clock()
    lines = Lines("initial conditions", 64, "members", clock)
    assert lines.beat() == 2.0
    assert not said
    clock.now += 2.0
    lines.beat()
    assert said == ["initial conditions: 0 of 64 members, 2 s so far"]


def test_lines_tell_rate_and_time_left_and_grow_rarer(said: list[str]) -> None:
    clock = Clock()
    lines = Lines("flow", 1000, "steps", clock)
    lines.advance(5)
    at: list[float] = []
    for _ in range(3600):
        clock.now += 1.0
        before = len(said)
        lines.beat()
        at += [clock.now - 100.0] * (len(said) - before)
    assert said[0] == "flow: 5 of 1000 steps, 2.5 steps/s, 398 s left"
    assert at[:4] == [2.0, 7.0, 12.0, 17.0]
    between = np.diff(at)
    assert between.min() >= 5.0
    assert between[-1] > 100.0
    assert len(said) < 120


def test_a_phase_without_a_count_tells_its_time(said: list[str]) -> None:
    clock = Clock()
    lines = Lines("preparing", None, "", clock)
    clock.now += 12.0
    lines.beat()
    assert said == ["preparing: 12 s so far"]


@pytest.mark.parametrize(
    ("rate", "text"),
    [(1234.4, "1,234 parts/s"), (10.0, "10 parts/s"), (2.46, "2.5 parts/s"), (0.0731, "0.073 parts/s")],
)
def test_a_slow_rate_is_never_zero(rate: float, text: str) -> None:
    assert rate_text(rate, "parts") == text


def test_lines_come_while_the_work_itself_says_nothing(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_FIRST", 0.01)
    with progress.phase("thinking"):
        end = time.monotonic() + 10
        while not said and time.monotonic() < end:
            time.sleep(0.005)
    assert said[0].startswith("thinking: ")


def test_every_phase_of_a_simulation_is_shown(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int | None, int]] = []
    real = progress.progress

    class Counted:
        def __init__(self, title: str, total: int | None, unit: str) -> None:
            self.title, self.total, self.count = title, total, 0
            self.shown: Any = real(title, total, unit)

        def __enter__(self) -> Any:
            advance = self.shown.__enter__()

            def count(amount: int) -> None:
                self.count += amount
                advance(amount)

            return count

        def __exit__(self, *error: Any) -> None:
            self.shown.__exit__(*error)
            seen.append((self.title, self.total, self.count))

    monkeypatch.setattr(progress, "progress", Counted)
    monkeypatch.setattr(flow_job, "progress", Counted)
    words = "flow simulate --n 16 --members 3 --steps 4 --device cpu --fast --out run"
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, done.output
    assert seen == [("initial conditions", 3, 3), ("preparing", None, 0), ("flow", 4, 4), ("writing", None, 0)]


def test_an_ensemble_tells_of_each_member_and_has_the_same_bits() -> None:
    flow, told = Flow(16), list[int]()
    together = ensemble(flow, "random", [3, 4, 5], progress=told.append)
    assert told == [1, 1, 1]
    assert np.array_equal(together, np.concatenate([ensemble(flow, "random", [seed]) for seed in (3, 4, 5)]))


def test_the_faster_choice_on_a_processor_is_named() -> None:
    with CpuDevice() as cpu:
        info = cpu.info
    software = DeviceInfo(**{**vars(info), "spec": "vulkan:0", "name": "llvmpipe", "type": "software"})
    hardware = DeviceInfo(**{**vars(info), "spec": "vulkan:0", "name": "a GPU", "type": "discrete"})
    assert "--device cpu --fast is several times faster" in (faster_choice(software, fast=False) or "")
    assert "--fast is several times faster" in (faster_choice(info, fast=False) or "")
    assert faster_choice(info, fast=True) is None
    assert faster_choice(hardware, fast=False) is None


def test_the_faster_choice_is_one_remark_on_stderr() -> None:
    done = CliRunner().invoke(app, "flow simulate --n 16 --steps 1 --device cpu".split())
    assert len(re.findall("several times faster", done.stderr)) == 1
    assert "faster" not in done.stdout


@pytest.mark.parametrize(
    ("terminal", "no_color", "coloured"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_errors_are_coloured_on_terminals_alone(
    terminal: bool, no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    print_error(InputError("it failed.", "mend it."), as_json=False)
    text = stream.getvalue()
    assert text.startswith("\x1b[1;31merror:\x1b[0m it failed.\n" if coloured else "error: it failed.\n")
    assert text.endswith("Fix: mend it.\n")
