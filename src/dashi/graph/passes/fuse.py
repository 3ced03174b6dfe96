"""Chains of elementwise ops become one node each, or heads and tails of reductions and products. No bit changes: a
fused node is its parts, one after another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dashi.graph._lines import BodyLine, fusable, line_of, number_operand
from dashi.graph._views import is_dense, view_attribute
from dashi.graph.builder import typed_node
from dashi.graph.ir import Graph, Node, free_name
from dashi.graph.ops._fused import MAP, PRODUCT, ROWS, map_attributes, operands_of_product, texts, views_of
from dashi.graph.ops._leaves import uniform
from dashi.graph.ops._window_products import WINDOW_MATMUL, WINDOW_PRODUCT, matrix_shape
from dashi.graph.ops.movement import is_alias, node_view
from dashi.graph.ops.products import product_type
from dashi.graph.ops.rows import REDUCTIONS
from dashi.graph.passes._heads import operands_through_views
from dashi.graph.registry import get
from dashi.kernels._fused_abi import collapse, dense, stretched
from dashi.kernels.abi import View

_MOST_INPUTS: Final = 8
_MOST_AXES: Final = 8
_MOST_TAIL_INPUTS: Final = 4
"""Arrays that the tail of a product reads beside it."""
_PRODUCTS: Final = {"matmul": PRODUCT, WINDOW_MATMUL.name: WINDOW_PRODUCT}
"""Products, and what they become with their tails."""
_FLOATS: Final = ("f32", "f64")


@dataclass(frozen=True)
class Fuse:
    """`longest` is the most elementwise ops in one node; with 1 nothing is fused, and with `anchors=False` nothing
    becomes a head or tail. `buffers` is how many arrays a kernel may bind."""

    longest: int = 64
    anchors: bool = True
    buffers: int = 64
    name: str = "fuse"

    def run(self, graph: Graph) -> Graph:
        groups = Groups(graph, self.longest, self.buffers)
        nodes: dict[str, Node] = {}
        notes: list[str] = []
        if self.anchors and self.longest > 1:
            _attach(graph, groups)
        for node in graph.nodes:
            fused = _fused_node(graph, groups, node)
            if fused is not None:
                nodes[fused.name] = fused
                if (count := groups.size(node.name)) > 1:
                    notes.append(f"fuse: {fused.name}: {count} ops in one")
        result = _dense_operands(operands_through_views(graph.with_nodes(nodes.values())))
        return replace(result, notes=(*result.notes, *notes))


class Groups:
    """Which ops become one node. `members` has the elementwise ops of each group under the name of its root, the op
    whose value is stored; `tails` and `heads` say which group a reduction or product takes, by its name; `anchor_of`
    is the reduction or product whose tail a group is, and `taken` are the groups that are a head or a tail."""

    def __init__(self, graph: Graph, longest: int, buffers: int) -> None:
        self.graph = graph
        self.most_inputs = min(_MOST_INPUTS, buffers - 1)
        self.most_tail_inputs = min(_MOST_TAIL_INPUTS, buffers - 3)  # beside both factors and the result
        self.members: dict[str, set[str]] = {}
        self.tails: dict[str, str] = {}
        self.heads: dict[str, str] = {}
        self.anchor_of: dict[str, str] = {}
        self.taken: set[str] = set()
        inside: set[str] = set()
        for root in reversed(graph.nodes):
            if root.name in inside or not self._is_fusable(root):
                continue
            group = {root.name}
            while len(group) < longest and (match := self._next(root, group)):
                group.add(match)
            self.members[root.name] = group
            inside |= group
        self.root_of = {name: root for root, group in self.members.items() for name in group}

    def _next(self, root: Node, group: set[str]) -> str | None:
        """A value that only the group reads, and that the group can compute instead."""
        for name in reads(self.graph, group):
            node = self.graph[name]
            if (
                self._is_fusable(node)
                and node.shape == root.shape
                and name not in self.graph.results
                and set(self.graph.users[name]) <= group
                and self.fits(root, group | {name})
            ):
                return name
        return None

    def _is_fusable(self, node: Node) -> bool:
        sources = self.graph.sources(node)
        if get(node.op).kind != "elementwise" or not fusable(node, [s.type for s in sources]):
            return False
        shapes = [source.shape for source in sources if uniform(source) is None]
        # A number has no shape: where a constant stretches what it meets, it is read as the array that it is.
        return bool(shapes) and np.broadcast_shapes(*shapes) == node.shape and self.fits(node, {node.name})

    def fits(self, root: Node, group: set[str]) -> bool:
        """Whether one kernel can compute a group: one type of numbers, and no more arrays and axes than it has."""
        graph = self.graph
        kinds = {graph[name].dtype.name for name in (*group, *reads(graph, group))} - {"bool"}
        names = _arrays(graph, reads(graph, group))
        views = [view or dense(graph[source].shape) for source, view in (_operand(graph, name) for name in names)]
        sizes, _ = collapse(root.shape, [stretched(view, root.shape).strides for view in views])
        return len(kinds) <= 1 and 0 < len(names) <= self.most_inputs and len(sizes) <= _MOST_AXES

    def size(self, name: str) -> int:
        """Elementwise ops that are computed with a node."""
        anchor = self.anchor_of.get(name, name)
        parts = [self.tails.get(anchor), self.heads.get(anchor)]
        taken = sum(len(self.members[part]) for part in parts if part)
        return taken + 1 if taken else len(self.members.get(name, ()))


def reads(graph: Graph, group: Iterable[str]) -> list[str]:
    """What a group reads from outside, each once, in the order in which its ops name it."""
    members = sorted(group, key=graph.order.__getitem__)
    inside = set(members)
    return list(dict.fromkeys(name for member in members for name in graph[member].inputs if name not in inside))


def _arrays(graph: Graph, names: Iterable[str]) -> list[str]:
    """Values that are no single numbers."""
    return [name for name in names if uniform(graph[name]) is None]


def _operand(graph: Graph, name: str) -> tuple[str, View | None]:
    """The value in memory that a name stands for, and the view through which it is read."""
    node = graph[name]
    return (node.inputs[0], node_view(node)) if node.op == "view" else (name, None)


def _attach(graph: Graph, groups: Groups) -> None:
    """Gives reductions and products the groups before and behind them that nothing else needs."""
    for node in graph.nodes:
        kind = get(node.op).kind
        if kind not in ("rows", "product") or node.dtype.name not in _FLOATS:
            continue
        tail = _tail(graph, groups, node)
        if tail is not None and tail not in groups.taken:
            groups.tails[node.name] = tail
            groups.anchor_of[tail] = node.name
            groups.taken.add(tail)
        head = groups.root_of.get(node.inputs[0]) if kind == "rows" else None
        if head is not None and head not in groups.taken and _is_head(graph, groups, node, head):
            groups.heads[node.name] = head
            groups.taken.add(head)


def _tail(graph: Graph, groups: Groups, node: Node) -> str | None:
    """The group that alone reads a node's value, if the node's kernel can compute it."""
    roots = {groups.root_of.get(user) for user in graph.users[node.name]}
    root = next(iter(roots)) if len(roots) == 1 else None
    if root is None or node.name in graph.results or graph[root].shape != node.shape:
        return None
    names = [name for name in _arrays(graph, reads(graph, groups.members[root])) if name != node.name]
    most = groups.most_tail_inputs if get(node.op).kind == "product" else groups.most_inputs - 1
    same = all(graph[name].dtype == node.dtype for name in (root, *names))
    return root if same and len(names) <= most and _reads_shape(graph, node, names) else None


def _reads_shape(graph: Graph, node: Node, names: Iterable[str]) -> bool:
    """Whether the tail of a product that is written in another shape can read what it reads."""
    if node.get("shape") is None:
        return True
    types = [source.type for source in graph.sources(node)]
    windows = node.op == WINDOW_MATMUL.name
    matrices = matrix_shape(types[0].shape, types[1].shape) if windows else product_type(types).shape
    operands = (_operand(graph, name) for name in names)
    views = [view or dense(graph[source].shape) for source, view in operands]
    return operands_of_product(node.shape, matrices, views) is not None


def _is_head(graph: Graph, groups: Groups, node: Node, root: str) -> bool:
    names = _arrays(graph, reads(graph, groups.members[root]))
    tail = groups.tails.get(node.name)
    more = [n for n in _arrays(graph, reads(graph, groups.members[tail])) if n != node.name] if tail else []
    return (
        node.inputs == (root,)
        and graph.users[root] == (node.name,)
        and root not in graph.results
        and all(graph[name].dtype == node.dtype for name in names)
        and len({*names, *more}) <= groups.most_inputs
        # What the tail of a reduction reads has one value for each row.
        and not (node.op in REDUCTIONS and {*names} & {*more})
    )


def _fused_node(graph: Graph, groups: Groups, node: Node) -> Node | None:
    """What stands at a node's place; None where it is a part of another."""
    anchor = groups.anchor_of.get(node.name)
    if anchor is not None:
        return _anchor_node(graph, groups, graph[anchor], node.name)
    if node.name in groups.taken or node.name in groups.tails:
        return None
    if node.name in groups.members:
        return _map_node(graph, node, groups.members[node.name])
    if node.name in groups.root_of:
        return None
    if get(node.op).kind in ("rows", "product") and node.dtype.name in _FLOATS:
        return _anchor_node(graph, groups, node, node.name)
    return node


