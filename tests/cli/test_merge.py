"""Claims about `dashi merge`, `--shard` and `--jobs`: what is typed on the page of farms does what the page says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.io._run_mark import MARK
from dashi.io._run_names import METRICS, SCORES
from dashi.lab.shards.comparison import compared

PAGE = Path(__file__).parents[2] / "docs" / "farms.md"
RUN = "flow simulate --n 16 --set peak=2 --steps 6 --members 3 --device cpu --host-fft"
KEPT = "flow simulate --n 16 --set peak=2 --steps 6 --members 3 --device cpu --hash-every 3 --states-every 3"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


def test_shards_are_made_and_merged(here: Path) -> None:
    for part in (1, 2):
        assert dashi(RUN, f"--shard {part}/2 --out part/{part}").exit_code == 0
    again = dashi(RUN, "--shard 2/2 --out part/2 --json")
    assert "shard 2/2 in part/2 is finished already: nothing is done" in again.stderr
    assert json.loads(again.stdout)["states"] == 2
    merged = dashi("merge part/2 part/1 --out all --json")
    assert json.loads(merged.stdout) == {
        "command": "flow simulate", "out": "all", "shards": 2, "total": 3, "unit": "members", "certificate": None,
    }  # fmt: skip
    assert "2 shard(s) of dashi flow simulate, 3 members" in dashi("merge part/1 part/2 --out all").stdout
    assert dashi(RUN, "--out whole").exit_code == 0
    assert compared(here / "all") == compared(here / "whole")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"{RUN} --shard 5/4 --out x", "--shard is 5/4. Fix: use 1/4 to 4/4."),
        (f"{RUN} --shard 0/4 --out x", "--shard is 0/4. Fix: use 1/4 to 4/4."),
        (f"{RUN} --shard a/b --out x", "--shard is 'a/b'. Fix: give the part and how many there are, such as 2/7."),
        (f"{RUN} --shard 4/4 --out x", "--shard is 4/4, and there are 3 members to share. Fix: make 3 shards or"),
        (f"{RUN} --shard 1/2", "--shard 1/2 leaves a folder to merge. Fix: name it with --out."),
        (f"{RUN} --jobs 2", "--jobs merges shards into a folder. Fix: name it with --out."),
        (f"{RUN} --jobs 0 --out x", "--jobs is 0. Fix: use 1 to 4096 processes."),
        (f"{RUN} --jobs 2 --resume --out x", "--jobs goes on with what was stopped by itself. Fix: leave"),
        (
            f"{RUN} --jobs 2 --live --out x",
            "--live shows a run of this process, and --jobs starts others. Fix: leave one of them away.",
        ),
        (f"{RUN} --jobs 2 --shard 1/2 --out x", "--jobs makes shards itself, and --shard names one."),
        (
            f"{KEPT} --shard 1/2 --out x",
            "a shard keeps no states on the way. Fix: leave --states-every away, or run the whole without --shard.",
        ),
        (
            f"{KEPT} --jobs 2 --out x",
            ("--jobs makes shards, and a shard keeps no states on the way. "
            "Fix: leave --states-every away, or run the whole without --jobs."),
        ),
        ("merge none --out x", "there is no folder none. Fix: correct its name, or run its shard."),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_error_with_a_fix(here: Path, words: str, said: str) -> None:
    done = dashi(words)
    assert done.exit_code == 3
    assert said in done.stderr.replace("\nFix:", " Fix:")


def test_a_hole_is_told_in_flags(here: Path) -> None:
    dashi(RUN, "--shard 1/2 --out part")
    done = dashi("merge part --out x")
    assert done.exit_code == 3
    assert "of 2 shards 1 is missing: 2/2." in done.stderr
    assert "Fix: run the same command with --shard 2/2, name its folder too, and merge again." in done.stderr


def _script(start: str) -> str:
    """The shell block of the page that begins so."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if block.startswith(start))


