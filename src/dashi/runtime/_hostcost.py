"""What the host pays: recording a step and resubmitting a batch, beside the bare calls and the PyPI wrappers."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dashi.runtime import _vk_baseline as bare
from dashi.runtime._vulkan_device import VulkanDevice

STEPS = 2000
ROUNDS = 9


@dataclass(frozen=True)
class HostCost:
    """Microseconds, the best of the rounds of one run. `wrappers` is None without the `vulkan` package."""

    ours: float
    bare: float
    wrappers: float | None

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
    ours, plain, wrappers = _interleaved(*measures)
    assert ours is not None
    assert plain is not None
    return HostCost(ours, plain, wrappers)


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
