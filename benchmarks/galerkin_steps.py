"""What a Galerkin step takes with each strategy, and encode and lowpass decode: microseconds, bits against NumPy.

    python benchmarks/galerkin_steps.py --device vulkan:0
    python benchmarks/galerkin_steps.py --device vulkan:0 --cuts 16 --grids 50 64

The table of `dashi.flow.proxy.galerkin._strategies` was made of what this prints. With --grids, grids of several sizes
take turns at the same step: products are free of aliasing on any of more than 3 k_cut points.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dashi.core.rollouts.rollout import rollout
from dashi.flow import Flow, Kolmogorov, ensemble, to_field
from dashi.flow.proxy.encode import FieldEncoder, encode
from dashi.flow.proxy.galerkin._host import FastGalerkin
from dashi.flow.proxy.galerkin._operator import FORMS, Galerkin, modes_of
from dashi.flow.proxy.lowpass import Lowpass, decode
from dashi.flow.proxy.schema import Schema
from dashi.runtime import open_device
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step

ROUNDS = 15


def warm(device: Device, seconds: float = 1.0) -> None:
    """Keeps a device busy until it runs at full speed."""
    x = device.array(np.zeros(1 << 22, np.float32))
    with device.program([device.bind("scale", x, out=x, a=1.0)] * 200) as program:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            program.run()


def microseconds(device: Device, steps: Sequence[Step], count: int) -> float:
    """The least time of one of `count` things that steps do, by the device's clock where it has one."""
    with device.program(steps, timed=True) as program:
        program.run()
        taken = [program.run_timed() for _ in range(ROUNDS)]
    return min(t.device or t.wall for t in taken) / 1000 / count


def ping_pong(device: Device, z: Any) -> tuple[Array, Array]:
    """Two arrays for states, the first with these."""
    return device.array(z), device.empty(z.shape, z.dtype)


