"""What float controls cost: kernels timed with and without rounding and NaN declared in their modules, by turns.

    python benchmarks/float_controls.py --device vulkan:0 > float-controls.json

Two logical devices of one GPU are open side by side, the second with DASHI_FLOAT_CONTROLS=0; rounds alternate between
them, so that both see the same clock. Prints JSON: for every workload the median microseconds of a call each way, their
ratio, and whether both gave the same bits.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

import dashi.fft
from dashi.bench.flow import bench_flow
from dashi.flow._operator import Vorticity
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime import open_device
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Step

SWITCH = "DASHI_FLOAT_CONTROLS"
Work = Callable[[Device], tuple[list[Step], Array]]
"""The steps of one call, and the array that holds its result."""


def values(*shape: int) -> Any:
    return np.random.default_rng(7).standard_normal(shape, dtype=np.float32)


def kernel(name: str, *inputs: Any, **scalars: Any) -> Work:
    def prepare(device: Device) -> tuple[list[Step], Array]:
        step = device.bind(name, *(device.array(i) for i in inputs), **scalars)
        return [step], step.outputs[0]

    return prepare


def transform(n: int) -> Work:
    def prepare(device: Device) -> tuple[list[Step], Array]:
        planned = dashi.fft.plan(device, (1, n, n), "fft2")
        source = device.array(values(*planned.source_shape))
        target = device.empty(planned.target_shape, planned.dtype)
        return list(planned.steps(source, target)), target

    return prepare


def solver_step(n: int) -> Work:
    def prepare(device: Device) -> tuple[list[Step], Array]:
        flow, states = bench_flow(n, "float32")
        operator = Vorticity(flow)
        source, target = device.array(states), device.empty(states.shape, states.dtype)
        return list(operator.step(device, operator.load(device), source, target)), target

    return prepare


def workloads(scale: int) -> dict[str, Work]:
    """Large enough for a GPU with scale 1; each doubling of `scale` halves lengths, or quarters them."""
    m, n = 4096 // scale, (1 << 26) // scale**2
    return {
        f"gemm_tiled {m}": kernel("gemm_tiled", values(m, m), values(m, m)),
        f"axpy {n}": kernel("axpy", values(n), values(n), a=1.5),
        f"fft2 {1024 // scale}": transform(1024 // scale),
        f"vorticity step {1024 // scale}": solver_step(1024 // scale),
        f"reduce_sum {n}": kernel("reduce_sum", values(n)),
    }


def microseconds(program: Program, calls: int) -> float:
    timing = program.run_timed()
    return (timing.wall if timing.device is None else timing.device) / 1000 / calls


def compare(devices: Sequence[Device], work: Work, rounds: int, calls: int) -> dict[str, Any]:
    with ExitStack() as stack:
        programs: list[Program] = []
        results: list[bytes] = []
        for device in devices:
            steps, result = work(device)
            timed = device.info.timestamp_ns > 0
            programs.append(stack.enter_context(device.program(steps * calls, timed=timed)))
            programs[-1].run()
            results.append(result.numpy().tobytes())
        if devices[0].info.is_hardware:
            stopwatch.warm(programs[0].run, stopwatch.HARDWARE.warm)
        taken = [[microseconds(program, calls) for program in programs] for _ in range(rounds)]
    declared, plain = (statistics.median(times) for times in zip(*taken, strict=True))
    return {
        "declared_us": declared,
        "plain_us": plain,
        "ratio": statistics.median(a / b for a, b in taken),
        "same_bits": results[0] == results[1],
    }


def opened(spec: str, switch: str) -> Device:
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = switch
    try:
        return open_device(spec, validation=False)
    finally:
        os.environ.pop(SWITCH)
        if before is not None:
            os.environ[SWITCH] = before


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Times kernels with and without float controls.")
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", type=int, help="1 on hardware, else 8: how much smaller than for a GPU")
    options = parser.parse_args(words)
    with opened(options.device, "1") as declared, opened(options.device, "0") as plain:
        hardware = declared.info.is_hardware
        scale = options.scale or (1 if hardware else 8)
        rows = {
            name: compare((declared, plain), work, options.rounds, 10 if hardware else 1)
            for name, work in workloads(scale).items()
        }
        info = declared.info
    document = {"device": info.name, "driver": info.driver_info, "float_rules": info.float_rules, "workloads": rows}
    sys.stdout.write(json.dumps(document, indent=1) + "\n")
    return 0 if all(row["same_bits"] for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
