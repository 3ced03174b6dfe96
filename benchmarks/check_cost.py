"""What the check costs that states are finite: how often it ran in a rollout or a simulation, times what it takes.

    python benchmarks/check_cost.py --device cpu --device vulkan:0

The run is timed without the check, the check by itself, each at its best of several rounds. Both together would only
show the noise of the machine: the check is one or two small dispatches at the end of a block of 50 ms.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dashi
from dashi.core import Linear, rollout
from dashi.flow import Flow, ensemble
from dashi.flow.simulation import simulate
from dashi.runtime import Device

ROUNDS = 3
CHECKS = 20
"""In one program."""


def best(work: Callable[[], Any]) -> float:
    """Seconds; the first call makes the pipelines."""
    work()
    taken: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def tell(device: Device, name: str, kernel: str, states: Any, run: Callable[..., Any]) -> None:
    """Prints what the check is of a run: `run` does it with the check, or without."""
    values = device.array(states)
    check = device.bind(kernel, values)
    with device.program([check] * CHECKS) as program:
        each = best(program.run) / CHECKS
    if device.info.type == "reference" and kernel == "reduce_sum":
        each = best(lambda: np.isfinite(values.numpy()).all())  # a rollout by NumPy looks at once
    blocks: list[int] = []
    whole = best(lambda: run(False))
    run(True, progress=blocks.append)  # told of every block, which ends with a check
    share, count = len(blocks) * each / whole, len(blocks)
    print(
        f"{device.info.spec:9} {name:46} {whole:7.3f} s, {count:3} checks of {each * 1e6:6.1f} us: {share:.3%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", action="append", required=True)
    parser.add_argument("--steps", type=int, default=2000, help="of rollouts; simulations have a hundredth")
    asked = parser.parse_args()
    for spec in asked.device:
        with dashi.open(spec) as device:
            for d in (128, 654):
                matrix = np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))[0].astype(np.float32)
                operator, z0 = Linear(matrix), np.linspace(-1, 1, d, dtype=np.float32)[None]
                for every in (0, 100):
                    name = f"rollout, D = {d}, {asked.steps} steps" + (f", a hash every {every}" if every else "")
                    tell(
                        device, name, "reduce_sum", z0,
                        lambda stop, o=operator, z=z0, e=every, **more: rollout(
                            o, z, asked.steps, device=device, hash_every=e, stop_on_nonfinite=stop, **more
                        ),
                    )  # fmt: skip
            flow, steps = Flow(128, dt=0.005), max(1, asked.steps // 100)
            states = ensemble(flow, "random", 1)
            tell(
                device, f"simulate, n = 128, {steps} steps", "reduce_statistics", states,
                lambda stop, f=flow, s=states, n=steps, **more: simulate(
                    f, s, n, device=device, stop_on_nonfinite=stop, **more
                ),
            )  # fmt: skip


if __name__ == "__main__":
    main()
