"""Checks a graph as a whole: what the builder guarantees of each node must hold after every pass."""

from __future__ import annotations

from dashi.errors import GraphError
from dashi.graph.builder import typed_node
from dashi.graph.ir import Graph, Node

_LEAVES = ("input", "param", "constant")


def require_graph(graph: object) -> None:
    """A GraphError where something is no graph."""
    if not isinstance(graph, Graph):
        raise GraphError(f"{type(graph).__name__} is no graph.", "build one: dashi.graph.Builder, or parse_graph.")


def verify(graph: Graph) -> Graph:
    """The graph itself, if each name is there once, each node stands behind its inputs, each type is the one that its
    op infers, and each result is a node; else a GraphError that names the first node at fault."""
    require_graph(graph)
    before: dict[str, Node] = {}
    for node in graph.nodes:
        if node.name in before:
            raise GraphError(f"there are two nodes {node.name!r}.", "give each node its own name.")
        for name in node.inputs:
            if name not in before:
                raise GraphError(
                    f"node {node.name!r} reads {name!r}, which does not stand before it.",
                    "put nodes behind their inputs; a graph has no cycles.",
                )
        _check_type(node, before)
        before[node.name] = node
    titles = [title for title, _ in graph.outputs]
    if not titles or len(set(titles)) != len(titles):
        raise GraphError(f"the results {titles} are none, or have a name twice.", "name each result once.")
    for title, name in graph.outputs:
        if name not in before:
            raise GraphError(f"the result {title!r} is {name!r}, which is no node.", "name a node of the graph.")
        if before[name].op == "packed":
            raise GraphError(f"the result {title!r} is the packed param {name!r}.", "copy it, or show the param.")
    return graph


def _check_type(node: Node, before: dict[str, Node]) -> None:
    from dashi.graph.registry import get

    op = get(node.op)
    if op.kind == "leaf" and node.inputs:
        raise GraphError(f"the leaf {node.name!r} reads other nodes.", "give leaves no inputs.")
    if node.op in _LEAVES:
        return
    if node.op == "packed" and before[node.inputs[0]].op != "param":
        raise GraphError(f"{node.name!r} packs {node.inputs[0]!r}, which is no param.", "copy it by a map.")
    types = [before[name].type for name in node.inputs]
    inferred = typed_node(op, node.name, node.inputs, types, dict(node.attributes)).type
    if inferred != node.type:
        raise GraphError(
            f"node {node.name!r} says that it is {node.type}; its op makes {inferred}.", "infer types again in a pass."
        )
