"""Makes every op native: ops without a kernel are written in others, movement becomes index maps, and what must lie in
memory of its own is copied there. No bit changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dashi.graph._folding import fold_constants
from dashi.graph._views import dense, is_dense, view_attribute
from dashi.graph.builder import Builder, Tensor, typed_node
from dashi.graph.ir import Graph, Node, free_name
from dashi.graph.ops.elementwise import COPY
from dashi.graph.ops.movement import VIEW, is_alias, node_view
from dashi.graph.passes._heads import turned_results
from dashi.graph.passes._packed_weights import is_packed
from dashi.graph.registry import get
from dashi.kernels.abi import View


@dataclass(frozen=True)
class Legalize:
    """What remains are leaves, views of values that are none, and ops that a kernel or the host computes."""

    name: str = "legalize"

    def run(self, graph: Graph) -> Graph:
        # Places that gathers and scatters go by are often constants.
        expanded, _ = fold_constants(_expand(turned_results(graph)))
        return _separate_results(_canonical_moves(_views(expanded)))


def _expand(graph: Graph) -> Graph:
    """Ops that are written in others, by what they are written in; and those in turn."""
    written = True
    while written:
        graph, written = _expand_once(graph)
    return graph


def _expand_once(graph: Graph) -> tuple[Graph, bool]:
    """The graph with each op that is written in others by those, and whether there was one."""
    builder = Builder(graph.name, reserved=graph.by_name)
    new: dict[str, Tensor] = {}
    written = False
    for node in graph.nodes:
        expand = get(node.op).expand
        inputs = [new[name] for name in node.inputs]
        result = None
        if expand is not None and not _stays_packed(graph, node):
            with builder.scope(node.name):
                result = expand(node, *inputs)
        if result is None:
            result = builder.adopt(replace(node, inputs=tuple(tensor.name for tensor in inputs)))
        else:
            written = True
        new[node.name] = result
    whole = Graph(graph.name, builder.nodes, graph.outputs, graph.params, graph.notes)
    return whole.with_nodes(whole.nodes, [(title, new[name].name) for title, name in graph.outputs]), written


def _stays_packed(graph: Graph, node: Node) -> bool:
    """Whether a gather of rows has a packed table, which kernels read as it is."""
    return node.op == "gather" and not node.get("axis") and is_packed(graph, graph.sources(node)[0])


def _views(graph: Graph) -> Graph:
    """Every movement op as one index map into a value that lies in memory."""
    nodes: list[Node] = []
    maps: dict[str, tuple[Node, View]] = {}
    taken = set(graph.by_name)
    for node in graph.nodes:
        op = get(node.op)
        if op.kind != "view":
            nodes.append(node)
            continue
        source = graph[node.inputs[0]]
        origin, through = maps.get(source.name, (source, dense(source.shape)))
        view = _index_map(node, through)
        if view is None:
            origin = _copy(source, f"{node.name}.copy", taken)
            nodes.append(origin)
            view = _index_map(node, dense(source.shape))
        assert view is not None, "a dense value can be read through every movement op"
        maps[node.name] = (origin, view)
        nodes.append(typed_node(VIEW, node.name, (origin.name,), [origin.type], {"view": view_attribute(view)}))
    return graph.with_nodes(nodes)


def _index_map(node: Node, through: View) -> View | None:
    """A movement op as an index map into what `through` maps into; None where strides cannot say it."""
    op = get(node.op)
    if op.view is not None:
        return op.view(node, through)
    # The map of a `view` counts the elements of its source in order: they lie so in memory only where that is dense.
    return node_view(node) if is_dense(through) else None


def _canonical_moves(graph: Graph) -> Graph:
    """Float inputs that reach an op which moves bits are made canonical first."""
    nodes: list[Node] = []
    copies: dict[str, Node] = {}
    taken = set(graph.by_name)
    for node in graph.nodes:
        if get(node.op).canonical:
            nodes.append(node)
            continue
        inputs: list[str] = []
        for source in graph.sources(node):
            raw = _origin(graph, source).op == "input" and source.dtype.is_float
            if raw and source.name not in copies:
                copies[source.name] = _copy(source, f"{source.name}.canonical", taken)
                nodes.append(copies[source.name])
            inputs.append(copies.get(source.name, source).name)
        nodes.append(replace(node, inputs=tuple(inputs)))
    return graph.with_nodes(nodes)


def _separate_results(graph: Graph) -> Graph:
    """Each result a value of its own: no leaf, no view that is not dense, and none that is another result too."""
    nodes, outputs, origins = list(graph.nodes), list[tuple[str, str]](), set[str]()
    taken = set(graph.by_name)
    for title, name in graph.outputs:
        node, origin = graph[name], _origin(graph, graph[name])
        strided = node.op == "view" and not is_alias(graph, node)
        if get(origin.op).kind == "leaf" or strided or origin.name in origins:
            node = _copy(node, f"{title}.result", taken)
            nodes.append(node)
        origins.add(origin.name)
        outputs.append((title, node.name))
    return graph.with_nodes(nodes, outputs)


def _copy(source: Node, name: str, taken: set[str]) -> Node:
    """A copy of a value, under that name or one like it, which is taken from then on."""
    title = free_name(name, taken)
    taken.add(title)
    return typed_node(COPY, title, (source.name,), [source.type], {})


def _origin(graph: Graph, node: Node) -> Node:
    """The value that a view looks at; else the node itself."""
    return graph[node.inputs[0]] if node.op == "view" else node