def _lines(graph: Graph, group: Iterable[str], words: dict[str, str]) -> list[BodyLine]:
    """A group as lines; `words` says what they call the values from outside."""
    known, lines = dict(words), list[BodyLine]()
    for name in sorted(group, key=graph.order.__getitem__):
        node = graph[name]
        for source in graph.sources(node):
            number = uniform(source)
            if number is not None:
                known[source.name] = number_operand(number, source.dtype.name)
        lines.append(line_of(node, [known[source] for source in node.inputs]))
        known[name] = f"v{len(lines) - 1}"
    return lines


def _map_node(graph: Graph, root: Node, group: set[str]) -> Node:
    names = _arrays(graph, reads(graph, group))
    operands = [_operand(graph, name) for name in names]
    lines = _lines(graph, group, {name: f"in{k}" for k, name in enumerate(names)})
    sources = [graph[source] for source, _ in operands]
    attributes = map_attributes(lines, [view for _, view in operands])
    return typed_node(MAP, root.name, tuple(s.name for s in sources), [s.type for s in sources], attributes)


def _anchor_node(graph: Graph, groups: Groups, anchor: Node, name: str) -> Node:
    """A reduction or product with its head and its tail."""
    head, tail = (parts.get(anchor.name) for parts in (groups.heads, groups.tails))
    before = _arrays(graph, reads(graph, groups.members[head])) if head else list(anchor.inputs)
    behind = _arrays(graph, reads(graph, groups.members[tail])) if tail else []
    product = _PRODUCTS.get(anchor.op)
    names = list(before) if product else list(dict.fromkeys(before))
    names += [n for n in behind if n != anchor.name and (product or n not in names)]
    # A product's own operands are no arrays of its tail: what the tail reads of them is an operand once more.
    words = {n: f"in{k}" for k, n in enumerate(names)}
    first = _lines(graph, groups.members[head], words) if head else []
    last = _lines(graph, groups.members[tail], {**words, anchor.name: "value"}) if tail else []
    operands = [_operand(graph, n) for n in names]
    sources = [graph[source] for source, _ in operands]
    views = [view_attribute(view) for _, view in operands]
    attributes: dict[str, object] = {"tail": texts(last), "views": views, **dict(anchor.attributes)}
    if product is None:
        attributes |= {"kind": anchor.op, "head": texts(first)}
    return typed_node(product or ROWS, name, tuple(s.name for s in sources), [s.type for s in sources], attributes)


