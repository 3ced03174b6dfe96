"""Chains of elementwise ops become one node each, which reads its inputs through views and memory once. No bit changes:
a map is its lines, one after another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dashi.graph.builder import typed_node
from dashi.graph.ir import Graph, Node
from dashi.graph.ops import get
from dashi.graph.ops.fused import MAP, Line, fusable, map_attributes, number_operand
from dashi.graph.ops.leaves import uniform
from dashi.graph.ops.movement import is_alias, node_view
from dashi.kernels._fused_abi import AXES, INPUTS, collapse, dense, stretched
from dashi.kernels.abi import View


@dataclass(frozen=True)
class Fuse:
    """`longest` is the most elementwise ops in one map; with 1 nothing is fused."""

    longest: int = 64
    name: str = "fuse"

    def run(self, graph: Graph) -> Graph:
        groups = self._groups(graph)
        inside = {name for root, group in groups.items() for name in group if name != root}
        notes = [f"{root}: {len(group)} ops in one" for root, group in groups.items() if len(group) > 1]
        nodes: list[Node] = []
        for node in graph.nodes:
            if node.name in groups:
                nodes.append(_map_of(graph, node, groups[node.name]))
            elif node.name not in inside:
                nodes.append(node)
        fused = _dense_operands(graph.with_nodes(nodes))
        return replace(fused, notes=(*fused.notes, *(f"fuse: {note}" for note in notes)))

    def _groups(self, graph: Graph) -> dict[str, set[str]]:
        """The names of the ops of each map, under that of the op whose value is stored."""
        groups: dict[str, set[str]] = {}
        inside: set[str] = set()
        for root in reversed(graph.nodes):
            if root.name in inside or not _is_fusable(graph, root):
                continue
            group = {root.name}
            while len(group) < self.longest and (found := self._next(graph, root, group)):
                group.add(found)
            groups[root.name] = group
            inside |= group
        return groups

    def _next(self, graph: Graph, root: Node, group: set[str]) -> str | None:
        """A value that only the group reads, and that the group can compute instead."""
        for name in _reads(graph, group):
            node = graph[name]
            if (
                _is_fusable(graph, node)
                and node.shape == root.shape
                and name not in graph.results
                and set(graph.users[name]) <= group
                and _fits(graph, root, group | {name})
            ):
                return name
        return None


def _is_fusable(graph: Graph, node: Node) -> bool:
    sources = graph.sources(node)
    if get(node.op).kind != "elementwise" or not fusable(node, [s.type for s in sources]):
        return False
    return any(uniform(s) is None for s in sources) and _fits(graph, node, {node.name})


def _reads(graph: Graph, group: Iterable[str]) -> list[str]:
    """What a group reads from outside, each once, in the order in which its ops name it."""
    members = sorted(group, key=graph.order.__getitem__)
    inside = set(members)
    return list(dict.fromkeys(name for member in members for name in graph[member].inputs if name not in inside))


def _operands(graph: Graph, group: Iterable[str]) -> list[tuple[str, str, View | None]]:
    """The arrays of a map: under which name the group reads it, which value it is, through which view."""
    listed: list[tuple[str, str, View | None]] = []
    for name in _reads(graph, group):
        node = graph[name]
        if uniform(node) is not None:
            continue
        listed.append((name, node.inputs[0], node_view(node)) if node.op == "view" else (name, name, None))
    return listed


def _fits(graph: Graph, root: Node, group: set[str]) -> bool:
    """Whether one kernel can read all that the group reads."""
    operands = _operands(graph, group)
    views = [view or dense(graph[source].shape) for _, source, view in operands]
    sizes, _ = collapse(root.shape, [stretched(view, root.shape).strides for view in views])
    return 0 < len(operands) <= INPUTS and len(sizes) <= AXES


def _map_of(graph: Graph, root: Node, group: set[str]) -> Node:
    operands = _operands(graph, group)
    words = {name: f"in{k}" for k, (name, _, _) in enumerate(operands)}
    lines: list[Line] = []
    for node in graph.nodes:
        if node.name not in group:
            continue
        for source in graph.sources(node):
            number = uniform(source)
            if number is not None:
                words[source.name] = number_operand(number, source.dtype.name)
        lines.append(Line(node.op, tuple(words[name] for name in node.inputs)))
        words[node.name] = f"v{len(lines) - 1}"
    sources = [graph[source] for _, source, _ in operands]
    attributes = map_attributes(lines, [view for _, _, view in operands])
    return typed_node(MAP, root.name, tuple(s.name for s in sources), [s.type for s in sources], attributes)


def _dense_operands(graph: Graph) -> Graph:
    """Kernels that cannot read through a view read a copy of it."""
    nodes: dict[str, Node] = {}
    for node in graph.nodes:
        launched = has_kernel(graph, node)
        inputs: list[str] = []
        for source in graph.sources(node):
            if launched and source.op == "view" and not is_alias(graph, source):
                copy = _copy_of(graph, source)
                nodes[copy.name] = copy
                inputs.append(copy.name)
            else:
                inputs.append(source.name)
        nodes[node.name] = replace(node, inputs=tuple(inputs))
    return graph.with_nodes(nodes.values())


def _copy_of(graph: Graph, view: Node) -> Node:
    """A map that copies the elements of a view."""
    origin = graph[view.inputs[0]]
    attributes = map_attributes([Line("copy", ("in0",))], [node_view(view)])
    return typed_node(MAP, f"{view.name}.dense", (origin.name,), [origin.type], attributes)


def has_kernel(graph: Graph, node: Node) -> bool:
    """Whether a kernel computes a node, and not the host."""
    launch = get(node.op).launch
    return launch is not None and launch(node, [source.type for source in graph.sources(node)]) is not None
