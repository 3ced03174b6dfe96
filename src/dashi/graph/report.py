"""What a compiled pipeline consists of, counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from dashi.graph.ir import Graph
from dashi.graph.passes.plan_memory import MemoryPlan
from dashi.graph.passes.schedule import STORED, PlannedStep
from dashi.runtime._hazards import Batch, hazards

if TYPE_CHECKING:
    from dashi.runtime.device import Program

_DIGEST: Final = re.compile("_[0-9a-f]{12}$")


@dataclass(frozen=True)
class PipelineReport:
    """Counts of a pipeline. `longest_chain` is how many steps must wait for one another; `places` says for every
    value where it comes from; `host_steps` names what the host computes, and why."""

    program_id: str
    id: str
    class_: str
    dispatches: int
    segments: int
    barriers: int
    longest_chain: int
    host_steps: dict[str, str]
    kernels: dict[str, int]
    fusions: tuple[str, ...]
    rewrites: tuple[str, ...]
    places: dict[str, str]
    arena_bytes: int
    liveness_bytes: int
    unshared_bytes: int
    stored_bytes: int
    input_bytes: int
    output_bytes: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"program {self.program_id[:16]} ({self.class_}), {self.id}",
            f"{self.dispatches} dispatches, {self.barriers} barriers, longest chain {self.longest_chain}",
            f"{len(self.host_steps)} host steps",
            f"{self.arena_bytes} bytes of values ({self.liveness_bytes} at least), {self.stored_bytes} stored",
            "kernels: " + ", ".join(f"{name} {count}" for name, count in sorted(self.kernels.items())),
            *(f"host: {name}: {reason}" for name, reason in self.host_steps.items()),
        ]
        return "\n".join(lines)


def build_report(
    graph: Graph, steps: Sequence[PlannedStep], plan: MemoryPlan, program: Program, ids: tuple[str, str], class_: str
) -> PipelineReport:
    """The report of a recorded graph."""
    batches = [batch for batch in program.schedule() if len(batch.commands)]
    barriers = [sum(1 for barrier in batch.barriers if barrier) for batch in batches]
    named = Counter(_kernel_name(step) for step in steps if step.launch is not None)
    outputs = [graph[name].type.nbytes for _, name in graph.outputs]
    return PipelineReport(
        program_id=ids[0],
        id=ids[1],
        class_=class_,
        dispatches=program.dispatches,
        segments=len(batches),
        barriers=sum(barriers),
        longest_chain=sum(map(_chain, batches)),
        host_steps={step.node.name: step.reason for step in steps if step.place == "host"},
        kernels=dict(named),
        fusions=tuple(note.removeprefix("fuse: ") for note in graph.notes if note.startswith("fuse: ")),
        rewrites=tuple(note for note in graph.notes if not note.startswith("fuse: ")),
        places=_places(graph, steps),
        arena_bytes=plan.nbytes,
        liveness_bytes=plan.liveness_bytes,
        unshared_bytes=plan.unshared_bytes,
        stored_bytes=sum(graph[name].type.nbytes for name in _stored(graph, steps)),
        input_bytes=sum(node.type.nbytes for node in graph.of("input")),
        output_bytes=sum(outputs),
    )


def _chain(batch: Batch) -> int:
    """How many steps of a batch must run one after another, since they share bytes. What only brings inputs or takes
    results away is no step; a host step counts where it reads."""
    depths = [int(name not in ("feed", "fetch") and not name.endswith("(outputs)")) for name in batch.names]
    own = list(depths)
    for hazard in sorted(hazards(batch.commands), key=lambda hazard: hazard.second):
        depths[hazard.second] = max(depths[hazard.second], depths[hazard.first] + own[hazard.second])
    return max(depths, default=0)


def _stored(graph: Graph, steps: Sequence[PlannedStep]) -> set[str]:
    """Params and constants that steps read, in the order in which they do."""
    read = {name for step in steps for name in step.reads}
    read = {graph[name].inputs[0] if graph[name].op == "view" else name for name in read}
    return {name for name in read if graph[name].op in STORED}


def _kernel_name(step: PlannedStep) -> str:
    """The name of a step's kernel; of one that was made for the graph, what it is made from."""
    return _DIGEST.sub("", step.launch.kernel.name) if step.launch else ""


def _places(graph: Graph, steps: Sequence[PlannedStep]) -> dict[str, str]:
    places = {node.name: f"view of {node.inputs[0]}" for node in graph.of("view")}
    places |= {node.name: node.op for node in graph.nodes if node.op in (*STORED, "input")}
    return places | {s.node.name: _kernel_name(s) if s.launch else s.place for s in steps}
