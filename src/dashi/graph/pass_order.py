"""The passes of the compiler, in order. Each is a frozen dataclass whose fields are its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, cast

from dashi.errors import GraphError
from dashi.graph.ir import Graph
from dashi.graph.passes.assign_layouts import AssignLayouts
from dashi.graph.passes.fuse import Fuse
from dashi.graph.passes.legalize import Legalize
from dashi.graph.passes.rewrite import Rewrite
from dashi.graph.verification import verify


class Pass(Protocol):
    """A function from graphs to graphs."""

    @property
    def name(self) -> str: ...

    def run(self, graph: Graph) -> Graph:
        """The graph as the next pass takes it."""
        ...


PASSES: Final[tuple[Pass, ...]] = (Rewrite(), Legalize(), Fuse(), AssignLayouts())
"""What becomes of a graph before memory is planned. Only `rewrite` may change bits."""
UNFUSED: Final[tuple[Pass, ...]] = (Rewrite(), Legalize(), Fuse(longest=1), AssignLayouts())
"""Passes that leave every elementwise op a kernel of its own."""


def _with_same_results(name: str, before: Graph, after: Graph) -> Graph:
    """The graph after a pass, whose results have the types that they had."""
    for (title, former), (_, result) in zip(before.outputs, after.outputs, strict=True):
        if after[result].type != before[former].type:
            raise GraphError(
                f"the pass {name!r} makes the result {title!r} {after[result].type}, not {before[former].type}.",
                "infer types again in the pass.",
            )
    return after


def require_passes(passes: object) -> None:
    """A GraphError where something is no sequence of passes."""
    listed = cast("Sequence[object]", passes) if isinstance(passes, Sequence) else (passes,)
    if not all(hasattr(step, "run") and hasattr(step, "name") for step in listed):
        raise GraphError(f"{passes!r:.80} are no passes.", "pass some of dashi.graph.PASSES, or objects like them.")


def run_passes(graph: Graph, passes: tuple[Pass, ...] = PASSES, *, after: str | None = None) -> Graph:
    """The graph after all passes, or after the one of that name; verified before and after each."""
    verify(graph)
    require_passes(passes)
    for step in passes:
        graph = _with_same_results(step.name, graph, verify(step.run(graph)))
        if step.name == after:
            break
    return graph
