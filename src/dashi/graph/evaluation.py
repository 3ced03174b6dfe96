"""The uncompiled run: each node by the definition of its op, in NumPy. Compiled pipelines give these bits, of the graph
after the pass `rewrite`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dashi.errors import GraphError, suggestion
from dashi.graph._values import as_stored, canonical_input
from dashi.graph.builder import Builder
from dashi.graph.ir import Graph, Node
from dashi.graph.op import by_expansion
from dashi.graph.ops._leaves import constant_values
from dashi.graph.registry import get
from dashi.graph.verification import require_graph
from dashi.runtime._host_values import host_array
from dashi.types import DType, HostArray


def evaluate(
    graph: Graph, inputs: Mapping[str, HostArray], params: Mapping[str, HostArray] | None = None
) -> dict[str, HostArray]:
    """The results of a graph, by name, from values of its inputs; and of its params, where they are not the graph's."""
    require_graph(graph)
    fed = require_inputs(graph, inputs)
    stored = {**graph.params, **(params or {})}
    values: dict[str, HostArray] = {}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node.op == "input":
                values[node.name] = canonical_input(fed[node.name], node.dtype)
            elif node.op == "param":
                values[node.name] = canonical_input(require_values(node, stored.get(node.name)), node.dtype)
            elif node.op == "constant":
                values[node.name] = constant_values(node)
            else:
                read = [values[name] for name in node.inputs]
                result = evaluate_node(node, *read, dtypes=[source.dtype for source in graph.sources(node)])
                values[node.name] = np.ascontiguousarray(result).reshape(node.shape)
    return {title: np.array(values[name]) for title, name in graph.outputs}  # none is an array of the caller


def evaluate_node(node: Node, *values: HostArray, dtypes: Sequence[DType] | None = None) -> HostArray:
    """The value of a node by the definition of its op; of what it is written in, where that is its definition. `dtypes`
    are the types of its inputs, which arrays of NumPy cannot say where they are bf16."""
    op = get(node.op)
    if op.evaluate is not by_expansion or op.expand is None:
        return as_stored(op.evaluate(node, *values), node.dtype)
    builder = Builder(op.name)
    kinds = dtypes or [value.dtype for value in values]
    pairs = enumerate(zip(values, kinds, strict=True))
    inputs = [builder.input(f"in{k}", value.shape, kind) for k, (value, kind) in pairs]
    written = op.expand(node, *inputs)
    if written is None:
        raise GraphError(f"node {node.name!r}: {node.op} is written in nothing.", "let its `expand` give a value.")
    graph = builder.graph(result=written)
    return evaluate(graph, {f"in{k}": value for k, value in enumerate(values)})["result"]


def require_inputs(graph: Graph, inputs: Mapping[str, HostArray]) -> dict[str, HostArray]:
    """The values of all inputs, with their shapes and types."""
    if not isinstance(inputs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError(f"inputs are {type(inputs).__name__}, not values by name.", "pass a dict: {name: array}.")
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
    if isinstance(values, (bytes, bytearray)) and node.dtype.name == "u8":
        values = np.frombuffer(values, np.uint8)
        values = values.reshape(node.shape) if values.size == node.type.size else values
    array: HostArray = values if type(values) is np.ndarray else host_array(values)
    if array.shape != node.shape or array.dtype != node.dtype.numpy:
        raise GraphError(
            f"the {node.op} {node.name!r} is {node.type}, not {array.dtype} of shape {array.shape}.",
            f"pass an array of shape {node.shape} and type np.{node.dtype}.",
        )
    return array
