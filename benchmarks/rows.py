"""softmax, layer_norm and rms_norm along the last axis, and layer norm of a sum, beside copies and beside torch.

    python benchmarks/rows.py --device vulkan:0

Prints JSON: for each kernel, shape and tuning the median seconds on the device, bytes moved per second (operands and
results, once each) and the share of the copy bandwidth; and torch's median seconds for the same on CUDA, replayed from
a graph, where torch is installed and finds a device. The results of both are compared: the largest difference, over the
largest result.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import dashi
from dashi.kernels.abi import Kernel
from dashi.kernels.expressions import arguments
from dashi.runtime import _bandwidth as bandwidth
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step

SHAPES = ((4096, 4096), (128, 384), (65536, 64), (64, 32768))


def kernels() -> dict[str, Kernel]:
    """What is measured, by name."""
    x, y, gamma, beta = arguments("x y gamma beta")
    norm = dashi.kernels.row_map("layer_norm", x + y, lambda v: v * gamma + beta, inputs="x gamma beta y")
    named = {name: dashi.kernels.get(name) for name in ("softmax", "layer_norm", "rms_norm")}
    return {**named, "layer_norm_of_sum": norm}


def inputs(kernel: Kernel, shape: tuple[int, int]) -> list[Any]:
    """Normal numbers: full arrays for x and y, rows for gamma and beta."""
    rng = np.random.default_rng(0)
    full = [operand.name in ("x", "y") for operand in kernel.inputs]
    return [rng.standard_normal(shape if whole else shape[1:]).astype(np.float32) for whole in full]


def seconds(device: Device, step: Step) -> float:
    """The median time of one step."""
    timed = stopwatch.measure(
        lambda n: bandwidth.TimedProgram(device.program([step] * n, timed=True)), bandwidth.effort_for(device)
    )
    return timed.median


def measured(device: Device, name: str, kernel: Kernel, shape: tuple[int, int], best: float) -> Any:
    """One row of the table."""
    host = inputs(kernel, shape)
    arrays: list[Array] = [device.array(values) for values in host]
    tunings: dict[str, Any] = {}
    result: Any = None
    for tuning in kernel.tunings:
        step = device.bind(kernel, *arrays, tuning=tuning)
        took = seconds(device, step)
        result = step.outputs[0].numpy()
        rate = (sum(a.nbytes for a in arrays) + step.outputs[0].nbytes) / took
        tunings[tuning] = {"seconds": took, "bytes_per_second": rate, "of_copy": rate / best}
    row = {"kernel": name, "shape": list(shape), "chosen": device.tuning_for(kernel, "f32"), "tunings": tunings}
    return {**row, "torch": by_torch(name, host, result)}


def by_torch(name: str, host: Sequence[Any], result: Any) -> Any:
    """Seconds of torch for the same on CUDA, and how far its results are from ours; None where it is not there."""
    if find_spec("torch") is None:
        return None
    import torch  # pyright: ignore[reportMissingImports]
    from torch.nn import functional  # pyright: ignore[reportMissingImports]

    if not torch.cuda.is_available():
        return None
    x, *rest = (torch.from_numpy(values).cuda() for values in host)
    n = x.shape[-1]
    compute: dict[str, Callable[[], Any]] = {
        "softmax": lambda: torch.softmax(x, -1),
        "layer_norm": lambda: functional.layer_norm(x, (n,), rest[0], rest[1], 1e-5),
        "rms_norm": lambda: functional.rms_norm(x, (n,), rest[0], 1e-5),
        "layer_norm_of_sum": lambda: functional.layer_norm(x + rest[2], (n,), rest[0], rest[1], 1e-5),
    }
    other = compute[name]()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            other = compute[name]()
    times: list[float] = []
    for _ in range(15):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / 20)
    apart = float(np.max(np.abs(other.cpu().numpy() - result)) / np.max(np.abs(result)))
    return {"seconds": float(np.median(times)), "difference": apart}


def main(words: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Softmax and norms beside copies and torch.")
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--small", action="store_true", help="the shape 128 x 384 alone")
    chosen = parser.parse_args(words)
    with dashi.open(chosen.device) as device:
        best = bandwidth.measure(device).best
        shapes = SHAPES[1:2] if chosen.small else SHAPES
        rows = [measured(device, name, k, shape, best) for name, k in kernels().items() for shape in shapes]
        document = {"device": device.info.name, "copy_bytes_per_second": best, "rows": rows}
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
