"""Where values lie: byte ranges of one arena, reused once a value was read for the last time.

Greedy by size: the largest value is placed first, each at the lowest place that no value of an overlapping life has.
Lives are counted in levels of the schedule: steps of one level need not wait for one another, and the plan gives them
no reason to; where that takes far more memory than there must be, they are counted in steps. What is joined with others
lies in the whole from the beginning, where devices can bind it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dashi.graph.ir import Graph
from dashi.graph.ops._pieces import PIECES, WINDOW
from dashi.graph.ops.movement import is_alias
from dashi.graph.passes.schedule import PlannedStep

_VECTOR: Final = 16
"""Bytes that shaders write at a time where elements are smaller than words."""


@dataclass(frozen=True)
class Life:
    """A value's bytes, and the first and last time (a step, or a level of steps) at which they must lie somewhere."""

    name: str
    nbytes: int
    first: int
    last: int

    def meets(self, other: Life) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class MemoryPlan:
    """Offsets of values in the arena, and of which value a view shows the bytes."""

    offsets: dict[str, int]
    nbytes: int
    liveness_bytes: int
    """The largest sum of the bytes of values that live at the same time: no plan needs less."""
    unshared_bytes: int
    """What the values would take with memory of their own each."""
    aliases: dict[str, str]
    """Values that lie in the bytes of another, and in which."""
    starts: dict[str, int] = field(default_factory=dict[str, int])
    """At which of those bytes they begin, where that is not the first."""

    def __str__(self) -> str:
        lines = [f"{name}: byte {offset}" for name, offset in sorted(self.offsets.items(), key=lambda item: item[1])]
        for name, origin in self.aliases.items():
            start = self.starts.get(name, 0)
            lines.append(f"{name}: the bytes of {origin}" + (f" from {start} on" if start else ""))
        return "\n".join([*lines, f"{self.nbytes} bytes planned, {self.liveness_bytes} live at once at most"])


