"""What sorting takes, beside torch.sort in the same process where torch has a GPU; every result is checked first.

    python benchmarks/sort.py --device vulkan:0 --powers 16 20 24 26 --out runs/sort.json

Each row is one type of keys and one length: seconds of `sort` (keys alone), `argsort` and `sort_pairs` (keys, and a
word of 32 bits for each), with every tuning asked for; what counting takes of `sort` (the rest is moving); and torch's,
which always makes places of 64 bits too. `of_torch` is torch's time divided by ours: 0.5 is half its speed. torch
sorts unsigned words as signed ones.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dashi import kernels
from dashi.bench.peers.cuda_timing import Timed
from dashi.bench.peers.gpu_library import load_library
from dashi.errors import InputError
from dashi.kernels.abi import Call, Plan
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime import open_device
from dashi.runtime._bandwidth import TimedProgram, effort_for
from dashi.runtime.device import Device, Step
from dashi.types import DTYPES, HostArray

SORTS = ("sort", "argsort", "sort_pairs")


def random_keys(name: str, n: int) -> HostArray:
    """Any bits; for floating point normal numbers."""
    rng = np.random.default_rng(n)
    kind = DTYPES[name].numpy
    if kind.kind == "f":
        return rng.standard_normal(n).astype(kind)
    return np.frombuffer(rng.bytes(n * kind.itemsize), kind)


def steps_for(device: Device, keys: HostArray, tuning: str | None) -> dict[str, Step]:
    """The three sorts of the same keys, bound."""
    ours = device.array(keys)
    places = device.array(np.arange(len(keys), dtype=np.uint32).reshape(-1, 1))
    inputs = {"sort": (ours,), "argsort": (ours,), "sort_pairs": (ours, places)}
    return {name: device.bind(name, *inputs[name], tuning=tuning) for name in SORTS}


def require_right(device: Device, keys: HostArray, steps: dict[str, Step]) -> None:
    """Runs the three sorts once: the places must be those of a stable sort, and the others must agree with them."""
    with device.program(list(steps.values())) as program:
        program.run()
    places = steps["argsort"].outputs[0].numpy().astype(np.int64)
    ordered: Any = keys[places]
    rising = (ordered[1:] > ordered[:-1]) | ((ordered[1:] == ordered[:-1]) & (places[1:] > places[:-1]))
    seen = np.zeros(len(keys), bool)
    seen[places] = True
    right = bool(rising.all()) and bool(seen.all())
    right &= steps["sort"].outputs[0].numpy().tobytes() == ordered.tobytes()
    right &= steps["sort_pairs"].outputs[0].numpy().tobytes() == ordered.tobytes()
    right &= bool((steps["sort_pairs"].outputs[1].numpy().reshape(-1) == places).all())
    if not right:
        raise SystemExit(f"{len(keys)} keys of type {keys.dtype} are sorted wrongly: nothing is timed.")


def seconds(device: Device, step: Step) -> float:
    """The median of a call, on the device's own clock where it has one."""
    times = stopwatch.measure(lambda n: TimedProgram(device.program([step] * n, timed=True)), effort_for(device))
    return times.median


def counting_seconds(device: Device, keys: HostArray, tuning: str | None) -> float:
    """What the passes of `sort` take without those that move keys."""
    kernel = kernels.get("sort")

    def counting(call: Call) -> Plan:
        plan = kernel.plan(call)
        return replace(plan, dispatches=tuple(d for d in plan.dispatches if d.shader != "main"))

    return seconds(device, device.bind(replace(kernel, plan=counting), device.array(keys), tuning=tuning))


def torch_seconds(torch: Any, keys: HostArray) -> float:
    """torch.sort, stable, of the same bits."""
    signed = keys.view(f"i{keys.dtype.itemsize}") if keys.dtype.kind == "u" else keys
    tensor = torch.from_numpy(np.ascontiguousarray(signed).copy()).to("cuda")

    def calls(n: int) -> Timed:
        def work() -> None:
            for _ in range(n):
                torch.sort(tensor, stable=True)

        return Timed(torch, work)

    return stopwatch.measure(calls, stopwatch.HARDWARE).median


def measure(device: Device, torch: Any, name: str, n: int, tunings: list[str | None]) -> dict[str, Any]:
    """One row of the table."""
    keys = random_keys(name, n)
    row: dict[str, Any] = {"keys": name, "n": n, "tunings": {}}
    for tuning in tunings:
        steps = steps_for(device, keys, tuning)
        require_right(device, keys, steps)
        label = steps["sort"].tuning
        row["tunings"][label] = {sort: seconds(device, step) for sort, step in steps.items()}
        row["tunings"][label]["counting"] = counting_seconds(device, keys, tuning)
    if torch is not None:
        theirs = row["torch"] = torch_seconds(torch, keys)
        torch.cuda.empty_cache()
        row["of_torch"] = {
            label: {sort: theirs / times[sort] for sort in SORTS} for label, times in row["tunings"].items()
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--powers", type=int, nargs="+", default=[16, 20, 24, 26], help="lengths, as powers of two")
    parser.add_argument("--keys", nargs="+", default=["u32", "f32", "u64"])
    parser.add_argument("--tunings", nargs="+", default=[None], help="all that are named; else the device's own")
    parser.add_argument("--out", type=Path, help="a file for the JSON, besides the standard output")
    options = parser.parse_args()
    try:
        torch = load_library("torch", ("torch",))
    except InputError:
        torch = None
    with open_device(options.device) as device:
        rows = [
            measure(device, torch, name, 1 << power, options.tunings)
            for power in options.powers
            for name in options.keys
        ]
        peer = None if torch is None else f"torch {torch.__version__}"
        text = json.dumps({"device": device.info.name, "peer": peer, "rows": rows}, indent=2)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
