"""What a compiled pipeline consists of, counted."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dashi.graph.debug import Debug
from dashi.graph.ir import Graph, Node
from dashi.graph.ops._fused import PRODUCT
from dashi.graph.ops.packed import format_of, has_packed_kernels
from dashi.graph.ops.products import HALVES_PRODUCT
from dashi.graph.passes.choose_products import NOTE
from dashi.graph.passes.plan_memory import MemoryPlan, aliases_of
from dashi.graph.passes.schedule import STORED, PlannedStep
from dashi.runtime._binding import Step
from dashi.runtime._hazards import Batch, hazards

if TYPE_CHECKING:
    from dashi.runtime.device import Program

_DIGEST: Final = re.compile("_[0-9a-f]{12}$")


@dataclass(frozen=True)
class PipelineReport:
    """Counts of a pipeline. `longest_chain` is how many steps must wait for one another; `places` says for every
    value where it comes from; `host_steps` names what the host computes, `widened` which packed params are stored as
    float32, and why."""

    program_id: str
    id: str
    class_: str
    dispatches: int
    segments: int
    barriers: int
    barriers_avoided: int
    """Places between two commands of a recording where none stands: no hazard needs one."""
    longest_chain: int
    host_steps: dict[str, str]
    kernels: dict[str, int]
    widened: dict[str, str]
    fusions: tuple[str, ...]
    rewrites: tuple[str, ...]
    places: dict[str, str]
    arena_bytes: int
    liveness_bytes: int
    unshared_bytes: int
    stored_bytes: int
    input_bytes: int
    output_bytes: int
    matmul_choices: dict[str, str]
    """For every product of matrices its kernel, shader, workgroups and tuning, and why."""
    cache: str = "off"
    """Whether it came from the cache on disk: `hit`, `miss`, `damaged` (and compiled anew), or `off`; and why it was
    not kept, if so."""
    debug: tuple[str, ...] = ()
    """The debug switches that are on."""
    unsafe: bool = False
    """Whether it was recorded without barriers, so that its results are undefined."""
    calls: dict[str, int] = field(default_factory=dict[str, int])
    """Totals of the runs so far: see `CallCounts`."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"program {self.program_id[:16]} ({self.class_}), {self.id}",
            f"{self.dispatches} dispatches, longest chain {self.longest_chain}",
            f"{self.barriers} barriers, {self.barriers_avoided} avoided",
            f"{len(self.host_steps)} host steps; cache: {self.cache}",
            f"{self.arena_bytes} bytes of values ({self.liveness_bytes} at least), {self.stored_bytes} stored",
            "kernels: " + ", ".join(f"{name} {count}" for name, count in sorted(self.kernels.items())),
            *(["UNSAFE: recorded without barriers, its results are undefined"] if self.unsafe else []),
            *(f"host: {name}: {reason}" for name, reason in self.host_steps.items()),
            *(f"widened: {name}: {reason}" for name, reason in self.widened.items()),
        ]
        return "\n".join(lines)


def build_report(
    graph: Graph,
    steps: Sequence[PlannedStep],
    plan: MemoryPlan,
    program: Program,
    ids: tuple[str, str],
    class_: str,
    cache: str,
    debug: Debug,
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
        barriers_avoided=sum(len(batch.commands) - 1 - sum(map(bool, batch.barriers[1:])) for batch in batches),
        longest_chain=sum(map(_chain, batches)),
        host_steps={step.node.name: step.reason for step in steps if step.place == "host"},
        kernels=dict(named),
        widened={node.name: _widened_reason(graph, node) for node in graph.of("widened")},
        fusions=tuple(note.removeprefix("fuse: ") for note in graph.notes if note.startswith("fuse: ")),
        rewrites=tuple(note for note in graph.notes if not note.startswith(("fuse: ", NOTE))),
        places=_places(graph, steps),
        arena_bytes=plan.nbytes,
        liveness_bytes=plan.liveness_bytes,
        unshared_bytes=plan.unshared_bytes,
        stored_bytes=sum(graph[name].type.nbytes for name in _stored(graph, steps)),
        input_bytes=sum(node.type.nbytes for node in graph.of("input")),
        output_bytes=sum(outputs),
        matmul_choices=_product_choices(graph, steps, program),
        cache=cache,
        debug=debug.names,
        unsafe=debug.barriers == "none",
    )


def _product_choices(graph: Graph, steps: Sequence[PlannedStep], program: Program) -> dict[str, str]:
    """How every product is computed, and why."""
    reasons = dict(note.removeprefix(NOTE).split(": ", 1) for note in graph.notes if note.startswith(NOTE))
    bound = iter(program.steps)
    choices: dict[str, str] = {}
    for step in steps:
        if step.launch is None:
            continue
        recorded = next(s for s in bound if isinstance(s, Step) and s.kernel.name == step.launch.kernel.name)
        if step.node.op in (PRODUCT.name, HALVES_PRODUCT.name):
            used = Counter((d.shader, math.prod(d.groups)) for d in recorded.kernel.plan(recorded.call).dispatches)
            how = "; ".join(f"{shader}, {groups} workgroups" for shader, groups in used)
            name = step.node.name.removesuffix(f".{HALVES_PRODUCT.name}")
            why = reasons.get(name, "sums in the order tree64")
            choices[name] = f"{_kernel_name(step)} ({how or 'nothing to do'}; {recorded.tuning or 'no tuning'}): {why}"
    return choices


def _widened_reason(graph: Graph, node: Node) -> str:
    form = format_of(node)
    if not has_packed_kernels(form):
        return f"no kernel reads {form.name}"
    readers = sorted({graph[name].op for name in graph.users[node.name]})
    return f"{', '.join(readers)} reads it otherwise than as rows of a product or a gather"


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
    origins, _ = aliases_of(graph)
    read = {origins.get(name, graph[name].inputs[0] if graph[name].op == "view" else name) for name in read}
    return {name for name in read if graph[name].op in STORED}


def _kernel_name(step: PlannedStep) -> str:
    """The name of a step's kernel; of one that was used for the graph, what it is used from."""
    return _DIGEST.sub("", step.launch.kernel.name) if step.launch else ""


def _places(graph: Graph, steps: Sequence[PlannedStep]) -> dict[str, str]:
    places = {node.name: f"view of {node.inputs[0]}" for node in graph.of("view")}
    places |= {node.name: node.op for node in graph.nodes if node.op in (*STORED, "input")}
    return places | {s.node.name: _kernel_name(s) if s.launch else s.place for s in steps}
