"""Rewrites: the only changes of a graph that may change bits, the same for every device, each named in the report."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dashi.graph._folding import fold_constants
from dashi.graph.builder import typed_node
from dashi.graph.ir import Graph, Node, free_name
from dashi.graph.ops._leaves import uniform
from dashi.graph.ops.attention import ATTENTION, LARGEST_DEPTH
from dashi.graph.ops.movement import TRANSPOSE


@dataclass(frozen=True)
class Rewrite:
    """Computes what depends on constants alone, and finds attention in its parts."""

    fold: bool = True
    attention: bool = True
    name: str = "rewrite"

    def run(self, graph: Graph) -> Graph:
        notes: list[str] = []
        if self.fold:
            graph, folded = fold_constants(graph)
            notes += [f"fold_constants: {name}" for name in folded]
        if self.attention:
            graph = _find_attention(graph, notes)
        return replace(graph.with_nodes(graph.nodes), notes=(*graph.notes, *notes))


def _find_attention(graph: Graph, notes: list[str]) -> Graph:
    """matmul(softmax(matmul(q, k^T) scale), v) is attention(q, k, v): the weights are summed run by run."""
    nodes: list[Node] = []
    taken = set(graph.by_name)
    for node in graph.nodes:
        match = _attention_parts(graph, node)
        if match is None:
            nodes.append(node)
            continue
        query, keys, value, scale = match
        if keys.op == "transpose" and _swaps_last(keys):
            keys = graph[keys.inputs[0]]
        else:
            axes = (*range(len(keys.shape) - 2), len(keys.shape) - 1, len(keys.shape) - 2)
            turned = free_name(f"{node.name}.keys", taken)
            keys = typed_node(TRANSPOSE, turned, (keys.name,), [keys.type], {"axes": axes})
            nodes.append(keys)
            taken.add(turned)
        parts = (query, keys, value)
        attributes: dict[str, object] = {"scale": scale}
        nodes.append(
            typed_node(ATTENTION, node.name, tuple(p.name for p in parts), [p.type for p in parts], attributes)
        )
        notes.append(f"attention: {node.name}")
    return graph.with_nodes(nodes)


def _attention_parts(graph: Graph, node: Node) -> tuple[Node, Node, Node, float] | None:
    """Query, transposed keys, value and scale, where a node is the end of such a pattern that nothing else reads."""
    if node.op != "matmul" or node.dtype.name != "f32":
        return None
    weights, value = graph.sources(node)
    if weights.op != "softmax" or not _only_reader(graph, weights):
        return None
    (scaled,) = graph.sources(weights)
    if scaled.op != "mul" or not _only_reader(graph, scaled):
        return None
    scores, factor = graph.sources(scaled)
    scale = uniform(factor)
    if scores.op != "matmul" or scale is None or factor.type.size != 1 or not _only_reader(graph, scores):
        return None
    query, keys = graph.sources(scores)
    if len(factor.shape) > len(scores.shape) or not _fits_attention(query, keys, value):
        return None
    return query, keys, value, float(scale)


def _fits_attention(query: Node, keys: Node, value: Node) -> bool:
    """Whether the kernel's batches are those of the products: nothing is stretched, and nothing is empty."""
    *batch, _, depth = query.shape
    turned = (*keys.shape[:-2], keys.shape[-1], keys.shape[-2])
    same = list(keys.shape[:-2]) == batch and turned == value.shape
    return same and 0 not in (*query.shape, *value.shape) and depth <= LARGEST_DEPTH


def _only_reader(graph: Graph, node: Node) -> bool:
    return len(graph.users[node.name]) == 1 and node.name not in graph.results


def _swaps_last(node: Node) -> bool:
    axes = node.integers("axes")
    rank = len(axes)
    return axes == (*range(rank - 2), rank - 1, rank - 2)
