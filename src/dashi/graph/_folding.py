"""Values that depend on constants alone, computed once."""

from __future__ import annotations

from typing import Final

import numpy as np

from dashi.graph.evaluation import evaluate_node
from dashi.graph.ir import Graph, Node
from dashi.graph.ops._leaves import constant_node, constant_values

_MOST_FOLDED: Final = 1 << 16
"""Elements: larger results of constants are computed anew, rather than made a part of the graph."""


def fold_constants(graph: Graph) -> tuple[Graph, list[str]]:
    """The graph with constants in the place of what depends on constants alone, and the names of those."""
    nodes: dict[str, Node] = {}
    names: list[str] = []
    for node in graph.nodes:
        sources = [nodes[name] for name in node.inputs]
        if sources and all(s.op == "constant" for s in sources) and node.type.size <= _MOST_FOLDED:
            with np.errstate(all="ignore"):
                read, dtypes = [constant_values(source) for source in sources], [s.dtype for s in sources]
                values = np.ascontiguousarray(evaluate_node(node, *read, dtypes=dtypes)).reshape(node.shape)
            nodes[node.name] = constant_node(node.name, values, node.dtype)
            names.append(node.name)
        else:
            nodes[node.name] = node
    return graph.with_nodes(nodes.values()), names
