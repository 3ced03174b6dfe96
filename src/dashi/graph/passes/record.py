"""Binds the steps of a schedule to memory of a device, and records them once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import LimitError
from dashi.graph._values import canonical
from dashi.graph._views import read_through
from dashi.graph.ir import Graph, Node
from dashi.graph.ops._leaves import constant_values, packed_values
from dashi.graph.passes.plan_memory import MemoryPlan
from dashi.graph.passes.schedule import STORED, PlannedStep
from dashi.graph.registry import get
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.runtime.array import Array
    from dashi.runtime.block import Block
    from dashi.runtime.device import AnyStep, Device, Program, ScratchPool

_BLOCK: Final = 1 << 30
"""Bytes: stored values share blocks of up to so many."""


@dataclass(frozen=True)
class Recorded:
    """A program, and the arrays of its inputs, results and stored values, by name."""

    program: Program
    inputs: Mapping[str, Array]
    results: Mapping[str, Array]
    stored: Mapping[str, Array]


@dataclass(frozen=True)
class PipelineMemory:
    """The arena and the blocks of stored values on a device: where each value begins."""

    places: Mapping[str, tuple[Block, int]]
    aliases: Mapping[str, str]
    resident: frozenset[str] = frozenset()
    """Inputs that lie in memory of their own, whose values do not come from the host with a run."""

    def with_resident(self, blocks: Mapping[str, Block]) -> PipelineMemory:
        """A copy of the map in which some inputs, by name, lie in blocks without other values."""
        places = {**self.places, **{name: (block, 0) for name, block in blocks.items()}}
        return replace(self, places=places, resident=frozenset(blocks))

    def holds(self, node: Node) -> bool:
        """Whether a node's value lies here; views that are no aliases do not."""
        return self.aliases.get(node.name, node.name) in self.places

    def array(self, node: Node, shape: Shape | None = None) -> Array:
        """The bytes of a node's value as an array; of another shape, where one is named."""
        block, offset = self.places[self.aliases.get(node.name, node.name)]
        try:
            return block.array(offset, node.shape if shape is None else shape, node.dtype)
        except LimitError as error:
            raise LimitError(f"node {node.name!r} ({node.type}): {error.what}", "cut it into parts by rows.") from error


@dataclass(frozen=True)
class Record:
    """`slots` is how many runs may be under way or wait to be read."""

    slots: int = 4
    timed: bool = False
    name: str = "record"

    def run(
        self,
        device: Device,
        graph: Graph,
        steps: Sequence[PlannedStep],
        memory: PipelineMemory,
        copies: Sequence[tuple[str, Array]] = (),
        fetch: Sequence[str] | None = None,
    ) -> Recorded:
        """The recording. `copies` are results to be copied on the device after the last step, and where to; `fetch`
        names the results that come back to the host: all, unless it says which."""
        arrays = {node.name: memory.array(node) for node in graph.nodes if memory.holds(node)}
        scratch: ScratchPool = {}
        bound = [part for step in steps for part in _bind(device, graph, step, memory, arrays, scratch)]
        fed = [node.name for node in graph.of("input") if node.name in arrays and node.name not in memory.resident]
        inputs = {name: arrays[name] for name in fed}
        results = {title: arrays[name] for title, name in graph.outputs}
        bound += [device.copy_step(results[title], target) for title, target in copies if target.nbytes]
        fetched = [array for title, array in results.items() if fetch is None or title in fetch]
        program = device.program(
            bound, label=graph.name, feed=list(inputs.values()), fetch=fetched, slots=self.slots, timed=self.timed
        )
        stored = {node.name: arrays[node.name] for node in graph.nodes if node.op in STORED and node.name in arrays}
        return Recorded(program, inputs, results, stored)


def take_memory(device: Device, graph: Graph, steps: Sequence[PlannedStep], plan: MemoryPlan) -> PipelineMemory:
    """PipelineMemory of a device for a plan, and for the stored values that steps read; those are undefined yet."""
    arena = device.block(max(1, plan.nbytes))
    places = {name: (arena, offset) for name, offset in plan.offsets.items()}
    for name in plan.offsets:
        kind = graph[name].type
        if kind.dtype.size < 4 and kind.nbytes % 16:
            # Shaders write small elements 16 bytes at a time: such values end where their memory does.
            places[name] = (device.block(max(1, kind.nbytes)), 0)
    read = {plan.aliases.get(name, name) for step in steps for name in step.reads}
    stored = [node for node in graph.nodes if node.op in STORED and node.name in read]
    for group in _groups(stored):
        block = device.block(max(1, sum(map(_rounded, group))))
        offset = 0
        for node in group:
            places[node.name] = (block, offset)
            offset += _rounded(node)
    return PipelineMemory(places, plan.aliases)


def stored_values(node: Node, graph: Graph, params: Mapping[str, HostArray]) -> HostArray:
    """What a param, a repacked param or a constant holds, canonical."""
    if node.op == "constant":
        return constant_values(node)
    if node.op == "packed":
        return packed_values(node, canonical(params[node.inputs[0]]))
    return canonical(params[node.name])


def _groups(nodes: Sequence[Node]) -> list[list[Node]]:
    groups: list[list[Node]] = [[]]
    for node in nodes:
        if groups[-1] and sum(map(_rounded, groups[-1])) + _rounded(node) > _BLOCK:
            groups.append([])
        groups[-1].append(node)
    return [group for group in groups if group]


def _rounded(node: Node) -> int:
    return -(-node.type.nbytes // 256) * 256


def _bind(
    device: Device,
    graph: Graph,
    step: PlannedStep,
    memory: PipelineMemory,
    arrays: Mapping[str, Array],
    scratch: ScratchPool,
) -> list[AnyStep]:
    """What is recorded for a step."""
    target = arrays[step.node.name]
    if step.launch is not None:
        launch = step.launch
        inputs = [memory.array(graph[name], shape) for name, shape in zip(step.reads, launch.shapes, strict=True)]
        out = memory.array(step.node, launch.result)
        return [device.bind(launch.kernel, *inputs, out=out, tuning=None, scratch=scratch, **launch.scalars)]
    if step.copies is not None:
        sources = [arrays[name] for name in step.reads]
        starts = [offset * target.dtype.size for offset in step.copies.offsets]
        parts = [device.view(target, at, x.shape, x.dtype) for x, at in zip(sources, starts, strict=True)]
        return [device.copy_step(x, part) for x, part in zip(sources, parts, strict=True) if x.nbytes]
    return [device.host_step(_host_function(step), [arrays[n] for n in step.reads], [target], name=step.node.name)]


def _host_function(step: PlannedStep) -> Callable[..., HostArray]:
    """The definition of the step's op, of canonical values read through views."""
    node, evaluate = step.node, get(step.node.op).evaluate

    def compute(*values: HostArray) -> HostArray:
        read = [canonical(read_through(view, v)) for view, v in zip(step.views, values, strict=True)]
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(evaluate(node, *read)).reshape(node.shape)

    return compute
