"""Steps of the old code's map, z A at D = 654, as it ran and as it runs here.

python benchmarks/v4_speeds.py [DEVICE]
"""

from __future__ import annotations

import sys
import time

import numpy as np

import dashi
from dashi.core.operators.affine import Linear
from dashi.core.operators.operator import Strategy
from dashi.core.rollouts.rollout import rollout
from dashi.flow.v4.linear import learn, roll
from dashi.flow.v4.measure import record


def main() -> None:
    z = record(128, 60, 0).z
    matrix = learn(z)
    start = time.perf_counter()
    roll(z[0], matrix, 2000)
    print("NumPy, float64:", round(2000 / (time.perf_counter() - start)), "steps per second")
    ways: tuple[tuple[Strategy | None, int], ...] = ((None, 200_000), ("stepwise", 20_000))
    with dashi.open(sys.argv[1] if len(sys.argv) > 1 else "auto") as device:
        learn(z, device=device)  # makes the pipelines
        start = time.perf_counter()
        learn(z, device=device)
        print(f"{device.info.name}, learning A: {time.perf_counter() - start:.3f} s")
        for kind in (np.float64, np.float32):
            operator, first = Linear(matrix.astype(kind)), z[0].astype(kind)
            for way, steps in ways:
                asked = way or "auto"
                rollout(operator, first, 1000, device=device, strategy=asked, stop_on_nonfinite=False)
                run = rollout(operator, first, steps, device=device, strategy=asked, stop_on_nonfinite=False)
                print(
                    f"{device.info.name}, {np.dtype(kind)}, {run.strategy}: "
                    f"{run.steps / run.seconds:,.0f} steps per second"
                )


if __name__ == "__main__":
    main()
