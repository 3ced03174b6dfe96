"""Ops of index, order and shape in graphs: python benchmarks/index_ops.py [--device vulkan:0] [--json].

For each op: microseconds on the device's clock (the median of runs), dispatches, the bytes that it has to read and
write, and these bytes beside what a map moves in the same run (`of_copy`, 1 where an op is as fast as memory). Values
lie on the device, and one element comes back. Before, every op is held to the bits of the uncompiled run at a small
size.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import dashi
from dashi import graph as dg
from dashi.runtime.device import Device

Make = Callable[[dg.Builder, dg.Tensor, Any], dg.Tensor]
WIDTH = 256


def rows(b: dg.Builder, x: dg.Tensor, rng: Any) -> dg.Tensor:
    """Random rows of x, as many as there are, as a param."""
    return b.param("rows", rng.integers(0, x.shape[0], x.shape[0]).astype(np.uint32))


def places(b: dg.Builder, x: dg.Tensor, rng: Any) -> dg.Tensor:
    """A random row for each element of x, as a param."""
    return b.param("places", rng.integers(0, x.shape[0], x.shape).astype(np.uint32))


OPS: dict[str, tuple[Make, float]] = {
    "map": (lambda b, x, rng: x * 2.0, 2),
    "gather rows": (lambda b, x, rng: dg.gather(x, rows(b, x, rng)), 2),
    "gather_elements": (lambda b, x, rng: dg.gather_elements(x, places(b, x, rng), 0), 3),
    "scatter_elements": (lambda b, x, rng: dg.scatter_elements(x, places(b, x, rng), x * 2.0), 4),
    "scatter_add rows": (lambda b, x, rng: dg.scatter_add(x, rows(b, x, rng), x * 2.0), 3),
    "scatter max": (lambda b, x, rng: dg.scatter_elements(x, places(b, x, rng), x * 2.0, join="max"), 4),
    "concat in place": (lambda b, x, rng: dg.concat([dg.tanh(x), x * 2.0]), 4),
    "concat along 1": (lambda b, x, rng: dg.concat([dg.tanh(x), x * 2.0], 1), 4),
    "pad": (lambda b, x, rng: dg.pad(x, [(0, 0), (1, 1)], "reflect"), 2),
    "tile": (lambda b, x, rng: dg.tile(x, [2, 1]) * 2.0, 3),
    "cumsum": (lambda b, x, rng: dg.cumsum(x, 1), 2),
    "cumsum of one row": (lambda b, x, rng: dg.cumsum(x.reshape(1, -1), 1), 2),
    "argmax": (lambda b, x, rng: dg.argmax(x, 1), 1),
    "top_k by pairs": (lambda b, x, rng: dg.top_k(x, 8)[0], 1),
    "sort of one row": (lambda b, x, rng: dg.sort(x.reshape(1, -1)), 2),
}
"""How each is made of x, and how many times the bytes of x it reads and writes at least."""


def graph_of(name: str, count: int, whole: bool) -> dg.Graph:
    """An op of so many rows; its whole result, or one element."""
    rng = np.random.default_rng(3)
    b = dg.Builder(name.replace(" ", "_"))
    x = b.param("x", rng.standard_normal((count, WIDTH)).astype(np.float32))
    result = OPS[name][0](b, x, rng)
    if whole:
        return b.graph(y=result)
    return b.graph(y=dg.slice_(result, [0] * len(result.shape), [1] * len(result.shape)))


def measured(device: Device, name: str, count: int, repeats: int) -> dict[str, Any]:
    """One row of the table."""
    small = graph_of(name, 37, whole=True)
    with dg.compile(small, device) as pipeline:
        same = pipeline.dispatch({})["y"].tobytes() == dg.evaluate(small, {})["y"].tobytes()
    with dg.compile(graph_of(name, count, whole=False), device) as pipeline:
        times = [pipeline.dispatch_timed({})[1].device for _ in range(repeats + 2)][2:]
        report = pipeline.report()
    moved = OPS[name][1] * count * WIDTH * 4
    us = statistics.median(time for time in times if time is not None) / 1000
    return {
        "op": name,
        "us": us,
        "bytes_per_us": moved / us,
        "dispatches": report.dispatches,
        "host_steps": len(report.host_steps),
        "checked": same,
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--rows", type=int, default=1 << 16, help=f"rows of {WIDTH} elements")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with dashi.open(options.device) as device:
        table = [measured(device, name, options.rows, options.repeats) for name in OPS]
    copied = table[0]["bytes_per_us"]
    for row in table:
        row["of_copy"] = row.pop("bytes_per_us") / copied
    if options.json:
        print(json.dumps({"rows": options.rows, "width": WIDTH, "ops": table}))
        return
    for row in table:
        print(
            f"{row['op']:20} {row['us']:12.1f} us {row['of_copy']:6.2f} of a copy, {row['dispatches']:3} dispatches, "
            f"{row['host_steps']} host steps, {'same bits' if row['checked'] else 'OTHER BITS'}"
        )


if __name__ == "__main__":
    main()