def step_times(device: Device, flow: Flow, k_cut: int, states: int, steps: int) -> dict[str, float]:
    """Both strategies, and NumPy's own transforms where the device is NumPy."""
    schema = Schema(flow.n, k_cut)
    z = modes_of(schema, encode(schema, fields_of(flow, states), device=device))
    times: dict[str, float] = {}
    for form in FORMS:
        operator = Galerkin(flow, schema, form=form)
        loaded, state = operator.load(device), ping_pong(device, z)
        both = [*operator.step(device, loaded, *state), *operator.step(device, loaded, *reversed(state))]
        times[form] = microseconds(device, both * (steps // 2), steps // 2 * 2)
        if form == "triads" and not operator.unsupported_reason("workgroup", device.limits, states):
            flag = device.empty(4, np.uint32)
            many = operator.step_many(device, loaded, *state, flag, steps, "workgroup")
            times["workgroup"] = microseconds(device, [many], steps)
    fast = FastGalerkin(Galerkin(flow, schema))
    begin = time.perf_counter()
    fast.roll(z, 1, 10)
    times["numpy"] = (time.perf_counter() - begin) * 1e6 / 10
    return times


def grid_times(device: Device, flow: Flow, k_cut: int, states: int, steps: int, sizes: Sequence[int]) -> str:
    """The strategy `grid` on grids of several sizes, on the device and by NumPy's transforms."""
    schema = Schema(flow.n, k_cut)
    z = modes_of(schema, encode(schema, fields_of(flow, states), device=device))
    times: dict[tuple[str, int], list[float]] = {(strategy, n): [] for strategy in ("grid", "numpy") for n in sizes}
    for _ in range(ROUNDS):
        for n in sizes:
            operator = Galerkin(flow, schema)
            operator.small = n
            loaded, state = operator.load(device), ping_pong(device, z)
            both = [*operator.step(device, loaded, *state), *operator.step(device, loaded, *reversed(state))]
            with device.program(both * (steps // 2), timed=True) as program:
                program.run()
                taken = program.run_timed()
            times["grid", n].append((taken.device or taken.wall) / 1000 / (steps // 2 * 2))
            fast, begin = FastGalerkin(operator), time.perf_counter()
            fast.roll(z, 1, 10)
            times["numpy", n].append((time.perf_counter() - begin) * 1e5)
    return ", ".join(f"{strategy} of {n} points {min(us):.0f}" for (strategy, n), us in times.items())


def fields_of(flow: Flow, states: int) -> Any:
    return to_field(ensemble(flow, "random", seeds=range(states)))


def codec_times(device: Device, flow: Flow, states: int) -> tuple[float, float]:
    """Microseconds of encoding and of decoding one field."""
    schema = Schema(flow.n, 8)
    fields = device.array(fields_of(flow, states))
    z, back = device.empty((states, schema.size)), device.empty(fields.shape)
    there = FieldEncoder(schema, device).field_steps(fields, z)
    return microseconds(device, there, states), microseconds(device, Lowpass(schema, device).steps(z, back), states)


def check(device: Device, flow: Flow, cuts: Sequence[int]) -> int:
    """Whether the bits are NumPy's; how many are not."""
    wrong = 0
    with open_device("cpu") as cpu:
        fields = fields_of(flow, 2)
        for k_cut in cuts:
            schema = Schema(flow.n, k_cut)
            z, ours = (encode(schema, fields, device=d) for d in (cpu, device))
            same = {"encode": z.tobytes() == ours.tobytes()}
            both = [decode(schema, z, device=d) for d in (cpu, device)]
            same["decode"] = both[0].tobytes() == both[1].tobytes()
            for form in FORMS:
                operator = Galerkin(flow, schema, np.full(len(schema.modes), 1e-4), form)
                start = modes_of(schema, z)
                ends = [rollout(operator, start, 2, device=d, strategy="stepwise").state for d in (cpu, device)]
                same[form] = ends[0].tobytes() == ends[1].tobytes()
                if form == "triads" and not operator.unsupported_reason("workgroup", device.limits, 2):
                    other = rollout(operator, start, 2, device=device, strategy="workgroup").state
                    same["workgroup"] = ends[0].tobytes() == other.tobytes()
            wrong += sum(not good for good in same.values())
            print(f"k_cut {k_cut:2d} same bits as NumPy: {same}")
    return wrong


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="vulkan:0")
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--cuts", type=int, nargs="+", default=[8, 12, 16, 21])
    options.add_argument("--states", type=int, nargs="+", default=[1, 16])
    options.add_argument("--check", type=int, nargs="*", default=[8, 12], help="cuts whose bits are compared")
    options.add_argument("--flows", nargs="+", default=["decaying", "kolmogorov"])
    options.add_argument("--grids", type=int, nargs="+", default=[], help="sizes to compare, and nothing else")
    asked = options.parse_args()
    kolmogorov = Flow(128, forcing=Kolmogorov(4), drag=0.1, scheme="etdrk4")
    decaying = Flow(128, scheme="etdrk4")
    with open_device(asked.device) as device:
        print(device.info.name)
        warm(device)
        for k_cut in asked.cuts if asked.grids else ():
            for states in asked.states:
                line = grid_times(device, kolmogorov, k_cut, states, asked.steps, asked.grids)
                print(f"k_cut {k_cut:2d}, {states:2d} states: us a step: {line}", flush=True)
        if asked.grids:
            return 0
        for name, flow in (("decaying", decaying), ("kolmogorov", kolmogorov)):
            for k_cut in asked.cuts if name in asked.flows else ():
                for states in asked.states:
                    times = step_times(device, flow, k_cut, states, asked.steps)
                    line = ", ".join(f"{strategy} {us:8.1f}" for strategy, us in times.items())
                    print(f"{name:10s} k_cut {k_cut:2d}, {states:2d} states: us a step: {line}", flush=True)
        for states in (1, 16):
            there, back = codec_times(device, decaying, states)
            print(f"n 128, {states:2d} fields at a time: encode {there:.1f} us, lowpass decode {back:.1f} us a field")
        wrong = check(device, kolmogorov, asked.check)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
