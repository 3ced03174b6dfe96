"""Five elementwise kernels fused into one dispatch, beside the five one after another, and beside copies.

    python benchmarks/fused_chain.py --device vulkan:0 --size 67108864

Prints JSON: for each chain and element type seconds, bytes moved per second, the share of the copy bandwidth (bytes
read and written are counted both; the yardstick is the faster of the driver's copy and the kernel `scale`), and whether
the bits are those of the five kernels. The two chains read one array and two; "strided" reads the second one through a
row that is repeated. Every tuning of the fused kernel is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import dashi
from dashi.kernels.abi import Kernel
from dashi.kernels.expressions import arguments, maximum, relu
from dashi.runtime import _bandwidth as bandwidth
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step


def seconds(device: Device, steps: Sequence[Step]) -> float:
    """The median time of one pass over the steps."""
    timed = stopwatch.measure(
        lambda n: bandwidth.TimedProgram(device.program(list(steps) * n, timed=True)), bandwidth.effort_for(device)
    )
    return timed.median


def one_array(device: Device, x: Array) -> tuple[Kernel, list[Array], list[Step]]:
    """maximum(1.5 x + 0.25, -1) 0.5 - 0.125: the fused kernel, its inputs, and its five kernels one after another."""
    (v,) = arguments("x")
    kernel = dashi.kernels.fuse(maximum(v * 1.5 + 0.25, -1.0) * 0.5 - 0.125)
    quarter, lowest, eighth = (device.full(x.shape, number, x.dtype) for number in (0.25, -1.0, 0.125))
    scaled = device.bind("scale", x, a=1.5)
    moved = device.bind("add", scaled.outputs[0], quarter)
    limited = device.bind("maximum", moved.outputs[0], lowest)
    halved = device.bind("scale", limited.outputs[0], a=0.5)
    return kernel, [x], [scaled, moved, limited, halved, device.bind("sub", halved.outputs[0], eighth)]


def two_arrays(device: Device, x: Array, y: Array) -> tuple[Kernel, list[Array], list[Step]]:
    """relu(1.5 x + y) 0.5 - x, likewise."""
    v, w = arguments("x y")
    kernel = dashi.kernels.fuse(relu(v * 1.5 + w) * 0.5 - v)
    scaled = device.bind("scale", x, a=1.5)
    moved = device.bind("add", scaled.outputs[0], y)
    limited = device.bind("relu", moved.outputs[0])
    halved = device.bind("scale", limited.outputs[0], a=0.5)
    return kernel, [x, y], [scaled, moved, limited, halved, device.bind("sub", halved.outputs[0], x)]


def measured(device: Device, name: str, kernel: Kernel, inputs: list[Array], five: list[Step], best: float) -> Any:
    """One row of the table."""
    with device.program(five) as program:
        program.run()
    expected = five[-1].outputs[0].numpy().tobytes()
    tunings: dict[str, Any] = {}
    for tuning in kernel.tunings:
        step = device.bind(kernel, *inputs, tuning=tuning)
        with device.program([step]) as program:
            program.run()
        same = step.outputs[0].numpy().tobytes() == expected
        took = seconds(device, [step])
        rate = (sum(a.nbytes for a in inputs) + step.outputs[0].nbytes) / took
        tunings[tuning] = {"seconds": took, "bytes_per_second": rate, "of_copy": rate / best, "same_bits": same}
    return {
        "chain": name,
        "dtype": str(inputs[0].dtype),
        "chosen": device.tuning_for(kernel, inputs[0].dtype.name),
        "separate_seconds": seconds(device, five),
        "fused": tunings,
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Fused chains beside separate kernels and copies.")
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--size", type=int, default=1 << 26, help="elements of an array")
    chosen = parser.parse_args(words)
    rng = np.random.default_rng(0)
    with dashi.open(chosen.device) as device:
        best = bandwidth.measure(device).best
        rows: list[Any] = []
        for dtype in (np.float32, np.float64):
            size = min(chosen.size, device.limits.storage_range // np.dtype(dtype).itemsize)
            x, y = (device.array(rng.standard_normal(size).astype(dtype)) for _ in range(2))
            rows.append(measured(device, "one array", *one_array(device, x), best))
            rows.append(measured(device, "two arrays", *two_arrays(device, x, y), best))
            wide = 1 << 10
            table, row = x.reshape(size // wide, wide), y[:wide]
            kernel, _, five = two_arrays(device, x, device.array(np.tile(row.numpy(), size // wide)))
            rows.append(measured(device, "strided", kernel, [table, row], five, best))
        document = {"device": device.info.name, "size": chosen.size, "copy_bytes_per_second": best, "chains": rows}
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
