"""Claims about benchmarks/frames.py: idle time is named by what the thread of the run did, and it runs whole."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "frames.py"
MILLISECOND = 1_000_000


@pytest.fixture(scope="module")
def frames() -> Any:
    spec = importlib.util.spec_from_file_location("frames_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_idle_time_is_named_by_the_innermost_function_and_adds_up(frames: Any) -> None:
    watch = frames.Watch()
    # Submitted, begun, ended: one in time, one that came late, one that was there and had to wait.
    blocks = [(0, 1, 10), (5, 10, 20), (32, 34, 40), (35, 41, 50)]
    watch.blocks = [tuple(MILLISECOND * at for at in block) for block in blocks]
    spans = [(18, 30, "taking in looks"), (22, 25, "waiting for the writer"), (60, 70, "submitting")]
    watch.spans = [(MILLISECOND * begin, MILLISECOND * end, name) for begin, end, name in spans]
    idle = watch.idle()
    assert {name: round(1000 * seconds) for name, seconds in idle.items()} == {
        "taking in looks": 7, "waiting for the writer": 3, "other work of the thread": 2, "between blocks": 3,
    }  # fmt: skip
    assert round(1000 * watch.busy()) == 9 + 10 + 6 + 9


def test_bytes_alone_are_the_files_of_a_run(frames: Any, tmp_path: Path) -> None:
    assert frames.write_alone(tmp_path / "alone", 5, 1000) > 0
    assert [file.stat().st_size for file in (tmp_path / "alone").iterdir()] == [1000] * 5


@pytest.mark.long
@pytest.mark.parametrize("words", ["--n 16 --steps 40 --live", "--decode --n 16 --steps 40"])
def test_the_script_measures_and_changes_no_bit(words: str) -> None:
    line = [sys.executable, str(SCRIPT), "--device", "cpu", "--repeats", "1", "--json", *words.split()]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    if "--decode" in words:
        assert {*result["seconds"]} == {"none", "behind", "queue 1", "cpu"}
        return
    assert result["same_bits"]
    assert result["bytes"] == 5 * 4 * 16 * 16 * 4
    assert result["fields"] == ["vorticity", "streamfunction", "velocity_x", "velocity_y"]
    assert result["ratio"] == result["frames_s"] / max(result["without_s"], result["alone_s"])
    assert result["queue_busy_s"] > 0
