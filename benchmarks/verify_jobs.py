"""How much sooner several processes verify a certificate: a run with kept states, verified by one process and by N.

    python benchmarks/verify_jobs.py --device cpu --jobs 2

Rounds alternate, so that both see the same machine; the best and the median are told, beside how busy the machine was.
A process that is started takes half a second before its first step, which is part of the time. On a machine with other
work the seconds of processor time tell more: N times those of one process, over those of N together, is how much
sooner they are done if each has a core.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dashi
from dashi.lab._child_processes import core_count


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def verified(folder: Path, device: str, jobs: int, segments: int) -> tuple[float, float]:
    """Seconds that it takes, and of processor time; all segments must come out as claimed."""
    began, used = time.perf_counter(), processor_seconds()
    result = dashi.verify(folder, device=device, jobs=jobs)
    seconds = time.perf_counter() - began, processor_seconds() - used
    if not result.same or (result.segments, result.verified) != (segments, segments):
        raise SystemExit(f"not verified: {result}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="default: cpu")
    parser.add_argument("--jobs", type=int, default=2, help="default: 2")
    parser.add_argument("--segments", type=int, default=16, help="default: 16")
    parser.add_argument("--steps", type=int, default=1000, help="of each segment; default: 1000")
    parser.add_argument("--size", type=int, default=654, help="numbers of the state, in fp64; default: 654")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    asked = parser.parse_args()
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((asked.size, asked.size)))
    times: dict[int, list[tuple[float, float]]] = {1: [], asked.jobs: []}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "run")
        dashi.rollout(
            dashi.Linear(turn), np.ones(asked.size), asked.segments * asked.steps, hash_every=asked.steps,
            states_every=asked.steps, device=asked.device, out=folder,
        )  # fmt: skip
        for _ in range(asked.rounds):
            for jobs, taken in times.items():
                taken.append(verified(folder, asked.device, jobs, asked.segments))
                seconds, used = taken[-1]
                sys.stdout.write(
                    f"{jobs} process(es): {seconds:.2f} s, {used:.2f} s of processors, load {os.getloadavg()[0]:.1f}\n"
                )
                sys.stdout.flush()
    (one, used_by_one), (several, used) = (zip(*times[jobs], strict=True) for jobs in (1, asked.jobs))
    sys.stdout.write(
        f"{asked.segments} segments of {asked.steps} steps, D = {asked.size}, {asked.device}, {core_count()} cores: "
        f"{asked.jobs} processes are {min(one) / min(several):.2f} x as quick at their best, "
        f"{statistics.median(one) / statistics.median(several):.2f} x in the median; by processor time "
        f"{asked.jobs * min(used_by_one) / min(used):.2f} x\n"
    )


if __name__ == "__main__":
    main()
