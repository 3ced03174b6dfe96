"""Convolutions of graphs beside cuDNN, in one run: python benchmarks/convolutions.py [--device vulkan:0] [--json].

For each layer (of a residual network for pictures, at two batch sizes, and a depthwise one): microseconds on the
device's clock of relu(conv(x, w) + bias) as graphs compile it (with the frame, where there is padding), of the same by
a matrix of windows, and of torch on CUDA (fp32 without TF32, in a CUDA graph). Results are compared with one another
first: those of dashi to the last bit, torch's to 1e-4 of the largest.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import dashi
from dashi import graph as dg
from dashi.bench.peers.cuda_timing import replays_us
from dashi.bench.peers.gpu_library import load_library
from dashi.graph.evaluation import evaluate_node
from dashi.graph.op import Launch
from dashi.graph.ops._leaves import constant_values
from dashi.graph.registry import get
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime.device import Device

AT_ONCE = 10
"""Layers of a run."""
LAYERS = (  # batch, channels, side, results, taps, stride, groups
    (1, 3, 224, 64, 7, 2, 1), (1, 64, 56, 64, 3, 1, 1), (1, 128, 28, 128, 3, 1, 1), (1, 256, 14, 256, 3, 1, 1),
    (1, 512, 7, 512, 3, 1, 1), (1, 256, 56, 64, 1, 1, 1), (1, 144, 56, 144, 3, 1, 144),
    (32, 3, 224, 64, 7, 2, 1), (32, 64, 56, 64, 3, 1, 1), (32, 128, 28, 128, 3, 1, 1), (32, 256, 14, 256, 3, 1, 1),
    (32, 512, 7, 512, 3, 1, 1), (32, 256, 56, 64, 1, 1, 1), (32, 144, 56, 144, 3, 1, 144),
)  # fmt: skip
Layer = tuple[int, int, int, int, int, int, int]


def layer_graph(layer: Layer, columns: bool) -> dg.Graph:
    """relu(conv + bias) of a layer; or by its columns."""
    batch, channels, side, results, taps, stride, groups = layer
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((results, channels // groups, taps, taps)).astype(np.float32)
    b = dg.Builder("layer")
    x = b.input("x", (batch, channels, side, side))
    w = b.param("w", weights / np.float32(math.sqrt(weights[0].size)))
    bias = b.param("bias", rng.standard_normal(results).astype(np.float32))
    if not columns:
        return b.graph(y=dg.relu(dg.conv(x, w, bias, stride=stride, padding=taps // 2, groups=groups)))
    patches = dg.im2col(x, (taps, taps), stride=stride, padding=taps // 2)
    patches = patches.reshape(batch, groups, channels // groups * taps * taps, -1)
    product = w.reshape(groups, results // groups, -1) @ patches
    return b.graph(y=dg.relu(product + bias.reshape(groups, results // groups, 1)))


def run(device: Device, graph: dg.Graph, x: Any) -> tuple[float, Any, list[str]]:
    """Microseconds of the kernels of a graph, its result, and their names."""
    lowered = dg.run_passes(graph)
    arrays: dict[str, Any] = {}
    steps: list[Any] = []
    for node in lowered.nodes:
        if node.op == "input":
            arrays[node.name] = device.array(x)
        elif node.op == "param":
            arrays[node.name] = device.array(graph.params[node.name])
        elif node.op == "constant":
            arrays[node.name] = device.array(constant_values(node))
        elif node.op == "packed":
            arrays[node.name] = device.array(evaluate_node(node, graph.params[node.inputs[0]]))
        elif node.op == "view":
            arrays[node.name] = arrays[node.inputs[0]].reshape(node.shape)
        else:
            make = get(node.op).launch
            launch = make(node, [source.type for source in lowered.sources(node)]) if make else None
            assert isinstance(launch, Launch), f"no kernel computes {node}"
            operands = [arrays[name].reshape(shape) for name, shape in zip(node.inputs, launch.shapes, strict=True)]
            out = device.empty(launch.result, np.float32)
            scalars: dict[str, Any] = dict(launch.scalars)
            steps.append(device.bind(launch.kernel, *operands, out=out, **scalars))
            arrays[node.name] = out.reshape(node.shape)
    with device.program(steps * AT_ONCE, timed=device.info.timestamp_ns > 0) as program:

        def once() -> float:
            timing = program.run_timed()
            return (timing.wall if timing.device is None else timing.device) / 1000 / AT_ONCE

        hardware = not device.limits.software
        if hardware:
            stopwatch.warm(once, stopwatch.HARDWARE.warm)
        taken = statistics.median(once() for _ in range(15 if hardware else 3))
    name = lowered.outputs[0][1]
    return taken, arrays[name].numpy(), [step.kernel.name for step in steps]


def torch_us(torch: Any, layer: Layer, graph: dg.Graph, x: Any, expected: Any) -> float:
    """Microseconds of torch, whose result is compared first."""
    *_, taps, stride, groups = layer
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    value, w, bias = (torch.tensor(v, device="cuda") for v in (x, graph.params["w"], graph.params["bias"]))

    def work() -> Any:
        y = torch.nn.functional.conv2d(value, w, bias, stride=stride, padding=taps // 2, groups=groups)
        return torch.relu_(y)

    result = work().cpu().numpy()
    assert np.abs(result - expected).max() < 1e-4 * np.abs(expected).max(), "torch computes something else"
    return statistics.median(replays_us(torch, work, 30, runs=3))


def main(words: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--layer", action="append", help="BATCH,CHANNELS,SIDE,RESULTS,TAPS,STRIDE,GROUPS")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    layers: list[Any] = [tuple(map(int, text.split(","))) for text in options.layer or ()] or list(LAYERS)
    torch = None if options.no_peer else load_library("torch", ("torch",))
    rows: list[dict[str, Any]] = []
    with dashi.open(options.device) as device:
        for layer in layers:
            x = np.random.default_rng(2).standard_normal((*layer[:2], layer[2], layer[2])).astype(np.float32)
            graph = layer_graph(layer, columns=False)
            us, y, names = run(device, graph, x)
            by_columns, same, _ = run(device, layer_graph(layer, columns=True), x)
            assert y.tobytes() == same.tobytes(), "the two ways differ"
            peer = torch_us(torch, layer, graph, x, y) if torch is not None else None
            flops = 2 * y.size * graph.params["w"][0].size
            row = {"layer": layer, "us": us, "columns_us": by_columns, "peer_us": peer, "tflops": flops / us / 1e6}
            rows.append({**row, "kernels": names})
            if not options.json:
                share = f"{peer:10.1f} {peer / us:6.2f}" if peer else ""
                kinds = ", ".join(name.split("_")[0] for name in names)
                print(f"{','.join(map(str, layer)):26} {us:10.1f} {by_columns:10.1f} {share}  {kinds}", flush=True)
        if options.json:
            print(json.dumps({"device": device.info.name, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