@dataclass(frozen=True)
class PlanMemory:
    """`alignment`: values begin at multiples of so many bytes, which every device allows. With `reuse=False` each value
    has bytes of its own, for debugging. `most_extra` is how many bytes more than 1.08 times the bound may be taken for
    steps of one level to be independent."""

    alignment: int = 256
    reuse: bool = True
    most_extra: int = 1 << 24
    name: str = "plan_memory"

    def run(self, graph: Graph, steps: Sequence[PlannedStep]) -> MemoryPlan:
        aliases, starts = aliases_of(graph, steps, self.alignment if self.reuse else 0)
        by_level = self._places(_lives(graph, [step.level for step in steps], steps, aliases))
        in_steps = _lives(graph, range(1, len(steps) + 1), steps, aliases)
        bound = _most_at_once(in_steps)
        offsets, total = by_level
        if self.reuse and total > 1.08 * bound + self.most_extra:
            offsets, total = min(by_level, self._places(in_steps), key=lambda places: places[1])
        return MemoryPlan(offsets, total, bound, sum(life.nbytes for life in in_steps), aliases, starts)

    def _places(self, lives: Sequence[Life]) -> tuple[dict[str, int], int]:
        """Where values with these lives begin, and how many bytes they take together."""
        offsets: dict[str, int] = {}
        placed: list[Life] = []
        for life in sorted(lives, key=lambda life: (-life.nbytes, life.first, life.name)):
            others = [p for p in placed if not self.reuse or life.meets(p)]
            offsets[life.name] = self._lowest(life, others, offsets)
            placed.append(life)
        return offsets, max((offsets[life.name] + self._rounded(life.nbytes) for life in lives), default=0)

    def _lowest(self, life: Life, others: Sequence[Life], offsets: dict[str, int]) -> int:
        """The lowest place with room for a value, beside others that live at the same time."""
        start = 0
        for taken, nbytes in sorted((offsets[other.name], self._rounded(other.nbytes)) for other in others):
            if start + self._rounded(life.nbytes) <= taken:
                break
            start = max(start, taken + nbytes)
        return start

    def _rounded(self, nbytes: int) -> int:
        return -(-nbytes // self.alignment) * self.alignment


def aliases_of(
    graph: Graph, steps: Sequence[PlannedStep] = (), alignment: int = 0
) -> tuple[dict[str, str], dict[str, int]]:
    """In which values' bytes others lie, and at which of them they begin: views of all bytes, windows, the pieces of a
    whole, and what steps join with others at a place that can be bound (none, if `alignment` is 0)."""
    inside: dict[str, tuple[str, int]] = {}
    for node in graph.nodes:
        if node.op == WINDOW.name:
            inside[node.name] = (node.inputs[0], node.integer("first") * node.dtype.size)
        elif is_alias(graph, node):
            inside[node.name] = (node.inputs[0], 0)
        elif node.op == PIECES.name:
            start = 0
            for piece in graph.sources(node):
                inside[piece.name] = (node.name, start)
                start += piece.type.nbytes
    if alignment:
        inside |= _parts_in_place(graph, steps, _origins(inside)[0], alignment)
    return _origins(inside)


def _origins(inside: Mapping[str, tuple[str, int]]) -> tuple[dict[str, str], dict[str, int]]:
    """The values that lie in no other, by those that lie in them, and at which bytes these begin, where that is not the
    first."""
    origins: dict[str, str] = {}
    starts: dict[str, int] = {}
    for name in inside:
        origins[name], starts[name] = name, 0
        while origins[name] in inside:
            origins[name], start = inside[origins[name]]
            starts[name] += start
    return origins, {name: start for name, start in starts.items() if start}


def _parts_in_place(
    graph: Graph, steps: Sequence[PlannedStep], origins: dict[str, str], alignment: int
) -> dict[str, tuple[str, int]]:
    """Values that steps can write into the whole that they are copied to, and where in it; each into the first one."""
    computed = {step.node.name for step in steps} - origins.keys()
    results = {origins.get(name, name) for name in graph.results}
    inside: dict[str, tuple[str, int]] = {}
    for step in steps:
        for name, first in zip(step.reads, step.copies.offsets if step.copies else (), strict=False):
            part = graph[origins.get(name, name)]
            start, whole_words = first * part.dtype.size, part.dtype.size >= 4 or part.type.nbytes % _VECTOR == 0
            free = part.name in computed and part.name not in results and part.name not in inside
            if free and whole_words and part.type.nbytes and start % alignment == 0:
                inside[part.name] = (step.node.name, start)
    return inside


def _lives(graph: Graph, times: Sequence[int], steps: Sequence[PlannedStep], aliases: dict[str, str]) -> list[Life]:
    """When each input and each computed value must lie in memory: from the step that makes it (inputs: before the
    first) to the last that reads it (results: after the last), with a time for each step, from 1 on."""
    first = {node.name: 0 for node in graph.of("input")}
    last: dict[str, int] = {}
    for time, step in zip(times, steps, strict=True):
        name = aliases.get(step.node.name, step.node.name)  # parts begin the life of the whole
        first[name], last[name] = min(first.get(name, time), time), time
    for time, step in zip(times, steps, strict=True):
        for name in step.reads:
            last[aliases.get(name, name)] = time
    for _, name in graph.outputs:
        last[aliases.get(name, name)] = max(times, default=0) + 1
    return [Life(name, graph[name].type.nbytes, time, last[name]) for name, time in first.items() if name in last]


def _most_at_once(lives: Sequence[Life]) -> int:
    """The largest sum of bytes of values that live at one time."""
    changes: dict[int, int] = {}
    for life in lives:
        changes[life.first] = changes.get(life.first, 0) + life.nbytes
        changes[life.last + 1] = changes.get(life.last + 1, 0) - life.nbytes
    live = most = 0
    for time in sorted(changes):
        live += changes[time]
        most = max(most, live)
    return most
