"""Compiles graphs: the passes in order, then memory, a schedule and a recording on a device."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from dashi.errors import GraphError, suggestion
from dashi.graph import _compile_cache as cached
from dashi.graph._assembly import Assembly
from dashi.graph.debug import Debug, debug_from_environment
from dashi.graph.evaluation import require_values
from dashi.graph.ir import Graph, print_graph
from dashi.graph.pass_order import PASSES, Pass, require_passes, run_passes
from dashi.graph.passes.choose_products import ChooseProducts, product_passes
from dashi.graph.passes.cut import CutLargeValues
from dashi.graph.passes.fuse import Fuse
from dashi.graph.passes.plan_memory import PlanMemory
from dashi.graph.passes.record import Record, take_memory
from dashi.graph.passes.schedule import Schedule
from dashi.graph.registry import get
from dashi.graph.report import build_report
from dashi.graph.verification import require_graph, verify
from dashi.kernels.abi import Limits
from dashi.runtime._binding import Step
from dashi.runtime._null_device import NullDevice
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.pipeline import CompiledPipeline
    from dashi.runtime.device import AnyStep, Device

Class = Literal["portable", "device"]
Matmul = Literal["coop"]
MOST_SLOTS: Final = 1024
_FORMAT: Final = 1
_ROOMY: Final = Limits(invocations=256, storage_range=1 << 32, storage_buffers=64, resident=128)
"""Limits of a device that fuses all that can be fused, and cuts nothing."""


def compile(
    graph: Graph,
    device: Device,
    *,
    class_: Class = "portable",
    params: Mapping[str, HostArray] | None = None,
    passes: tuple[Pass, ...] = PASSES,
    slots: int = 4,
    matmul: Matmul | None = None,
    cache: bool = True,
    debug: Debug | None = None,
) -> CompiledPipeline:
    """A pipeline that runs the graph on a device again and again. `params` are values for its params, where they are
    not the graph's own; `slots` is how many runs may be under way at once. A portable pipeline refuses kernels that
    are not; in the class "device" products take the device's own order, and with `matmul="coop"` its matrix units, for
    factors that are rounded to halves. What was compiled before for the same device and driver comes from the cache on
    disk, unless `cache` is False or the environment has DASHI_GRAPH_CACHE=off; the report says so. `debug` has
    switches for whoever looks for a fault; those of the environment's DASHI_GRAPH_DEBUG, if it is None."""
    from dashi.graph.pipeline import CompiledPipeline

    if class_ not in ("portable", "device"):
        raise GraphError(f"there is no class {class_!r} of pipelines.", 'use "portable" or "device".')
    _require_kinds(graph, device, slots, {} if params is None else params, debug)
    verify(graph)
    own = {name: np.array(array) for name, array in (params or {}).items()}  # the caller may change his
    for name in own:
        if name not in (known := [node.name for node in graph.of("param")]):
            raise GraphError(
                f"the graph {graph.name!r} has no param {name!r}.",
                f"{suggestion(name, known)}it has {', '.join(known) or 'none'}.",
            )
    values = {**graph.params, **own}
    stored = {node.name: require_values(node, values.get(node.name)) for node in graph.of("param")}
    require_passes(passes)
    fitted = for_device(passes, device, class_, matmul)
    key = cached.entry_key(graph, class_, fitted, device) if cache and cached.is_on() else ""
    entry, state = cached.read_entry(key, graph) if key else (None, "off")
    if entry is not None:
        device.prepare_pipelines(entry.pipelines)
    lowered = run_passes(graph, fitted) if entry is None else entry.graph
    schedule = Schedule(portable=class_ == "portable").run(lowered, device.features)
    plan = PlanMemory(alignment=max(256, device.part_alignment)).run(lowered, schedule)
    switches = debug_from_environment() if debug is None else debug
    assembly = Assembly(device, lowered, schedule, plan, slots, switches)
    memory, recorded = assembly.build(stored)
    fingerprint = program_id(graph, class_, passes, matmul) if entry is None else entry.program_id
    if key and entry is None:
        sources = device.pipeline_sources(recorded.program.steps)
        failure = cached.write_entry(key, cached.CacheEntry(fingerprint, lowered, sources))
        state = f"{state}, not kept: {failure}" if failure else state
    ids = (fingerprint, pipeline_id(fingerprint, device, recorded.program.steps))
    report = build_report(lowered, schedule, plan, recorded.program, ids, class_, state, switches)
    return CompiledPipeline(assembly, memory, recorded, stored, report)


