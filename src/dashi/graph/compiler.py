"""Compiles graphs: the passes in order, then memory, a schedule and a recording on a device."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from dashi.errors import GraphError
from dashi.graph._assembly import Assembly
from dashi.graph.evaluation import require_values
from dashi.graph.ir import Graph, print_graph
from dashi.graph.pass_order import PASSES, Pass, run_passes
from dashi.graph.passes.plan_memory import PlanMemory
from dashi.graph.passes.schedule import PlannedStep, Schedule
from dashi.graph.registry import get
from dashi.graph.report import build_report
from dashi.graph.verification import verify
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.pipeline import CompiledPipeline
    from dashi.runtime.device import Device

Class = Literal["portable", "device"]
_FORMAT: Final = 1


def compile(
    graph: Graph,
    device: Device,
    *,
    class_: Class = "portable",
    params: Mapping[str, HostArray] | None = None,
    passes: tuple[Pass, ...] = PASSES,
    slots: int = 4,
) -> CompiledPipeline:
    """A pipeline that runs the graph on a device again and again. `params` are values for its params, where they are
    not the graph's own; `slots` is how many runs may be under way at once. A portable pipeline refuses kernels that
    are not."""
    from dashi.graph.pipeline import CompiledPipeline

    if class_ not in ("portable", "device"):
        raise GraphError(f"there is no class {class_!r} of pipelines.", 'use "portable" or "device".')
    verify(graph)
    own = {name: np.array(array) for name, array in (params or {}).items()}  # the caller may change his
    values = {**graph.params, **own}
    stored = {node.name: require_values(node, values.get(node.name)) for node in graph.of("param")}
    lowered = run_passes(graph, passes)
    schedule = Schedule(portable=class_ == "portable").run(lowered, device.features)
    plan = PlanMemory(alignment=max(256, device.part_alignment)).run(lowered, schedule)
    assembly = Assembly(device, lowered, schedule, plan, slots)
    memory, recorded = assembly.build(stored)
    fingerprint = program_id(graph, class_, passes)
    ids = (fingerprint, pipeline_id(fingerprint, device, schedule))
    report = build_report(lowered, schedule, plan, recorded.program, ids, class_)
    return CompiledPipeline(assembly, memory, recorded, stored, report)


def program_id(graph: Graph, class_: Class = "portable", passes: tuple[Pass, ...] = PASSES) -> str:
    """The fingerprint of what a graph computes: its nodes after rewriting, the versions of their definitions, and the
    class. The same on every device and in any process; values of params are no part of it."""
    rewritten = run_passes(graph, passes, after="rewrite")
    names = {node.name: node.name if get(node.op).kind == "leaf" and node.op != "constant" else f"v{i}"
             for i, node in enumerate(rewritten.nodes)}  # fmt: skip
    numbered = replace(
        rewritten,
        name="program",
        nodes=tuple(
            replace(node, name=names[node.name], inputs=tuple(names[n] for n in node.inputs))
            for node in rewritten.nodes
        ),
        outputs=tuple((title, names[name]) for title, name in rewritten.outputs),
    )
    versions = sorted({(node.op, get(node.op).version) for node in rewritten.nodes})
    text = f"{_FORMAT}\n{class_}\n{versions}\n{print_graph(numbered)}"
    return hashlib.sha256(text.encode()).hexdigest()


def pipeline_id(program: str, device: Device, steps: tuple[PlannedStep, ...]) -> str:
    """`<backend>:<fingerprint>`: the program, the device, its driver, and the kernels with their versions."""
    kernels = [f"{s.launch.kernel.name} {s.launch.kernel.version}" for s in steps if s.launch is not None]
    facts = [program, device.info.name, str(device.info.driver), *kernels]
    backend = device.info.spec.partition(":")[0]
    return f"{backend}:{hashlib.sha256('|'.join(facts).encode()).hexdigest()[:32]}"


def explain(graph: Graph, *, after: str = "schedule", passes: tuple[Pass, ...] = PASSES) -> str:
    """The graph as text after a pass: `rewrite`, `legalize`, `fuse`, `assign_layouts`; or, after `plan_memory` and
    `schedule`, where values lie and which steps there are."""
    known = [step.name for step in passes] + ["plan_memory", "schedule"]
    if after not in known:
        raise GraphError(f"there is no pass {after!r}.", f"name one of {', '.join(known)}.")
    lowered = run_passes(graph, passes, after=after)
    if after not in ("plan_memory", "schedule"):
        return print_graph(lowered)
    steps = Schedule(portable=False).run(lowered)
    if after == "schedule":
        return "\n".join(f"{i}. {step}" for i, step in enumerate(steps))
    return str(PlanMemory().run(lowered, steps))


def host_steps(graph: Graph, passes: tuple[Pass, ...] = PASSES) -> dict[str, str]:
    """The nodes that the host would compute on a device that has every feature, and why."""
    steps = Schedule(portable=False).run(run_passes(graph, passes))
    return {step.node.name: step.reason for step in steps if step.place == "host"}
