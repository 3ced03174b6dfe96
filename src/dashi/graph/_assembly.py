"""What a graph became for a device: steps and a plan, of which recordings are made in any memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashi.graph.ir import Graph
from dashi.graph.passes.plan_memory import MemoryPlan
from dashi.graph.passes.record import PipelineMemory, Record, Recorded, stored_values, take_memory
from dashi.graph.passes.schedule import PlannedStep
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device


@dataclass(frozen=True)
class Assembly:
    """The lowered graph, its steps and its memory plan; `slots` is how many runs may be under way at once."""

    device: Device
    graph: Graph
    steps: tuple[PlannedStep, ...]
    plan: MemoryPlan
    slots: int

    def build(self, params: Mapping[str, HostArray]) -> tuple[PipelineMemory, Recorded]:
        """Memory of the device that holds these params, and the recording in which the host feeds every input."""
        memory = take_memory(self.device, self.graph, self.steps, self.plan)
        recorded = Record(slots=self.slots).run(self.device, self.graph, self.steps, memory)
        for name, array in recorded.stored.items():
            array.write(stored_values(self.graph[name], self.graph, params))
        return memory, recorded

    def record_timed(self, memory: PipelineMemory) -> Recorded:
        """The recording whose runs are timed on the device's clock."""
        return Record(slots=self.slots, timed=True).run(self.device, self.graph, self.steps, memory)
