"""Long work is seen to go on: lines with rate and time left, from the first seconds, in every phase."""

from __future__ import annotations

import io
import re
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli import progress
from dashi.cli.main import app
from dashi.cli.output import print_error
from dashi.cli.progress import Lines, rate_text
from dashi.errors import InputError
from dashi.flow import Flow, ensemble


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


def test_an_ensemble_tells_of_each_member_and_has_the_same_bits() -> None:
    flow, told = Flow(16), list[int]()
    together = ensemble(flow, "random", [3, 4, 5], progress=told.append)
    assert told == [1, 1, 1]
    assert np.array_equal(together, np.concatenate([ensemble(flow, "random", [seed]) for seed in (3, 4, 5)]))


def test_the_faster_choice_is_one_remark_on_stderr() -> None:
    done = CliRunner().invoke(app, "flow simulate --n 16 --steps 1 --device cpu".split())
    assert len(re.findall("several times faster", done.stderr)) == 1
    assert "--host-fft is several times faster, and not portable" in done.stderr
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
