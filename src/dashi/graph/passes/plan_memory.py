"""Where values lie: byte ranges of one arena, reused once a value was read for the last time.

Greedy by size: the largest value is placed first, each at the lowest place that no value of an overlapping life has.
Lives are counted in levels of the schedule: steps of one level need not wait for one another, and the plan gives them
no reason to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashi.graph.ir import Graph
from dashi.graph.ops.movement import is_alias
from dashi.graph.passes.schedule import PlannedStep


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

    def __str__(self) -> str:
        lines = [f"{name}: byte {offset}" for name, offset in sorted(self.offsets.items(), key=lambda item: item[1])]
        lines += [f"{name}: the bytes of {origin}" for name, origin in self.aliases.items()]
        return "\n".join([*lines, f"{self.nbytes} bytes planned, {self.liveness_bytes} live at once at most"])


@dataclass(frozen=True)
class PlanMemory:
    """`alignment`: values begin at multiples of so many bytes, which every device allows. With `reuse=False` each value
    has bytes of its own, for debugging."""

    alignment: int = 256
    reuse: bool = True
    name: str = "plan_memory"

    def run(self, graph: Graph, steps: Sequence[PlannedStep]) -> MemoryPlan:
        aliases = {node.name: node.inputs[0] for node in graph.of("view") if is_alias(graph, node)}
        lives = _lives(graph, [step.level for step in steps], steps, aliases)
        offsets: dict[str, int] = {}
        placed: list[Life] = []
        for life in sorted(lives, key=lambda life: (-life.nbytes, life.first, life.name)):
            others = [p for p in placed if not self.reuse or life.meets(p)]
            offsets[life.name] = self._lowest(life, others, offsets)
            placed.append(life)
        total = max((offsets[life.name] + self._rounded(life.nbytes) for life in lives), default=0)
        bound = _most_at_once(_lives(graph, range(1, len(steps) + 1), steps, aliases))
        return MemoryPlan(offsets, total, bound, sum(life.nbytes for life in lives), aliases)

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


def _lives(graph: Graph, times: Sequence[int], steps: Sequence[PlannedStep], aliases: dict[str, str]) -> list[Life]:
    """When each input and each computed value must lie in memory: from the step that makes it (inputs: before the
    first) to the last that reads it (results: after the last), with a time for each step, from 1 on."""
    first = {node.name: 0 for node in graph.of("input")}
    first |= {step.node.name: time for time, step in zip(times, steps, strict=True)}
    last = {name: time for name, time in first.items() if time}
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
