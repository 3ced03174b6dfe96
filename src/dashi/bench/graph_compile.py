"""What compiling a graph takes, in a new process each: with an empty cache, and again.

from dashi.bench import graph_compile
times = graph_compile.measure("vulkan:0")
print(times.first_s, times.second_s, times.ratio)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import dashi
from dashi import graph as dg
from dashi.bench.minilm.model import build_minilm
from dashi.bench.minilm.weights import find_files, read_files
from dashi.errors import InputError
from dashi.graph.running import random_values

_CHILD: Final = "from dashi.bench import graph_compile; graph_compile.child()"
_CACHES: Final = ("DASHI_CACHE_DIR", "XDG_CACHE_HOME", "MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH")
_LONGEST: Final = 600


@dataclass(frozen=True)
class CompileTimes:
    """Seconds of the first compile and of those after it, and of the process's processors. `states` says what each had
    from the cache. The least of those after the first counts."""

    first_s: float
    second_s: float
    first_cpu_s: float
    second_cpu_s: float
    states: tuple[str, ...]
    program_id: str

    @property
    def ratio(self) -> float:
        """The time of a compile from the cache over that of the first."""
        return self.second_s / self.first_s

    def as_dict(self) -> dict[str, Any]:
        """What `dashi bench graph compile --json` prints."""
        return {**asdict(self), "ratio": self.ratio}


def measure(
    device: str = "auto", file: Path | None = None, *, tokens: int = 128, weights: Path | None = None, repeats: int = 3
) -> CompileTimes:
    """Times of a graph in text form, with random params; of MiniLM without one. The drivers' caches are empty too."""
    words = json.dumps(
        {
            "device": device,
            "file": str(file) if file else "",
            "tokens": tokens,
            "weights": "" if file else str(find_files(weights)),
        }
    )
    with tempfile.TemporaryDirectory(prefix="dashi-compile-") as folder:
        environment = {**os.environ, **dict.fromkeys(_CACHES, folder)}
        runs = [_run(words, environment) for _ in range(1 + max(1, repeats))]
    first, again = runs[0], runs[1:]
    if len({run["program_id"] for run in runs}) > 1:
        raise InputError("the graph changed between two compiles.", "leave its file alone meanwhile.")
    return CompileTimes(
        first["s"],
        min(run["s"] for run in again),
        first["cpu_s"],
        min(run["cpu_s"] for run in again),
        tuple(run["cache"] for run in runs),
        first["program_id"],
    )


def _run(words: str, environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONGEST,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise InputError(f"a compile failed in its process: {last[0]}", "compile the graph in this process to see why.")
    return json.loads(done.stdout)


def child() -> None:
    """One compile, in the process that is to be measured; prints its times."""
    words: dict[str, Any] = json.loads(sys.argv[1])
    if words["file"]:
        graph = dg.parse_graph(Path(words["file"]).read_text(encoding="utf-8"))
        params = random_values(graph, "param")
    else:
        graph, params = build_minilm(read_files(Path(words["weights"])).tensors, 1, words["tokens"]), None
    with dashi.open(words["device"], validation=False) as device:
        wall, processors = time.perf_counter(), time.process_time()
        with dg.compile(graph, device, params=params) as pipeline:
            took, busy = time.perf_counter() - wall, time.process_time() - processors
            report = pipeline.report()
            times = {"s": took, "cpu_s": busy, "cache": report.cache, "program_id": report.program_id}
    print(json.dumps(times))
