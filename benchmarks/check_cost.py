"""What the check costs that states are finite: rollouts and simulations with it and without, in turns, in one run.

    python benchmarks/check_cost.py --device cpu --device vulkan:0

Times are the best of several rounds; the ratio is that of the bests, less 1. `--clock cpu` counts the processor's time
of all threads instead of the wall's, for NumPy and software Vulkan on a machine that others use.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dashi
from dashi.core import Linear, rollout
from dashi.flow import Flow, ensemble, simulate

ROUNDS = 7


def rotation(d: int) -> Linear:
    """An orthogonal matrix: states neither grow nor fade."""
    return Linear(np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))[0].astype(np.float32))


def cases(device: Any, seconds: float) -> dict[str, Callable[[bool], Any]]:
    """The work of each case, with the check or without; about as long as asked for."""
    made: dict[str, Callable[[bool], Any]] = {}
    for d in (128, 654):
        for every in (0, 1000):
            operator, z0 = rotation(d), np.linspace(-1, 1, d, dtype=np.float32)
            asked: dict[str, Any] = {"device": device, "hash_every": every}
            one = timed(lambda o=operator, z=z0, a=asked: rollout(o, z, 2000, **a)) / 2000
            steps = max(2000, int(seconds / one))
            name = f"rollout, D = {d}, {steps} steps" + (f", a hash every {every}" if every else "")
            made[name] = lambda stop, o=operator, z=z0, s=steps, a=asked: rollout(o, z, s, stop_on_nonfinite=stop, **a)
    flow = Flow(128, dt=0.005)
    states = ensemble(flow, "random", 1)
    for fast in (False, True) if device.info.type == "reference" else (False,):
        one = timed(lambda f=fast: simulate(flow, states, 4, device=device, fast=f)) / 4
        steps = max(8, int(seconds / one))
        made[f"simulate, n = 128, {steps} steps" + (", fast" if fast else "")] = lambda stop, s=steps, f=fast: simulate(
            flow, states, s, device=device, fast=f, stop_on_nonfinite=stop
        )
    return made


def timed(work: Callable[[], Any]) -> float:
    """Seconds of the second of two calls: the first makes the pipelines."""
    work()
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", action="append", required=True)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each of the runs")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    asked = parser.parse_args()
    clock = time.process_time if asked.clock == "cpu" else time.perf_counter
    for spec in asked.device:
        with dashi.open(spec) as device:
            for name, work in cases(device, asked.seconds).items():
                best = {True: np.inf, False: np.inf}
                work(True)
                for _ in range(ROUNDS):
                    for stop in best:
                        began = clock()
                        work(stop)
                        best[stop] = min(best[stop], clock() - began)
                share = best[True] / best[False] - 1
                told = f"{best[False]:.3f} s without, {share:+.2%} with the check"
                print(f"{device.info.spec:9} {name:50} {told}", flush=True)


if __name__ == "__main__":
    main()
