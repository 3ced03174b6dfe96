"""Parameters are kept in the order in which their kernels read them: repacked once, when they are set."""

from __future__ import annotations

from dataclasses import dataclass

from dashi.graph._views import view_attribute
from dashi.graph.builder import typed_node
from dashi.graph.ir import Graph, Node
from dashi.graph.ops._fused import lines_of, views_of
from dashi.graph.ops._leaves import PACKED
from dashi.graph.passes._packed_weights import place_packed_weights


@dataclass(frozen=True)
class AssignLayouts:
    """Copies of params through views become params that were repacked, packed params what kernels read of them."""

    name: str = "assign_layouts"

    def run(self, graph: Graph) -> Graph:
        views = [graph[name] for name in graph.results if graph[name].op == "view"]
        shown = graph.results | {view.inputs[0] for view in views}  # results come back from where steps wrote them
        packed = graph.with_nodes([node if node.name in shown else _packed(graph, node) for node in graph.nodes])
        return place_packed_weights(packed)


def _packed(graph: Graph, node: Node) -> Node:
    if node.op != "map" or len(node.inputs) != 1:
        return node
    (source,), (view,), lines = graph.sources(node), views_of(node), lines_of(node)
    if source.op != "param" or view is None or [line.op for line in lines] != ["copy"]:
        return node
    return typed_node(PACKED, node.name, (source.name,), [source.type], {"view": view_attribute(view)})
