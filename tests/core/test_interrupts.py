"""Ctrl-C ends a Python program, with what was finished at hand; SIGTERM and SIGHUP end a command in the same order."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.cli.signals import ended_in_order
from dashi.core.operators.affine import Linear
from dashi.core.rollouts._interrupt import deferred_interrupt
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import Interrupted
from dashi.flow import Flow, ensemble
from dashi.flow.simulation import simulate
from dashi.io.arrays import read_arrays
from dashi.runtime._cpu_device import CpuDevice

FLOW = Flow(16, nu=2e-2, dt=0.01)
STEPS = 100_000


def roll(seed: int, device: CpuDevice, progress: Callable[[int], None], resume: Any = None) -> Run:
    z0 = np.full(4, seed, np.float32)
    steps = STEPS if resume is None else resume.steps + 3
    return rollout(Linear(np.eye(4, dtype=np.float32)), z0, steps, device=device, progress=progress, resume=resume)


def solve(seed: int, device: CpuDevice, progress: Callable[[int], None], resume: Any = None) -> Run:
    steps = STEPS if resume is None else resume.steps + 3
    states = ensemble(FLOW, "random", seed, peak=2)
    return simulate(FLOW, states, steps, device=device, host_fft=True, progress=progress, resume=resume)


@pytest.mark.parametrize("work", [roll, solve])
def test_one_ctrl_c_ends_a_loop_over_seeds_and_what_was_finished_is_attached(work: Callable[..., Any]) -> None:
    begun: list[int] = []

    def press(_: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def loop(device: CpuDevice) -> None:
        for seed in range(1, 5):
            begun.append(seed)
            work(seed, device, press)

    with CpuDevice() as device:
        with pytest.raises(KeyboardInterrupt) as stop:
            loop(device)
        assert begun == [1]
        assert isinstance(stop.value, Interrupted)
        part = stop.value.partial
        assert part.stopped
        assert 0 < part.steps < STEPS
        assert not work(1, device, lambda _: None, part).stopped  # it goes on from there


def test_a_signal_that_means_ctrl_c_waits_as_ctrl_c_does() -> None:
    with ended_in_order() as ending:
        with deferred_interrupt() as interrupt:
            signal.raise_signal(signal.SIGTERM)
            assert interrupt.asked
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGHUP)  # a second one counts at once
        assert ending.exit_code == 129
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert ending.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_is_ignored_or_handled_by_others_is_left_alone() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_in_order() as ending, deferred_interrupt() as interrupt:
            signal.raise_signal(signal.SIGHUP)
            assert not interrupt.asked
            assert ending.last is None
    finally:
        signal.signal(signal.SIGHUP, before)


COMMAND = [
    sys.executable, "-m", "dashi", "rollout", "--A", "A.npy", "--z0", "z0.npy", "--device", "cpu", "--out", "run",
    "--hash-every", "20", "--checkpoint-every", "40", "--steps", "1000000000",
]  # fmt: skip

CHECKPOINT = Path("run/checkpoint.npz")


@pytest.fixture
def _inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", np.eye(4, dtype=np.float32))
    np.save("z0.npy", np.ones(4, np.float32))


@contextlib.contextmanager
def ended(running: subprocess.Popen[Any]) -> Generator[None]:
    """Whatever happens within, the process does not outlive it."""
    try:
        yield
    finally:
        running.kill()


def until_under_way() -> int:
    """Waits for the first checkpoint; its step."""
    while not CHECKPOINT.is_file():
        time.sleep(0.01)
    return int(read_arrays(CHECKPOINT)["step"])


@pytest.mark.usefixtures("_inputs")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_sigterm_and_sighup_keep_what_was_finished(number: int, code: int) -> None:
    with (
        subprocess.Popen(
            ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *COMMAND],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running,
        ended(running),
    ):  # as a shell starts what runs in the background: without Ctrl-C
        steps = until_under_way()
        running.send_signal(number)
        _, err = running.communicate(timeout=120)
    assert running.returncode == code, err
    assert "go on: " in err
    assert err.endswith("stopped\n")
    assert int(read_arrays(CHECKPOINT)["step"]) >= steps


@pytest.mark.usefixtures("_inputs")
def test_a_terminal_that_hangs_up_takes_nothing_with_it() -> None:
    terminal, end = pty.openpty()
    with subprocess.Popen(COMMAND, stdout=end, stderr=end, start_new_session=True) as running:
        os.close(end)
        with ended(running):
            steps = until_under_way()
            os.close(terminal)  # whoever writes to it now fails
            running.send_signal(signal.SIGHUP)
            assert running.wait(timeout=120) == 129
    assert int(read_arrays(CHECKPOINT)["step"]) >= steps
