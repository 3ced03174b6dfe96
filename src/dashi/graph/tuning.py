"""Which tunings the steps of a graph run fastest with on a device: measured, and kept for later compiles.

Tunings change speed alone: the bits of each are compared with those of the first, and one that differs is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi.graph.compiler import Class, for_device
from dashi.graph.ir import Graph
from dashi.graph.pass_order import PASSES, Pass, run_passes
from dashi.graph.passes.record import call_text
from dashi.graph.passes.schedule import PlannedStep, Schedule

if TYPE_CHECKING:
    from dashi.runtime._binding import Step
    from dashi.runtime.array import Array
    from dashi.runtime.device import Device, Program

_ROUNDS: Final = 5
_AT_ONCE: Final = 8
"""Copies of a step in one program, so that its submission does not count."""


@dataclass(frozen=True)
class TunedCall:
    """A kernel of a graph by its types and shapes: how many steps call it so, microseconds by tuning (the least of
    several), the one that ran before and the fastest. `notes` says which were left out, and why."""

    kernel: str
    call: str
    steps: int
    us: dict[str, float]
    before: str | None
    best: str | None
    notes: tuple[str, ...] = ()


def tune(
    graph: Graph,
    device: Device,
    *,
    class_: Class = "portable",
    passes: Sequence[Pass] = PASSES,
    keep: bool = True,
    on_call: Callable[[TunedCall], None] | None = None,
) -> list[TunedCall]:
    """Measures the tunings of every kernel of a graph, for each of the shapes that it is called with; later compiles on
    this device use the fastest, where `keep` says so. `on_call` is called with each as it is measured, and kept."""
    lowered = run_passes(graph, for_device(tuple(passes), device, class_))
    calls: dict[tuple[str, str], list[PlannedStep]] = {}
    for step in Schedule(portable=class_ == "portable").run(lowered, device.features):
        if step.launch is not None and len(step.launch.kernel.tunings) > 1:
            types = [lowered[name].dtype.name for name in step.reads]
            key = (step.launch.kernel.name, f"{types} {step.launch.shapes} {step.launch.result} {step.launch.scalars}")
            calls.setdefault(key, []).append(step)
    tuned: list[TunedCall] = []
    for steps in calls.values():
        tuned.append(_tune_call(lowered, device, steps, keep))
        if on_call is not None:
            on_call(tuned[-1])
    return tuned


def _tune_call(graph: Graph, device: Device, steps: Sequence[PlannedStep], keep: bool) -> TunedCall:
    step, launch = steps[0], steps[0].launch
    assert launch is not None
    kernel, rng = launch.kernel, np.random.default_rng(0)
    inputs = [
        _filled(device, rng, shape, graph[name].dtype.name)
        for name, shape in zip(step.reads, launch.shapes, strict=True)
    ]
    out = device.empty(launch.result, step.node.dtype)
    call = call_text(inputs, out)

    def bind(tuning: str | None) -> Step:
        return device.bind(kernel, *inputs, out=out, tuning=tuning, scratch=None, **launch.scalars)

    bound = {name: bind(name) for name in kernel.tunings}
    first = bind(device.tunings.get_call(kernel, call))
    expected = _bits(device, first, out)
    differ = [name for name, each in bound.items() if _bits(device, each, out) != expected]
    us = _times(device, {name: each for name, each in bound.items() if name not in differ})
    best = min(us, key=lambda name: us[name]) if us else None
    if keep and best is not None:
        device.tunings.put(kernel, call, best)
    notes = tuple(f"{name} gives other bits" for name in differ)
    return TunedCall(kernel.name, call, len(steps), us, first.tuning, best, notes)


def _filled(device: Device, rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Normal numbers; of integers, 0: an index that is always inside."""
    array = device.empty(shape, dtype)
    if array.dtype.is_float:
        values: Any = rng.standard_normal(shape, np.float32)
        return device.array(values, array.dtype)
    return device.zeros(shape, array.dtype)


def _bits(device: Device, step: Step, out: Array) -> bytes:
    with device.program([step]) as program:
        program.run()
    return out.numpy().tobytes()


def _times(device: Device, steps: dict[str, Step]) -> dict[str, float]:
    """The least time of each step in microseconds, of rounds that take turns."""
    programs = {name: device.program([step] * _AT_ONCE, timed=True) for name, step in steps.items()}
    best: dict[str, float] = {}
    for _ in range(_ROUNDS):
        for name, program in programs.items():
            best[name] = min(best.get(name, float("inf")), _took(program))
    for program in programs.values():
        program.close()
    return best


def _took(program: Program) -> float:
    times = program.run_timed()
    return (times.wall if times.device is None else times.device) / 1e3 / _AT_ONCE
