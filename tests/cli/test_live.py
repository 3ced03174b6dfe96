"""Claims about `--live`: alone it is a page, its address is printed, results are the same; the terminal needs one."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.flags import with_usual_values
from dashi.cli.main import app
from dashi.cli.progress import picture_lines
from dashi.report import LiveView

SIMULATE = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --host-fft --steps 8 --json"


def dashi(line: str) -> Any:
    return CliRunner().invoke(app, line.split())


@pytest.mark.parametrize(
    ("words", "full"),
    [
        (["--live"], ["--live", "page"]),
        (["--live", "--json"], ["--live", "page", "--json"]),
        (["--live", "terminal"], ["--live", "terminal"]),
        (["a", "--live", "page", "b"], ["a", "--live", "page", "b"]),
        (["--", "--live"], ["--", "--live"]),
        (["--out", "x"], ["--out", "x"]),
    ],
)
def test_a_flag_that_stands_alone_means_its_usual_value(words: list[str], full: list[str]) -> None:
    assert with_usual_values(words, {"--live"}) == full
    assert with_usual_values(words, {"--other"}) == words


@pytest.mark.parametrize("words", ["--live", "--live page"])
def test_a_page_is_served_and_results_are_the_same(here: Path, words: str) -> None:
    plain, live = dashi(SIMULATE), dashi(f"{SIMULATE} {words}")
    assert live.exit_code == 0, live.output
    assert re.search(r"^live: http://127\.0\.0\.1:\d+/[\w-]{32}/$", live.stderr, re.MULTILINE)
    assert json.loads(live.stdout)["hash"] == json.loads(plain.stdout)["hash"]


def test_a_rollout_is_seen_too(here: Path) -> None:
    assert dashi("demo --rollout --steps 20 --device cpu --out demo").exit_code == 0
    run = "rollout --z0 demo/inputs.npz --A demo/inputs.npz --steps 20 --device cpu --json"
    plain, live = dashi(run), dashi(f"{run} --live")
    assert live.exit_code == 0, live.output
    assert "live: http://127.0.0.1:" in live.stderr
    assert json.loads(live.stdout)["hashes"] == json.loads(plain.stdout)["hashes"]


def test_the_terminal_needs_a_terminal(here: Path) -> None:
    done = dashi(f"{SIMULATE} --live terminal")
    assert done.exit_code == 3
    assert "--live terminal draws on a terminal, and stderr is none.\nFix: use --live page, or leave it" in done.stderr
    assert dashi(f"{SIMULATE} --live=cinema").exit_code == 2


def test_pictures_are_lines_of_half_blocks() -> None:
    view = LiveView()
    assert picture_lines(view, 80) == []
    view.show_field(0, "vorticity", np.array([[-1.0, 1.0], [1.0, -1.0]]))
    (line,) = picture_lines(view, 80)
    assert str(line) == "\u2580\u2580"
    view.show_field(1, "vorticity", np.zeros((512, 512)))
    view.show_row(1, "energy spectrum", np.ones(9))
    lines = picture_lines(view, 50)
    assert max(len(str(one)) for one in lines) <= 49
    assert len(lines) <= 50


def test_a_terminal_shows_the_run(here: Path) -> None:
    """In a terminal of its own, as a person has one."""
    ours, theirs = pty.openpty()
    words = [*SIMULATE.replace("--steps 8", "--steps 3000").split(), "--live", "terminal"]
    with subprocess.Popen(
        [sys.executable, "-c", "from dashi.cli.main import main; main()", *words],
        stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"},
    ) as run:  # fmt: skip
        os.close(theirs)
        drawn = b""
        while True:
            try:
                more = os.read(ours, 1 << 16)
            except OSError:  # the last of the other end is closed
                break
            if not more:
                break
            drawn += more
        assert run.stdout is not None
        assert json.loads(run.stdout.read())["steps"] == 3000
    os.close(ours)
    assert run.returncode == 0, drawn.decode(errors="replace")
    assert "\u2580".encode() in drawn
