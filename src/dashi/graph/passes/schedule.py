"""A flat list of steps: a kernel and its operands, copies, or the definition of an op, run by the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dashi.errors import GraphError
from dashi.graph.ir import Graph, Node
from dashi.graph.op import Copies, Launch
from dashi.graph.ops._pieces import IN_PLACE
from dashi.graph.ops.movement import is_alias, node_view
from dashi.graph.registry import get
from dashi.kernels.abi import Kernel, View, variant_features

STORED = ("param", "constant", "packed", "tiles", "widened")
"""Values that lie in memory from the beginning."""


@dataclass(frozen=True)
class PlannedStep:
    """One step: the node that it computes, from which values, each dense or (for the host) through a view."""

    node: Node
    place: Literal["kernel", "copies", "host"]
    reads: tuple[str, ...]
    views: tuple[View | None, ...]
    launch: Launch | None = None
    copies: Copies | None = None
    reason: str = ""
    """Why the host computes it."""
    level: int = 0
    """How many steps, this one included, must run one after another before its value is there."""

    def __str__(self) -> str:
        what = self.launch.kernel.name if self.launch else self.place
        return f"{self.node.name}: {what}({', '.join(self.reads)}) -> {self.node.type}"


@dataclass(frozen=True)
class Schedule:
    """`portable` refuses kernels that are not."""

    portable: bool = True
    name: str = "schedule"

    def run(self, graph: Graph, features: frozenset[str] | None = None) -> tuple[PlannedStep, ...]:
        """The steps by level, so that those which need not wait for one another are neighbours; for a device of these
        features, or for one that has all, where none are named."""
        levels: dict[str, int] = {}
        steps: list[PlannedStep] = []
        for node in graph.nodes:
            above = max((levels[name] for name in node.inputs), default=0)
            computed = node.op not in (*STORED, "input", *IN_PLACE)
            levels[node.name] = above + computed
            if computed:
                steps.append(replace(self._step(graph, node, features), level=above + 1))
        return tuple(sorted(steps, key=lambda step: step.level))

    def _step(self, graph: Graph, node: Node, features: frozenset[str] | None) -> PlannedStep:
        sources = [_source(graph, name) for name in node.inputs]
        reads, views = tuple(name for name, _ in sources), tuple(view for _, view in sources)
        launch, reason = self._launch(graph, node, views, features)
        if isinstance(launch, Copies):
            return PlannedStep(node, "copies", reads, views, copies=launch)
        if launch is not None:
            return PlannedStep(node, "kernel", reads, views, launch)
        return PlannedStep(node, "host", reads, views, reason=reason)

    def _launch(
        self, graph: Graph, node: Node, views: Sequence[View | None], features: frozenset[str] | None
    ) -> tuple[Launch | Copies | None, str]:
        make = get(node.op).launch
        launch = None if make is None else make(node, [source.type for source in graph.sources(node)])
        if launch is None or any(view is not None for view in views):
            return None, f"no kernel computes {node.op} of these shapes and types"
        if isinstance(launch, Copies):
            return launch, ""
        kernel = launch.kernel
        if self.portable and not kernel.portable:
            raise GraphError(
                f"node {node.name!r}: kernel {kernel.name!r} is not portable, the graph is.",
                'compile with class_="device", or use another op.',
            )
        variant = _variant(kernel, [source.dtype.name for source in graph.sources(node)])
        missing = variant_features(kernel, variant) - features if features is not None else frozenset[str]()
        if variant not in kernel.dtypes or missing:
            return None, f"{kernel.name} is not there for {variant}" + (
                f" without {sorted(missing)}" if missing else ""
            )
        return launch, ""


def _variant(kernel: Kernel, dtypes: Sequence[str]) -> str:
    """The variant of a kernel that operands of these types choose; its only one, where they choose none."""
    chosen = [dtype for operand, dtype in zip(kernel.inputs, dtypes, strict=True) if operand.dtype == "T"]
    return chosen[0] if chosen else kernel.dtypes[0]


def _source(graph: Graph, name: str) -> tuple[str, View | None]:
    """The value in memory that a node reads, and how, if not all of it in order."""
    node = graph[name]
    if node.op != "view" or is_alias(graph, node):
        return name, None
    return node.inputs[0], node_view(node)
