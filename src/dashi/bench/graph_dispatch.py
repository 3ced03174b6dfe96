"""What a steady run of a compiled graph costs the host, beside a bare resubmission of the same steps.

from dashi.bench import graph_dispatch
cost = graph_dispatch.measure("vulkan:0", arrays=4)
print(cost.us, cost.ratio, cost.allocated)
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import dashi
from dashi import graph as dg
from dashi.errors import InputError
from dashi.runtime.device import Device

if TYPE_CHECKING:
    from dashi.types import HostArray

NBYTES: Final = 1 << 16
MOST_ARRAYS: Final = 16
MOST_BYTES: Final = 1 << 26
_ROUNDS: Final = 9
_RUNS: Final = 200


@dataclass(frozen=True)
class DispatchCost:
    """Microseconds of a `dispatch_into` of `arrays` inputs and as many outputs of `nbytes` each, and of a submission
    of its steps and a wait; the best of several rounds that take turns. `allocated` is how many blocks of memory a run
    leaves behind in Python, and `slots` how often runs took memory for transfers anew: 0."""

    arrays: int
    nbytes: int
    us: float
    bare_us: float
    allocated: float
    slots: int

    @property
    def ratio(self) -> float:
        """The cost of a run over that of the bare one."""
        return self.us / self.bare_us

    def as_dict(self) -> dict[str, Any]:
        """What `dashi bench graph dispatch --json` prints."""
        return {**asdict(self), "ratio": self.ratio}


def measure(device: str | Device = "auto", arrays: int = 4, nbytes: int = NBYTES) -> DispatchCost:
    """The cost of a run on a device, which is opened without validation layers where it is named."""
    if not isinstance(device, Device):
        with dashi.open(device, validation=False) as opened:
            return measure(opened, arrays, nbytes)
    if not 1 <= arrays <= MOST_ARRAYS or not 4 <= nbytes <= MOST_BYTES or nbytes % 4:
        raise InputError(
            f"{arrays} arrays of {nbytes} bytes are not measured.",
            f"use 1 to {MOST_ARRAYS} arrays, of whole floats, of {MOST_BYTES} bytes each at most.",
        )
    graph = scaled(arrays, nbytes // 4)
    inputs: dict[str, HostArray] = {f"x{k}": np.full(nbytes // 4, k + 1, np.float32) for k in range(arrays)}
    outputs: dict[str, HostArray] = {f"y{k}": np.empty(nbytes // 4, np.float32) for k in range(arrays)}
    with dg.compile(graph, device, cache=False) as pipeline, pipeline.bare_program() as bare:
        us, bare_us = _interleaved(lambda: pipeline.dispatch_into(inputs, outputs), bare.run)
        before = pipeline.report().calls["slots_allocated"]
        allocated = _left_behind(lambda: pipeline.dispatch_into(inputs, outputs))
        slots = pipeline.report().calls["slots_allocated"] - before
    return DispatchCost(arrays, nbytes, us, bare_us, allocated, slots)


def scaled(arrays: int, length: int) -> dg.Graph:
    """Each input times 2, in a kernel of its own."""
    b = dg.Builder("scaled")
    return b.graph(**{f"y{k}": b.input(f"x{k}", (length,)) * 2.0 for k in range(arrays)})


def _interleaved(*calls: Callable[[], object]) -> list[float]:
    """The best of all rounds of each call, in microseconds."""
    best = [float("inf")] * len(calls)
    for _ in range(_ROUNDS):
        for place, call in enumerate(calls):
            gc.collect()
            call()
            start = time.perf_counter()
            for _ in range(_RUNS):
                call()
            best[place] = min(best[place], (time.perf_counter() - start) / _RUNS * 1e6)
    return best


def _left_behind(call: Callable[[], object]) -> float:
    """How many blocks of memory Python holds more for each call."""
    for _ in range(_RUNS):
        call()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(_RUNS):
        call()
    gc.collect()
    return (sys.getallocatedblocks() - before) / _RUNS
