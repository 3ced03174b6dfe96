"""What `dashi flow simulate` takes beside its steps alone: the job in one process, timed by stage.

    python benchmarks/simulate_wall.py --device vulkan:0 --n 1024 --steps 20000 --frame-every 100
    python benchmarks/simulate_wall.py --steps 400 --frame-every 0 --json          # 0: the default, ten frames

- start-up: importing the job, opening the device.
- set-up: from the call to the first submission: initial states, tables, pipelines, the look at the start.
- loop: from the first submission until the last result was taken in, with looks and frames.
- closing: until the run folder is whole: frames on the disk, certificate, metrics.

`steps x step` is what the steps alone would take, by the step time of `dashi bench flow`, measured in the same process.
The parts are wall times of single functions, those of others within them included; `beside` are those of the writing
thread, which the loop hides.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PARTS = {
    "initial states": "dashi.lab.simulations:states_of",
    "identity": "dashi.lab.simulations:identity",
    "tables": "dashi.flow._operator:Vorticity.load",
    "engine": "dashi.core.rollouts._engine:DeviceEngine.__init__",
    "look at the start": "dashi.core.rollouts._loop:Loop._look_at_start",
    "recording programs": "dashi.core.rollouts._engine:DeviceEngine._record",
    "finishing frames": "dashi.flow._trajectory:TrajectoryWriter.wait",
    "checkpoints": "dashi.flow._trajectory:write_checkpoint",
    "frames": "dashi.flow._trajectory:Trajectory.add",
    "certificate": "dashi.lab.simulations:certify_folder",
    "metrics": "dashi.lab.simulations:build_metrics",
    "last state and metrics": "dashi.lab.simulations:_leave",
}
"""Functions of the job, by what they do."""


class Clock:
    """Adds up the seconds of functions, in the thread of the job and beside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.marks: dict[str, tuple[float, float]] = {}

    def watch(self, name: str, place: str) -> None:
        """Times a function from now on."""
        module, _, path = place.partition(":")
        *owners, last = path.split(".")
        owner: Any = importlib.import_module(module)
        for one in owners:
            owner = getattr(owner, one)
        setattr(owner, last, self.timed(name, getattr(owner, last)))

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                ended = time.perf_counter()
                beside = "" if threading.current_thread() is threading.main_thread() else ", beside"
                key = f"{name}{beside}"
                self.seconds[key] = self.seconds.get(key, 0.0) + ended - began
                self.marks[name] = (began, ended)

        return timed


def measure(asked: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Seconds by stage."""
    began = time.perf_counter()
    import dashi
    from dashi.lab import SimulateRequest, simulate

    imported = time.perf_counter()
    with dashi.open(asked.device) as device:
        opened = time.perf_counter()
        from dashi.bench import flow as bench

        clock = Clock()
        clock.watch("loop", "dashi.core.rollouts._loop:Loop.go")
        for name, place in PARTS.items():
            clock.watch(name, place)
        flow, _ = bench.bench_flow(asked.n, asked.dtype)
        request = SimulateRequest(flow=flow, steps=asked.steps, frame_every=asked.frame_every or None)
        asked_at = time.perf_counter()
        run = simulate(request, device=device, out=out)
        done = time.perf_counter()
        step = bench.measure(device, asked.n, asked.dtype)
        name = device.info.name
    looked = clock.marks["look at the start"][1]
    loop = clock.marks["loop"][1]
    alone = asked.steps * step.us * 1e-6
    return {
        "device": name, "n": asked.n, "dtype": asked.dtype, "steps": asked.steps, "frame_every": asked.frame_every,
        "hash": run.hashes[-1].digest, "step_us": step.us, "steps_x_step": alone,
        "stages": {
            "start-up: import": imported - began, "start-up: device": opened - imported, "set-up": looked - asked_at,
            "loop": loop - looked, "closing": done - loop,
        },
        "wall_after_start_up": done - asked_at, "ratio": (done - asked_at) / alone,
        "loop_ratio": (loop - looked) / alone, "parts": clock.seconds,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="What `dashi flow simulate` takes beside its steps.")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--n", type=int, default=1024)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--frame-every", type=int, default=100, help="0: the default, ten frames")
    parser.add_argument("--out", type=Path, help="the run folder; a temporary one that is removed, unless given")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(asked, asked.out or Path(folder) / "run")
    if asked.json:
        print(json.dumps(result))
        return
    print(f"{result['device']}: {result['steps']} steps of {result['n']} x {result['n']}, {result['dtype']}")
    for name, seconds in result["stages"].items():
        print(f"  {name:24} {seconds:9.3f} s")
    print(f"  {'wall after start-up':24} {result['wall_after_start_up']:9.3f} s")
    print(f"  {'steps x step':24} {result['steps_x_step']:9.3f} s ({result['step_us']:.1f} us a step)")
    print(f"  ratio {result['ratio']:.3f}, of the loop {result['loop_ratio']:.3f}")
    for name, seconds in result["parts"].items():
        print(f"    {name:32} {seconds:9.3f} s")


if __name__ == "__main__":
    main()
