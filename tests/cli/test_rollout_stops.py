"""`dashi rollout` that is stopped or killed, and goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dashi
from dashi.cli.main import app
from dashi.core.certificates._certificate import read_certificate
from dashi.io.metrics import read_metrics

INPUTS = ("--z0", "z0.npz", "--A", "A.npz")


@pytest.fixture(autouse=True)
def inputs(write_inputs: Callable[[int], None]) -> None:
    write_inputs(12)


def rollout(*words: str, ends: int = 0) -> Any:
    done = CliRunner().invoke(app, ["rollout", *words])
    assert done.exit_code == ends, done.output
    return done


def hashes(*words: str) -> Any:
    return json.loads(rollout(*words, "--json").stdout)["hashes"]


@pytest.mark.parametrize("device", ["cpu", "vulkan:0"])
def test_ctrl_c_keeps_what_was_finished_and_resume_goes_on(here: Path, device: str) -> None:
    if not any(info.spec == device for info in dashi.devices()):
        pytest.skip(f"there is no {device} here")
    # Short strides make short blocks, so that it stops soon.
    words = (*INPUTS, "--hash-every", "20", "--observe-every", "10", "--device", device, "--out", "run")
    words += ("--certificate", "c.json", "--sheet-every", "10")
    command = [sys.executable, "-m", "dashi", "rollout", *words, "--steps", "1000000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline().startswith("rolling out 1000000000 steps")
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert err.endswith("stopped\n")
    assert "Traceback" not in err
    metrics = read_metrics(here / "run" / "metrics.json")
    assert metrics.stopped
    assert f"{metrics.steps} of linear" in out
    assert metrics.hashes
    assert read_certificate(here / "c.json").steps == metrics.hashes[-1].step
    end = metrics.steps + 30
    told = rollout(*words, "--steps", str(end), ends=3)
    assert "holds a run that was interrupted" in told.stderr
    resumed = hashes(*words, "--steps", str(end), "--resume")
    whole = hashes(*INPUTS, "--hash-every", "20", "--steps", str(end), "--device", "cpu")
    assert resumed == whole
    assert not (here / "run" / "checkpoint.npz").exists()


def killed_after_a_checkpoint(file: Path, words: tuple[str, ...]) -> bool:
    """Runs, or goes on, until a checkpoint was written and some time passed, then kills; False if it ended first."""
    before = file.stat().st_mtime_ns if file.exists() else None
    command = [sys.executable, "-m", "dashi", "rollout", *words, *(() if before is None else ("--resume",))]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as running:
        while running.poll() is None and (not file.exists() or file.stat().st_mtime_ns == before):
            time.sleep(0.002)
        # Any moment: between steps, while a checkpoint is written, between its file and its place.
        time.sleep(0.03 * np.random.default_rng().random())
        ended = running.poll() is not None
        running.kill()
    return not ended


# Enough steps that the run cannot end before it is killed: NumPy takes half a millisecond for each.
@pytest.mark.parametrize(("device", "steps"), [("cpu", "4000"), ("vulkan:0", "8000")])
def test_a_run_that_is_killed_at_any_moment_resumes_to_the_same_hashes(here: Path, device: str, steps: str) -> None:
    if not any(info.spec == device for info in dashi.devices()):
        pytest.skip(f"there is no {device} here")
    words = (*INPUTS, "--hash-every", "1000", "--steps", steps, "--device", device, "--out", "run",
             "--checkpoint-every", "300", "--sheet-every", "700", "--observe-every", "900")  # fmt: skip
    for _ in range(2):
        assert killed_after_a_checkpoint(here / "run" / "checkpoint.npz", words)
    rollout(*words, "--resume")
    metrics = read_metrics(here / "run" / "metrics.json")
    whole = hashes(*INPUTS, "--hash-every", "1000", "--steps", steps, "--device", "cpu", "--sheet-every", "700",
                 "--observe-every", "900", "--out", "whole")  # fmt: skip
    assert [h.model_dump() for h in metrics.hashes] == whole
    for name in ("state.npz", "sheet_energy.npy"):
        assert (here / "run" / name).read_bytes() == (here / "whole" / name).read_bytes()
    assert not [p.name for p in (here / "run").iterdir() if p.name.endswith(".part")]
