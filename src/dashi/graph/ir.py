"""Graphs of tensor ops: typed, frozen nodes in an order in which each stands behind its inputs.

A `Node` has an op, the names of its inputs, attributes, and the type (shape and element type) of its one result. Leaves
are `input` (new values with every run), `param` (values that are set, and may be set again) and `constant` (values that
are part of the graph). `Builder` makes graphs; passes make new ones of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Final, cast

from dashi.errors import GraphError
from dashi.runtime._shapes import sizes_of
from dashi.types import DType, HostArray, Shape
from dashi.types import dtype as dtype_of

MOST_ELEMENTS: Final = (1 << 32) - 1
"""Kernels count elements in 32 bits."""
MOST_AXES: Final = 64
_MOST_DEPTH: Final = 16
"""Lists in lists, of attributes."""
_MOST_BITS: Final = 64
"""Binary digits of whole numbers in attributes."""

Attribute = bool | int | float | str | None | tuple["Attribute", ...]
"""What a node may say about itself, beside its inputs."""


@dataclass(frozen=True)
class TensorType:
    """The shape and the element type of a value."""

    shape: Shape
    dtype: DType

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.size

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


def tensor_type(shape: Iterable[int], dtype: object) -> TensorType:
    """A type that a value can have; refused before any memory is taken where it is too large."""
    sizes = sizes_of(shape)
    element = dtype if isinstance(dtype, DType) else dtype_of(dtype)  # pyright: ignore[reportArgumentType]
    if len(sizes) > MOST_AXES:
        raise GraphError(f"a shape of {len(sizes)} axes is too long.", f"use at most {MOST_AXES} axes.")
    if any(length < 0 for length in sizes):
        raise GraphError(f"a shape cannot be negative: {sizes}.", "give lengths of 0 or more.")
    if math.prod(sizes) > MOST_ELEMENTS:
        raise GraphError(
            f"a value of shape {sizes} has {math.prod(sizes)} elements.",
            f"use at most {MOST_ELEMENTS}: cut it into parts.",
        )
    return TensorType(sizes, element)


@dataclass(frozen=True)
class Node:
    """One value of a graph: what computes it, and from which others."""

    name: str
    op: str
    inputs: tuple[str, ...]
    type: TensorType
    attributes: tuple[tuple[str, Attribute], ...] = ()
    """In the order of their names."""

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    def get(self, attribute: str) -> Attribute:
        """The value of an attribute; None where it has none of that name."""
        return dict(self.attributes).get(attribute)

    def integers(self, attribute: str) -> tuple[int, ...]:
        """The value of an attribute that is a list of integers."""
        value = self.get(attribute)
        if not isinstance(value, tuple) or any(type(number) is not int for number in value):
            raise GraphError(f"node {self.name!r}: {attribute}={value!r} is no list of integers.", "pass integers.")
        return tuple(number for number in value if isinstance(number, int))

    def integer(self, attribute: str) -> int:
        """The value of an attribute that is an integer."""
        value = self.get(attribute)
        if type(value) is not int:
            raise GraphError(f"node {self.name!r}: {attribute}={value!r} is no integer.", "pass an integer.")
        return value

    def number(self, attribute: str) -> float:
        """The value of an attribute that is a number."""
        value = self.get(attribute)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise GraphError(f"node {self.name!r}: {attribute}={value!r} is no number.", "pass a number.")
        return float(value)


def attributes_of(values: Mapping[str, object]) -> tuple[tuple[str, Attribute], ...]:
    """Attributes in the order of their names, lists made tuples."""
    return tuple(sorted((name, _attribute(name, value)) for name, value in values.items()))


def _attribute(name: str, value: object, depth: int = 0) -> Attribute:
    if depth > _MOST_DEPTH:
        raise GraphError(
            f"the attribute {name} has lists in lists, {depth} deep.", f"put at most {_MOST_DEPTH} into one another."
        )
    if isinstance(value, (list, tuple)):
        return tuple(_attribute(name, item, depth + 1) for item in cast("tuple[object, ...]", value))
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise GraphError(f"the attribute {name} has a number of {value.bit_length()} bits.", f"use up to {_MOST_BITS}.")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise GraphError(
        f"the attribute {name} has a {type(value).__name__} in it.",
        "use truth values, numbers, text, None, and lists of them.",
    )


@dataclass(frozen=True)
class Graph:
    """Nodes in order, and the names under which some of them are results. `params` are the values of parameters; they
    are no part of what the graph is: graphs that differ in them alone are equal."""

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, str], ...]
    """(name of the result, name of its node)"""
    params: Mapping[str, HostArray] = field(default_factory=dict[str, HostArray], compare=False, repr=False)
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """What passes did, by name: rewrites and fusions."""

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """Each node under its name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def order(self) -> dict[str, int]:
        """At which place each node stands."""
        return {node.name: place for place, node in enumerate(self.nodes)}

    def __getitem__(self, name: str) -> Node:
        return self.by_name[name]

    def of(self, op: str) -> tuple[Node, ...]:
        """The nodes of an op, in order."""
        return tuple(node for node in self.nodes if node.op == op)

    def sources(self, node: Node) -> tuple[Node, ...]:
        """The nodes that a node reads."""
        return tuple(self.by_name[name] for name in node.inputs)

    @cached_property
    def users(self) -> dict[str, tuple[str, ...]]:
        """For each node the names of those that read it, once for each time that they do."""
        listed: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for name in node.inputs:
                listed[name].append(node.name)
        return {name: tuple(readers) for name, readers in listed.items()}

    @property
    def results(self) -> frozenset[str]:
        """The nodes that are results."""
        return frozenset(name for _, name in self.outputs)

    def with_nodes(self, nodes: Iterable[Node], outputs: Iterable[tuple[str, str]] | None = None) -> Graph:
        """A graph of other nodes under this name, without those that no result needs; inputs and params stay."""
        listed = tuple(nodes)
        results = self.outputs if outputs is None else tuple(outputs)
        needed = {name for _, name in results}
        for node in reversed(listed):
            if node.name in needed:
                needed.update(node.inputs)
        kept = tuple(node for node in listed if node.name in needed or node.op in ("input", "param"))
        return replace(self, nodes=kept, outputs=results)

    def __str__(self) -> str:
        return print_graph(self)


def free_name(name: str, taken: Container[str]) -> str:
    """A name that a pass makes up: `name`, with a number behind it where that is taken."""
    if name not in taken:
        return name
    return next(free for number in count(2) if (free := f"{name}.{number}") not in taken)


def print_graph(graph: Graph) -> str:
    """The graph as text, one node a line."""
    outputs = " ".join(f"{title}=%{name}" for title, name in graph.outputs)
    return "\n".join([f"graph {graph.name}", *map(print_node, graph.nodes), f"return {outputs}", ""])


def print_node(node: Node) -> str:
    """One line: name, op, inputs, attributes, type."""
    inputs = "".join(f" %{name}" for name in node.inputs)
    attributes = ", ".join(f"{name}={_json(value)}" for name, value in node.attributes)
    return f"%{node.name} = {node.op}{inputs}{f' {{{attributes}}}' if attributes else ''} : {node.type}"


def _json(value: Attribute) -> str:
    return json.dumps(value, separators=(",", ":"))
