"""How long a GPU that was idle is slow, and by how much.

    python benchmarks/idle_clock.py --device vulkan:0 --idle 0 1 3 10

Runs a transform again and again after each of these pauses, in seconds. A line tells what it took at first and in the
end, by the device's own clock, and how long it was slow: until it took 1.1 times the least time, or less, from then on.
`dashi.runtime._stopwatch` lets a device work for longer than that before it measures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

import dashi.fft
from dashi.runtime import open_device
from dashi.runtime.device import Program

AT_ONCE = 20
"""Transforms of a run."""


def after(program: Program, idle: float, lasting: float) -> str:
    """What runs take after a pause, for so many seconds."""
    time.sleep(idle)
    began, seen = time.perf_counter(), list[tuple[float, float]]()
    while not seen or seen[-1][0] < lasting:
        at, timing = time.perf_counter() - began, program.run_timed()
        seen.append((at, (timing.wall if timing.device is None else timing.device) / 1000 / AT_ONCE))
    least = min(us for _, us in seen)
    slow = max((at for at, us in seen[:-1] if us > 1.1 * least), default=None)
    until = "never slow" if slow is None else f"slow for {slow:.2f} s"
    return f"idle for {idle:g} s: first {seen[0][1]:.1f} us, last {seen[-1][1]:.1f} us, {until} ({len(seen)} runs)"


def main(words: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="vulkan:0")
    options.add_argument("--idle", type=float, nargs="+", default=[0, 1, 3, 10])
    options.add_argument("--side", type=int, default=4096, help="of the field that is transformed")
    options.add_argument("--lasting", type=float, default=1.0, help="seconds that runs go on after a pause")
    given = options.parse_args(words)
    with open_device(given.device) as device:
        print(device.info.name)
        plan = dashi.fft.plan(device, (given.side, given.side), "fft2")
        field = device.array(np.random.default_rng(0).standard_normal(plan.source_shape).astype(np.float32))
        with device.program(plan.steps(field) * AT_ONCE, timed=device.info.timestamp_ns > 0) as program:
            after(program, 0.0, given.lasting)
            for idle in given.idle:
                print(after(program, idle, given.lasting), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
