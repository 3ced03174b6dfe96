"""Binds the steps of a schedule to memory of a device, and records them once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import LimitError
from dashi.graph._feeding import copy_rows
from dashi.graph._values import canonical, canonical_input
from dashi.graph._views import read_through
from dashi.graph.evaluation import evaluate_node
from dashi.graph.ir import Graph, Node
from dashi.graph.ops._leaves import constant_values
from dashi.graph.passes.plan_memory import MemoryPlan
from dashi.graph.passes.schedule import STORED, PlannedStep
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.runtime.array import Array
    from dashi.runtime.block import Block
    from dashi.runtime.device import AnyStep, Device, Program, ScratchPool, Timed
    from dashi.runtime.info import Barriers

_BLOCK: Final = 1 << 30
"""Bytes: stored values share blocks of up to so many."""


@dataclass(frozen=True)
class Recorded:
    """A program, and the arrays of its inputs, results and stored values, by name."""

    program: Program
    inputs: Mapping[str, Array]
    results: Mapping[str, Array]
    stored: Mapping[str, Array | StoredParts]
    extents: tuple[Array, ...] = ()
    """How many rows are copied, for each copy that is not whole: fed with every run."""

    @cached_property
    def left_in_slots(self) -> frozenset[str]:
        """The results that kernels wrote in the slot of a run, and not in the arena."""
        reasons = self.program.copied_fetches
        if reasons is None:
            return frozenset()
        direct = {id(array) for array, why in zip(self.program.fetches, reasons, strict=True) if not why}
        return frozenset(title for title, array in self.results.items() if id(array) in direct)

    @cached_property
    def bytes_in(self) -> int:
        """Bytes that come from the host with a run."""
        return sum(array.nbytes for array in self.program.feeds)

    @cached_property
    def bytes_out(self) -> int:
        """Bytes that come back to the host with a run."""
        return sum(array.nbytes for array in self.program.fetches)


@dataclass(frozen=True)
class StoredParts:
    """A stored value that is larger than what a device binds, as arrays one behind another."""

    parts: tuple[Array, ...]

    def write(self, values: HostArray) -> None:
        """Replaces the contents."""
        flat, start = values.reshape(-1), 0
        for part in self.parts:
            part.write(flat[start : start + part.size])
            start += part.size


@dataclass(frozen=True)
class PipelineMemory:
    """The arena and the blocks of stored values on a device: where each value begins."""

    places: Mapping[str, tuple[Block, int]]
    aliases: Mapping[str, str]
    starts: Mapping[str, int] = field(default_factory=dict[str, int])
    """At which bytes of what they are aliases of values begin."""
    resident: frozenset[str] = frozenset()
    """Inputs whose values do not come from the host with a run: most lie in memory of their own."""

    def with_resident(self, blocks: Mapping[str, Block]) -> PipelineMemory:
        """A copy of the map in which some inputs, by name, lie in blocks without other values."""
        places = {**self.places, **{name: (block, 0) for name, block in blocks.items()}}
        return replace(self, places=places, resident=self.resident | blocks.keys())

    def with_imported(self, names: frozenset[str]) -> PipelineMemory:
        """A copy of the map in which some inputs lie where they did, and something else brings their values there."""
        return replace(self, resident=self.resident | names)

    def holds(self, node: Node) -> bool:
        """Whether a node's value lies here; views that are no aliases do not."""
        return self.aliases.get(node.name, node.name) in self.places

    def lies_in(self, name: str, whole: Node, start: int) -> bool:
        """Whether a value is the bytes of a whole from there on, so that it need not be copied there."""
        place = (self.aliases.get(name, name), self.starts.get(name, 0))
        base = (self.aliases.get(whole.name, whole.name), self.starts.get(whole.name, 0) + start)
        return place == base

    def array(self, node: Node, shape: Shape | None = None) -> Array:
        """The bytes of a node's value as an array; of another shape, where one is named."""
        block, offset = self.places[self.aliases.get(node.name, node.name)]
        offset += self.starts.get(node.name, 0)
        try:
            return block.array(offset, node.shape if shape is None else shape, node.dtype)
        except LimitError as error:
            raise LimitError(f"node {node.name!r} ({node.type}): {error.what}", "cut it into parts by rows.") from error

    def parts(self, node: Node, limit: int, first: int = 0, count: int | None = None) -> tuple[Array, ...]:
        """Elements of a node's value from `first` on, all unless `count` says how many, as lists one behind another of
        no more bytes than `limit`."""
        block, offset = self.places[self.aliases.get(node.name, node.name)]
        size = node.dtype.size
        at = offset + self.starts.get(node.name, 0) + first * size
        end = at + (node.type.size - first if count is None else count) * size
        listed: list[Array] = []
        while at < end:
            start = at // block.alignment * block.alignment  # arrays of a block start there
            stop = min(end, start + limit // block.alignment * block.alignment)
            array = block.array(start, ((stop - start) // size,), node.dtype)
            listed.append(
                array if start == at else array.device.view(array, at - start, ((stop - at) // size,), node.dtype)
            )
            at = stop
        return tuple(listed)


@dataclass(frozen=True)
class Record:
    """`slots` is how many runs may be under way or wait to be read."""

    slots: int = 4
    timed: Timed = False
    barriers: Barriers = "auto"
    name: str = "record"

    def run(
        self,
        device: Device,
        graph: Graph,
        steps: Sequence[PlannedStep],
        memory: PipelineMemory,
        copies: Sequence[tuple[str, Array, int | None]] = (),
        fetch: Sequence[str] | None = None,
    ) -> Recorded:
        """The recording. `copies` are results to be copied on the device after the last step, where to, and the most
        of their rows that are in use (None: all of it); `fetch` names the results that come back to the host: all,
        unless it says which."""
        limit = device.limits.storage_range
        arrays = {n.name: memory.array(n) for n in graph.nodes if memory.holds(n) and n.type.nbytes <= limit}
        scratch: ScratchPool = {}
        bound = [part for step in steps for part in _bind(device, graph, step, memory, arrays, scratch)]
        fed = [node.name for node in graph.of("input") if node.name in arrays and node.name not in memory.resident]
        inputs = {name: arrays[name] for name in fed}
        results = {title: arrays[name] for title, name in graph.outputs}
        extents: list[Array] = []
        for title, target, upper in copies:
            if upper is not None:
                selected, extent = copy_rows(device, results[title], target, upper)
                bound += selected
                extents.append(extent)
            elif target.nbytes:
                bound.append(device.copy_step(results[title], target))
        fetched = [array for title, array in results.items() if fetch is None or title in fetch]
        fed_arrays = [*inputs.values(), *extents]
        program = device.program(
            bound,
            label=graph.name,
            barriers=self.barriers,
            feed=fed_arrays,
            fetch=fetched,
            slots=self.slots,
            timed=self.timed,
            direct=bool(fed_arrays or fetched),  # what came back is read where it came to, not in the arena
        )
        return Recorded(program, inputs, results, stored_arrays(device, graph, memory, arrays), tuple(extents))


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
    return PipelineMemory(places, plan.aliases, plan.starts)


def stored_arrays(
    device: Device, graph: Graph, memory: PipelineMemory, arrays: Mapping[str, Array] | None = None
) -> dict[str, Array | StoredParts]:
    """What stored values lie in, by name; from `arrays`, where they are there."""
    limit = device.limits.storage_range
    stored: dict[str, Array | StoredParts] = {}
    for node in graph.nodes:
        if node.op in STORED and memory.holds(node):
            if node.type.nbytes > limit:
                stored[node.name] = StoredParts(memory.parts(node, limit))
            else:
                stored[node.name] = memory.array(node) if arrays is None else arrays[node.name]
    return stored


def stored_values(node: Node, graph: Graph, params: Mapping[str, HostArray]) -> HostArray:
    """What a param, a repacked param or a constant holds, canonical."""
    if node.op == "constant":
        return constant_values(node)
    if node.inputs:
        source = graph[node.inputs[0]]
        return evaluate_node(node, canonical_input(params[source.name], source.dtype), dtypes=[source.dtype])
    return canonical_input(params[node.name], node.dtype)


def call_text(inputs: Sequence[Array], out: Array) -> str:
    """A call of a kernel by types and shapes: what its tuning was measured for."""
    operands = [f"{array.dtype.name}[{','.join(map(str, array.shape))}]" for array in (*inputs, out)]
    return f"({' '.join(operands[:-1])}) -> {operands[-1]}"


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
    if step.launch is not None:
        launch = step.launch
        inputs = [memory.array(graph[name], shape) for name, shape in zip(step.reads, launch.shapes, strict=True)]
        out = memory.array(step.node, launch.result)
        tuning = device.tunings.get_call(launch.kernel, call_text(inputs, out)) if launch.kernel.tunings else None
        return [device.bind(launch.kernel, *inputs, out=out, tuning=tuning, scratch=scratch, **launch.scalars)]
    if step.copies is not None:
        moved = [
            (graph[name], at)
            for name, at in zip(step.reads, step.copies.offsets, strict=True)
            if not memory.lies_in(name, step.node, at * step.node.dtype.size)
        ]
        return [copy for source, at in moved for copy in _copies(device, memory, arrays, (source, step.node), at)]
    reads, target = [arrays[n] for n in step.reads], arrays[step.node.name]
    return [device.host_step(_host_function(graph, step), reads, [target], name=step.node.name)]


def _copies(
    device: Device, memory: PipelineMemory, arrays: Mapping[str, Array], nodes: tuple[Node, Node], at: int
) -> Iterator[AnyStep]:
    """Copies of all elements of a value into another, from an element on: one, where both can be bound."""
    source, target = nodes
    if source.name in arrays and target.name in arrays:
        part = arrays[source.name]
        if part.nbytes:
            start = at * target.dtype.size
            yield device.copy_step(part, device.view(arrays[target.name], start, part.shape, part.dtype))
        return
    limit = device.limits.storage_range
    most = limit // device.part_alignment * device.part_alignment // source.dtype.size - device.part_alignment
    for first in range(0, source.type.size, most):
        count = min(most, source.type.size - first)
        (part,) = memory.parts(source, limit, first, count)
        (into,) = memory.parts(target, limit, at + first, count)
        yield device.copy_step(part, into)


def _host_function(graph: Graph, step: PlannedStep) -> Callable[..., HostArray]:
    """The definition of the step's op, of canonical values read through views."""
    dtypes = [graph[name].dtype for name in step.reads]

    def run(*values: HostArray) -> HostArray:
        read = [canonical(read_through(view, v)) for view, v in zip(step.views, values, strict=True)]
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(evaluate_node(step.node, *read, dtypes=dtypes)).reshape(step.node.shape)

    return run