def _run(script: str, here: Path, **more: str) -> None:
    """A script of the page, with this program as `dashi`."""
    program = here / "bin" / "dashi"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from dashi.cli.main import main; main()" "$@"\n')
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", **more}
    done = subprocess.run(["sh", "-e", "-c", script], env=environment, cwd=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_the_loop_and_the_jobs_of_the_page_leave_the_whole(here: Path) -> None:
    loop, jobs = _script("for I in"), _script("dashi flow simulate --n 16")
    for script, out in ((loop, "runs/k/all"), (jobs, "runs/jobs")):
        _run(script, here)
        line = next(line for line in script.splitlines() if "flow simulate" in line)
        alone = re.sub(r"dashi |--shard \S+|--jobs \S+|--out \S+", "", line)
        assert dashi(alone, f"--out {out}-alone").exit_code == 0
        assert compared(here / out) == compared(here / f"{out}-alone")


@pytest.mark.long
def test_the_array_of_the_page_is_right_and_a_task_that_was_killed_is_submitted_again(here: Path) -> None:
    script = _script("#!/bin/sh").replace(
        "--n 1024 --steps 100000 --members 512 --require-gpu", RUN.split("simulate")[1]
    )
    assert "--require-gpu" not in script
    for task in ("1", "2", "3", "2"):
        _run(script, here, SLURM_ARRAY_TASK_ID=task, SLURM_ARRAY_TASK_COUNT="3")
    assert dashi("merge runs/k/1 runs/k/2 runs/k/3 --out runs/all").exit_code == 0
    assert dashi(RUN, "--out runs/alone").exit_code == 0
    assert compared(here / "runs" / "all") == compared(here / "runs" / "alone")


def _killed(words: list[str], at_work: Callable[[], bool], seconds: float) -> None:
    """Runs a command, and kills it so long after it is seen at work."""
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 90
        while not at_work() and child.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(seconds)
    finally:
        child.kill()
        code = child.wait()
    assert code == -signal.SIGKILL, "it ended before it was killed"


def _command(text: str) -> list[str]:
    return [sys.executable, "-c", "from dashi.cli.main import main; main()", *text.split()]


@pytest.mark.long
def test_shards_that_are_killed_at_random_and_run_again_are_the_whole(here: Path) -> None:
    run = "flow simulate --n 32 --dt 0.01 --steps 3000 --frame-every 100 --hash-every 300 --members 4 --device cpu"
    run += " --host-fft"
    for part in (1, 2):
        words, folder = _command(f"{run} --shard {part}/2 --out part/{part}"), here / "part" / str(part)

        def frames(folder: Path = folder) -> int:
            return len([*folder.rglob("fields.zarr/vorticity/c/*")])

        for seconds in (0.0, 0.1, 0.2):
            before = frames()
            _killed(words, lambda before=before: frames() > before, seconds)
        assert not (folder / METRICS).exists()
        assert subprocess.run(words, capture_output=True).returncode == 0
    assert dashi("merge part/1 part/2 --out all").exit_code == 0
    assert dashi(run, "--out whole").exit_code == 0
    assert compared(here / "all") == compared(here / "whole")


@pytest.mark.long
def test_shards_of_an_evaluation_that_are_killed_and_run_again_are_the_whole(here: Path) -> None:
    fit = "flow fit --model persistence --n 32 --set peak=2 --train-steps 20 --frame-every 5 --spin-up 0 --k-cut 4"
    assert dashi(fit, "--train-seed 1 --validation-seeds 1 --device cpu --host-fft --out m.npz").exit_code == 0
    run = "flow evaluate m.npz --seeds 6 --eval-seed 50 --eval-steps 1200 --no-train --device cpu --host-fft"
    for part in (1, 2):
        words, folder = _command(f"{run} --shard {part}/2 --out part/{part}"), here / "part" / str(part)
        for seconds in (0.0, 0.1):
            _killed(words, lambda folder=folder: (folder / MARK).exists(), seconds)
            assert not (folder / SCORES).exists()
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert dashi("merge part/1 part/2 --out all").exit_code == 0
    assert dashi(run, "--out whole").exit_code == 0
    assert compared(here / "all") == compared(here / "whole")
