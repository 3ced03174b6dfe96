"""What a graph became for a device: steps and a plan, of which recordings are made in any memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashi.graph.debug import Debug
from dashi.graph.ir import Graph
from dashi.graph.passes.plan_memory import MemoryPlan
from dashi.graph.passes.record import PipelineMemory, Record, Recorded, stored_arrays, stored_values, take_memory
from dashi.graph.passes.schedule import PlannedStep
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.array import Array
    from dashi.runtime.device import Device


@dataclass(frozen=True)
class Assembly:
    """The lowered graph, its steps and its memory plan; `slots` is how many runs may be under way at once."""

    device: Device
    graph: Graph
    steps: tuple[PlannedStep, ...]
    plan: MemoryPlan
    slots: int
    debug: Debug

    def build(self, params: Mapping[str, HostArray]) -> tuple[PipelineMemory, Recorded]:
        """Memory of the device that holds these params, and the recording in which the host feeds every input."""
        memory = take_memory(self.device, self.graph, self.steps, self.plan)
        # Before anything is bound: meanwhile threads of the device make pipelines.
        for name, into in stored_arrays(self.device, self.graph, memory).items():
            into.write(stored_values(self.graph[name], self.graph, params))
        recorded = self.record(memory)
        self.debug.write(str(recorded.program.describe()))
        return memory, recorded

    def record(
        self,
        memory: PipelineMemory,
        copies: Sequence[tuple[str, Array, int | None]] = (),
        fetch: Sequence[str] | None = None,
        *,
        timed: bool = False,
    ) -> Recorded:
        """The recording in some memory: see `Record.run`."""
        how = Record(slots=self.slots, timed="steps" if self.debug.timing else timed, barriers=self.debug.barriers)
        recorded = how.run(self.device, self.graph, self.steps, memory, copies, fetch)
        if self.debug.check:
            recorded.program.check()
        return recorded
