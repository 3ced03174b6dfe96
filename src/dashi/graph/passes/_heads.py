"""Attention without copies: its kernel reads heads through strides, and writes them in either layout, bit for bit."""

from __future__ import annotations

from dashi.graph._views import view_attribute
from dashi.graph.builder import typed_node
from dashi.graph.ir import Graph, Node, free_name
from dashi.graph.ops.attention import ATTENTION
from dashi.graph.ops.movement import TRANSPOSE, is_alias, node_view

_TURN = (0, 2, 1, 3)


def turned_results(graph: Graph) -> Graph:
    """Attention with heads first, of which nothing is read but the transpose with heads last, gives that itself."""
    nodes: list[Node] = []
    turned: set[str] = set()
    taken = set(graph.by_name)
    for node in graph.nodes:
        if _is_turned(graph, node):
            turned.add(node.name)
            inputs = list(node.inputs)
            for place, source in enumerate(graph.sources(node)[:3]):
                inputs[place] = free_name(f"{node.name}.in{place}", taken)
                taken.add(inputs[place])
                nodes.append(typed_node(TRANSPOSE, inputs[place], (source.name,), [source.type], {"axes": _TURN}))
            attributes: dict[str, object] = {**dict(node.attributes), "heads_last": True}
            types = [n.type for n in nodes[-3:]] + [s.type for s in graph.sources(node)[3:]]
            nodes.append(typed_node(ATTENTION, node.name, tuple(inputs), types, attributes))
        elif node.op == TRANSPOSE.name and node.inputs[0] in turned:
            nodes.append(typed_node(TRANSPOSE, node.name, node.inputs, [node.type], {"axes": (0, 1, 2, 3)}))
        else:
            nodes.append(node)
    return graph.with_nodes(nodes)


def _is_turned(graph: Graph, node: Node) -> bool:
    if node.op != ATTENTION.name or node.get("heads_last") or len(node.shape) != 4 or node.name in graph.results:
        return False
    users = [graph[name] for name in graph.users[node.name]]
    return bool(users) and all(u.op == TRANSPOSE.name and u.integers("axes") == _TURN for u in users)


def operands_through_views(graph: Graph) -> Graph:
    """Attention reads q, k, v, masks and biases where they lie, if the numbers of a head lie side by side."""
    return graph.with_nodes(_through_views(graph, node) if node.op == ATTENTION.name else node for node in graph.nodes)


def _through_views(graph: Graph, node: Node) -> Node:
    sources = graph.sources(node)
    read = [_is_readable(graph, source, place < 3) for place, source in enumerate(sources)]
    if not any(read) or len(node.shape) != 4:
        return node
    views = [view_attribute(node_view(s)) if readable else None for s, readable in zip(sources, read, strict=True)]
    origins = [graph[s.inputs[0]] if readable else s for s, readable in zip(sources, read, strict=True)]
    attributes: dict[str, object] = {**dict(node.attributes), "views": views}
    return typed_node(ATTENTION, node.name, tuple(o.name for o in origins), [o.type for o in origins], attributes)


def _is_readable(graph: Graph, source: Node, is_heads: bool) -> bool:
    """Whether the kernel can read through a view: of four axes, floats, in rows of heads."""
    if source.op != "view" or is_alias(graph, source) or len(source.shape) != 4 or not source.dtype.is_float:
        return False
    return not is_heads or source.shape[3] == 1 or node_view(source).strides[3] == 1
