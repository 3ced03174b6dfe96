"""What the host pays to bind and record a step, to resubmit a batch and to feed it, beside the bare calls that it
needs and the PyPI wrappers."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dashi.runtime import _vk_baseline as bare
from dashi.runtime._vulkan_device import VulkanDevice

STEPS = 2000
ROUNDS = 9


@dataclass(frozen=True)
class HostCost:
    """Microseconds, the best of the rounds of one run. `wrappers` is None without the `vulkan` package, and where it is
    not measured (`compared`); `parts` are what ours consists of, the median of each, where that is known."""

    ours: float
    bare: float
    wrappers: float | None
    compared: bool = True
    parts: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def ratio(self) -> float:
        """Our cost over that of the bare calls."""
        return self.ours / self.bare


def _interleaved(*measures: Callable[[], float | None]) -> list[float | None]:
    """The best of all rounds, in microseconds: what is left when nothing else uses the machine. The measures take
    turns, so that a change of its speed hits all alike."""
    taken: list[list[float]] = [[] for _ in measures]
    for _ in range(ROUNDS):
        for measure, into in zip(measures, taken, strict=True):
            gc.collect()
            took = measure()
            if took is not None:
                into.append(took)
    return [min(times) * 1e6 if times else None for times in taken]


def _cost(*measures: Callable[[], float | None]) -> HostCost:
    ours, plain, *wrappers = _interleaved(*measures)
    assert ours is not None
    assert plain is not None
    return HostCost(ours, plain, wrappers[0] if wrappers else None, bool(wrappers))


def recording(device: VulkanDevice) -> HostCost:
    """Per step of a chain in which every step needs a barrier: a program of 2000 steps, made and closed."""
    values = np.ones(64, np.float32)
    x, y, z = (device.array(values) for _ in range(3))
    forth, back = device.bind("axpy", x, y, a=1.0, out=z), device.bind("axpy", z, y, a=2.0, out=x)
    steps = [forth, back] * (STEPS // 2)
    dispatches = [raw for step in (forth, back) for raw in step.lowered.dispatches]

    def ours() -> float:
        start = time.perf_counter()
        program = device.program(steps)
        took = time.perf_counter() - start
        program.close()
        return took / STEPS

    return _cost(
        ours,
        lambda: bare.record_bare(device, dispatches, STEPS // 2),
        lambda: bare.record_wrappers(device, dispatches, STEPS // 2),
    )


def waiting(device: VulkanDevice) -> HostCost:
    """Per submission and wait of a recorded, empty batch that comes after work of two other queues, beside one that
    waits for nothing."""
    times = STEPS // 4
    others = [device.program([], queue=i) for i in (1, 2)]
    with device.program([]) as program:
        tickets = [other.submit() for other in others]
        device.wait()

        def ours() -> float:
            start = time.perf_counter()
            for _ in range(times):
                program.submit(after=tickets).wait()
            return (time.perf_counter() - start) / times

        return _cost(ours, lambda: bare.submit_bare(device, times), lambda: None)


def resubmission(device: VulkanDevice) -> HostCost:
    """Per submission and wait of a recorded, empty batch."""
    times = STEPS // 4
    with device.program([]) as program:

        def ours() -> float:
            start = time.perf_counter()
            for _ in range(times):
                program.run()
            return (time.perf_counter() - start) / times

        return _cost(ours, lambda: bare.submit_bare(device, times), lambda: bare.submit_wrappers(device, times))


_FED = 1 << 14
"""float32 numbers that go to the device and come back: 64 KiB."""


def feeding(device: VulkanDevice, *, direct: bool = True) -> HostCost:
    """Per run of one step that 64 KiB are fed to and fetched from, filled and read; beside it, as `bare`, a submission
    and wait of the step alone. The kernel reads and writes the slot (`direct`), or copies stand around it."""
    times = max(1, STEPS // 10)
    x, y = device.empty(_FED), device.empty(_FED)
    values, out = np.ones(_FED, np.float32), np.empty(_FED, np.float32)
    step = device.bind("scale", x, out=y, a=2.0)
    with device.program([step]) as alone, device.program([step], feed=[x], fetch=[y], direct=direct) as fed:

        def ours() -> float:
            start = time.perf_counter()
            for _ in range(times):
                slot = fed.slot()
                slot[x][...] = values
                slot.submit().fetched(y, out=out)
            return (time.perf_counter() - start) / times

        def bare_runs() -> float:
            start = time.perf_counter()
            for _ in range(times):
                alone.run()
            return (time.perf_counter() - start) / times

        def moments() -> Iterator[int]:
            yield time.perf_counter_ns()
            slot = fed.slot()
            yield time.perf_counter_ns()
            slot[x][...] = values
            yield time.perf_counter_ns()
            ticket = slot.submit()
            yield time.perf_counter_ns()
            ticket.wait()
            yield time.perf_counter_ns()
            ticket.fetched(y, out=out)
            yield time.perf_counter_ns()

        cost = _cost(ours, bare_runs)
        lasted = np.median([np.diff(list(moments())) for _ in range(times)], axis=0) / 1000
        names = ("slot", "fill", "submit", "wait", "read")
        return replace(cost, parts={name: float(us) for name, us in zip(names, lasted, strict=True)})


def binding(device: VulkanDevice) -> HostCost:
    """Per step that a kernel of two inputs is bound to arrays for; `bare` makes, writes and frees a descriptor set."""
    times = max(1, STEPS // 10)
    x, y, z = (device.array(np.ones(64, np.float32)) for _ in range(3))
    step = device.bind("axpy", x, y, a=1.0, out=z)
    ranges = [array.storage.range for array in (x, y, z)]
    pipeline = device.preparation.dispatches(step.kernel, step.call, step.kernel.plan(step.call))[0].pipeline

    def ours() -> float:
        start = time.perf_counter()
        for _ in range(times):
            device.bind("axpy", x, y, a=1.0, out=z)
        took = (time.perf_counter() - start) / times
        device.memory()  # frees what was forgotten, outside of the time
        return took

    def bare_sets() -> float:
        start = time.perf_counter()
        for _ in range(times):
            device.sets.free(device.sets.make(pipeline, ranges), len(ranges))
        return (time.perf_counter() - start) / times

    return _cost(ours, bare_sets)