def _dense_operands(graph: Graph) -> Graph:
    """Kernels that cannot read through a view read a copy of it; so do products of params, which are kept that way."""
    nodes: dict[str, Node] = {}
    copies: dict[str, Node] = {}
    for node in graph.nodes:
        launched = has_kernel(graph, node)
        inputs: list[str] = []
        for source in graph.sources(node):
            if launched and source.op == "view" and not is_alias(graph, source):
                if source.name not in copies:
                    name = free_name(f"{source.name}.dense", {*graph.by_name, *nodes})
                    copies[source.name] = _copy_of(name, graph[source.inputs[0]], node_view(source))
                    nodes[name] = copies[source.name]
                inputs.append(copies[source.name].name)
            else:
                inputs.append(source.name)
        turned = replace(node, inputs=tuple(inputs))
        nodes[node.name] = _with_dense_params(graph, turned, nodes) if node.op == "product" else turned
    return graph.with_nodes(nodes.values())


def _with_dense_params(graph: Graph, node: Node, nodes: dict[str, Node]) -> Node:
    """A product that reads copies of the params which it would read through views."""
    inputs, views = list(node.inputs), list(views_of(node))
    for k in (0, 1):
        view = views[k]
        if graph[inputs[k]].op == "param" and view is not None and not is_dense(view):
            name = free_name(f"{inputs[k]}.{node.name}.in{k}.dense", {*graph.by_name, *nodes})
            copy = _copy_of(name, graph[inputs[k]], view)
            nodes[copy.name] = copy
            inputs[k], views[k] = copy.name, None
    attributes: dict[str, object] = {**dict(node.attributes), "views": [view_attribute(view) for view in views]}
    types = [nodes[n].type if n in nodes else graph[n].type for n in inputs]
    return typed_node(PRODUCT, node.name, tuple(inputs), types, attributes)


def _copy_of(name: str, origin: Node, view: View) -> Node:
    """A map that copies the elements of a view."""
    attributes = map_attributes([BodyLine("copy", ("in0",))], [view])
    return typed_node(MAP, name, (origin.name,), [origin.type], attributes)


def has_kernel(graph: Graph, node: Node) -> bool:
    """Whether a kernel computes a node, and not the host."""
    launch = get(node.op).launch
    return launch is not None and launch(node, [source.type for source in graph.sources(node)]) is not None
