"""The period of a chain with real kernels, beside what bounds it: its slowest stage alone, and the work of the cores.

    python benchmarks/stream_period.py examples/stream/worked_example.yaml --items 300

Items go through one at a time first: what the slowest stage takes then is one bound. The processor time that the chain
takes for one more item, over the number of cores, is the other (software Vulkan computes on them). The larger of both,
over the measured period, is the share that the chain reaches.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from contextlib import ExitStack
from pathlib import Path

from dashi import stream
from dashi.stream._device_chain import DeviceChain
from dashi.stream.running import drawn_payloads, open_devices


def one_after_another(plan: stream.StreamPlan, items: int) -> list[dict[str, object]]:
    """What each stage takes for an item by its device's clock, in microseconds, while no other is at work."""
    with ExitStack() as stack, DeviceChain(plan, open_devices(plan, stack)) as chain:
        for payload in drawn_payloads(plan, items):
            chain.read(chain.submit(payload))
        return [{"stage": row["id"], "device": row["device"], "us": row["device_us"]} for row in chain.record()]


def processor_seconds(plan: stream.StreamPlan, items: int) -> float:
    """What a run of so many items takes of all cores together, its set-up included."""
    begin = time.process_time()
    stream.run(plan, items)
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--bind", action="append", default=[], metavar="NAME=DEVICE")
    options = parser.parse_args()
    plan = stream.make_plan(stream.load(options.file, devices=dict(pair.split("=", 1) for pair in options.bind)))
    cores = len(os.sched_getaffinity(0))
    rows = one_after_another(plan, min(options.items, 100))
    slowest = max(float(str(row["us"])) for row in rows)
    best: dict[str, float] = {}
    for _ in range(options.repeats):
        few, many = max(1, options.items // 4), options.items
        core = (processor_seconds(plan, many) - processor_seconds(plan, few)) / (many - few) / cores * 1e6
        run = stream.run(plan, many)
        period = (run.period or 0.0) * 1e6
        if not best or period < best["period_us"]:
            bound = max(slowest, core)
            best = {"period_us": period, "cores_us": core, "bound_us": bound, "share": bound / period}
    print(json.dumps({"stages": rows, "slowest_us": slowest, "cores": cores, **best}, indent=2))


if __name__ == "__main__":
    main()
