"""`dashi bench fft`: what it measures is checked first, and peers that are not there are told of; other radices too."""

from __future__ import annotations

import argparse
import runpy
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi.fft
from dashi.bench import fft as bench
from dashi.bench.fft import TransformCase
from dashi.bench.peers import fft as peers
from dashi.errors import InputError
from dashi.kernels.fft._roots import radices
from dashi.runtime import Device
from dashi.runtime.device import Timing


@pytest.mark.parametrize("kind", ["fft2", "rfft2", "irfft2"])
def test_a_case_is_timed_after_its_bits_were_compared(kind: Any, device: Device) -> None:
    case = TransformCase(kind, 8)
    (measurement,) = bench.measure(device, case)
    assert measurement.checked == "same bits as NumPy"
    assert measurement.us is not None
    assert measurement.least_us is not None
    assert 0 < measurement.least_us <= measurement.us
    row = bench.document(case, (measurement,), {"torch": 1.0})
    assert (row["case"], row["best_us"]) == (f"{kind} 8^2, fp32", measurement.us)


def test_two_passes_move_everything_twice() -> None:
    assert bench.floor_bytes(TransformCase("fft2", 1024)) == 4 * 8 * 1024**2
    assert bench.floor_bytes(TransformCase("rfft2", 8)) == 4 * 64 + 3 * 8 * 8 * 5


def test_every_case_has_tunings_to_compare() -> None:
    assert all(bench.tunings_of(case) for case in bench.CASES)


def test_an_unknown_peer_is_an_error_with_a_fix() -> None:
    with pytest.raises(InputError, match=r"there is no peer 'matlab'\. Fix: use torch"):
        peers.load("matlab")


def test_the_device_class_is_near_the_portable_one(device: Device) -> None:
    field = np.random.default_rng(3).standard_normal((2, 24, 32, 2)).astype(np.float32)
    exact, fast = (
        dashi.fft.plan(device, (2, 24, 32), "fft2", portable=portable)
        .run(device.array(field))
        .numpy()
        .astype(np.float64)
        for portable in (True, False)
    )
    assert np.linalg.norm(fast - exact) <= bench.FAST_BOUND * np.linalg.norm(exact)
    with pytest.raises(InputError, match="rfft2 of float32 is always portable"):
        dashi.fft.plan(device, (8, 8), "rfft2", portable=False)


class Cooled:
    """A program that takes five times as long for its first runs."""

    def __init__(self, slow: int) -> None:
        self.slow, self.runs = slow, 0

    def run_timed(self) -> Timing:
        self.runs += 1
        time.sleep(0.01)
        return Timing(wall=1, enqueue=0, wait=0, device=20_000 * (5 if self.runs <= self.slow else 1))


def test_the_script_tells_how_long_a_device_is_slow() -> None:
    script = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "idle_clock.py"))
    told = script["after"](Cooled(3), 0.0, 0.1)
    assert told.startswith("idle for 0 s: first 5.0 us, last 1.0 us, slow for 0.0")
    assert "never slow" in script["after"](Cooled(0), 0.0, 0.02)


def test_other_radices_are_tried_and_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "fft_radices.py"
    script = runpy.run_path(str(path))
    assert script["main"](["--device", "cpu", "--side", "32", "--radices", "32=16x2,16=4x4", "--each", "4"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    tried = [line.partition(": us: ")[0] for line in lines]
    assert tried == [
        f"n 32, {named}, each {each}" for named in ("as they are", "32=16x2,16=4x4") for each in ("as tuned", "4")
    ]
    assert all("RK4 step " in line and "WRONG" not in line for line in lines)
    assert (radices(32), radices(16)) == ((4, 2, 4), (16,))
    with script["instead"](script["read"]("32=16x2"), None):
        assert radices(32) == radices(32, "rows") == (16, 2)
        assert radices(96) == (8, 4, 3)
    with pytest.raises(argparse.ArgumentTypeError, match=r"'64=2x2x4x4': give a power of two as up to 3 of"):
        script["read"]("64=2x2x4x4")
