"""The uncompiled run: each node by the definition of its op, in NumPy. Compiled pipelines give these bits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dashi.errors import GraphError, suggestion
from dashi.graph._values import canonical
from dashi.graph.ir import Graph, Node
from dashi.graph.ops._leaves import constant_values
from dashi.graph.registry import get
from dashi.types import HostArray


def evaluate(
    graph: Graph, inputs: Mapping[str, HostArray], params: Mapping[str, HostArray] | None = None
) -> dict[str, HostArray]:
    """The results of a graph, by name, from values of its inputs; and of its params, where they are not the graph's."""
    fed = require_inputs(graph, inputs)
    stored = {**graph.params, **(params or {})}
    values: dict[str, HostArray] = {}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node.op == "input":
                values[node.name] = canonical(fed[node.name])
            elif node.op == "param":
                values[node.name] = canonical(require_values(node, stored.get(node.name)))
            elif node.op == "constant":
                values[node.name] = constant_values(node)
            else:
                read = [values[name] for name in node.inputs]
                values[node.name] = np.ascontiguousarray(get(node.op).evaluate(node, *read)).reshape(node.shape)
    return {title: values[name] for title, name in graph.outputs}


def require_inputs(graph: Graph, inputs: Mapping[str, HostArray]) -> dict[str, HostArray]:
    """The values of all inputs, with their shapes and types."""
    require_input_names(graph, inputs)
    return {node.name: require_values(node, inputs.get(node.name)) for node in graph.of("input")}


def require_input_names(graph: Graph, names: Iterable[str]) -> None:
    """Raises where the graph has no input of one of the names."""
    known = [node.name for node in graph.of("input")]
    for name in names:
        if name not in known:
            raise GraphError(
                f"the graph {graph.name!r} has no input {name!r}.",
                f"{suggestion(name, known)}it takes {', '.join(known) or 'none'}.",
            )


def require_values(node: Node, values: object) -> HostArray:
    """Values of the type of an input or param."""
    if values is None:
        raise GraphError(f"the {node.op} {node.name!r} has no values.", f"pass an array of {node.type} for it.")
    array = np.asarray(values)
    if array.shape != node.shape or array.dtype != node.dtype.numpy:
        raise GraphError(
            f"the {node.op} {node.name!r} is {node.type}, not {array.dtype} of shape {array.shape}.",
            f"pass an array of shape {node.shape} and type np.{node.dtype}.",
        )
    return array