def _require_kinds(graph: object, device: object, slots: object, params: object, debug: object) -> None:
    from dashi.runtime.device import Device

    require_graph(graph)
    if not isinstance(device, Device):
        raise GraphError(f"{type(device).__name__} is no device.", "open one: dashi.open().")
    if debug is not None and not isinstance(debug, Debug):
        raise GraphError(f"{debug!r:.80} are no debug switches.", "pass a dashi.graph.Debug, or None.")
    if not isinstance(params, Mapping):
        raise GraphError(f"params are {type(params).__name__}, not values by name.", "pass a dict: {name: array}.")
    if isinstance(slots, int) and slots > MOST_SLOTS:
        raise GraphError(f"{slots} runs cannot be under way at once.", f"ask for {MOST_SLOTS} slots at most.")


def for_device(
    passes: tuple[Pass, ...], device: Device, class_: Class = "portable", matmul: Matmul | None = None
) -> tuple[Pass, ...]:
    """The passes with what a device can bind, how many arrays a kernel may have and how large they may be; and with the
    choice of products in a class."""
    limits = device.limits
    fitted = tuple(replace(step, buffers=limits.storage_buffers) if isinstance(step, Fuse) else step for step in passes)
    cut = CutLargeValues(limits.storage_range, max(256, device.part_alignment))
    return (*fitted, cut, *product_passes(device, class_, matmul))


def program_id(
    graph: Graph, class_: Class = "portable", passes: tuple[Pass, ...] = PASSES, matmul: Matmul | None = None
) -> str:
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
    kind = f"{class_} {matmul}" if matmul else class_
    text = f"{_FORMAT}\n{kind}\n{versions}\n{print_graph(numbered)}"
    return hashlib.sha256(text.encode()).hexdigest()


def pipeline_id(program: str, device: Device, steps: Sequence[AnyStep]) -> str:
    """`<backend>:<fingerprint>`: the program, the device, its driver, and the kernels of bound steps with their
    versions and tunings."""
    kernels = [f"{s.kernel.name} {s.kernel.version} {s.tuning}" for s in steps if isinstance(s, Step)]
    facts = [program, device.info.name, str(device.info.driver), device.info.driver_info, *kernels]
    backend = device.info.spec.partition(":")[0]
    return f"{backend}:{hashlib.sha256('|'.join(facts).encode()).hexdigest()[:32]}"


def explain(
    graph: Graph,
    *,
    after: str = "schedule",
    passes: tuple[Pass, ...] = PASSES,
    device: Device | None = None,
    class_: Class = "portable",
    matmul: Matmul | None = None,
) -> str:
    """The graph as text after a pass: `rewrite`, `legalize`, `fuse`, `assign_layouts`, `cut`, `choose_products`; or,
    after `schedule`, `plan_memory` and `record`, which steps there are, where values lie, and what is recorded, with
    its barriers. It is what the device makes of the graph, or one that has every feature and computes nothing."""
    ends = ("schedule", "plan_memory", "record")
    known = [*(step.name for step in passes), CutLargeValues.name, ChooseProducts.name, *ends]
    if after not in known:
        raise GraphError(f"there is no pass {after!r}.", f"name one of {', '.join(known)}.")
    if device is None:
        with NullDevice(_ROOMY) as null:
            return explain(graph, after=after, passes=passes, device=null, class_=class_, matmul=matmul)
    fitted = for_device(passes, device, class_, matmul)
    if after not in ends:
        there = any(step.name == after for step in fitted)
        return print_graph(run_passes(graph, fitted, after=after if there else fitted[-1].name))
    lowered = run_passes(graph, fitted)
    steps = Schedule(portable=False).run(lowered, device.features)
    if after == "schedule":
        return "\n".join(f"{i}. {step}" for i, step in enumerate(steps))
    plan = PlanMemory(alignment=max(256, device.part_alignment)).run(lowered, steps)
    if after == "plan_memory":
        return str(plan)
    memory = take_memory(device, lowered, steps, plan)
    with Record(slots=1).run(device, lowered, steps, memory).program as program:
        return str(program.describe())


def host_steps(graph: Graph, passes: tuple[Pass, ...] = PASSES) -> dict[str, str]:
    """The nodes that the host would compute on a device that has every feature, and why."""
    steps = Schedule(portable=False).run(run_passes(graph, passes))
    return {step.node.name: step.reason for step in steps if step.place == "host"}
