"""A graph, run some times on a device: its results, their digests, and what a run took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.graph.compiler import Class, compile
from dashi.graph.ir import Graph
from dashi.io._array_digest import array_digest
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.report import PipelineReport
    from dashi.runtime.device import Device

_MOST_BYTES: Final = 1 << 33


@dataclass(frozen=True)
class GraphRun:
    """Results by name, milliseconds of each run and of the compile, and the pipeline's report."""

    outputs: dict[str, HostArray]
    ms: tuple[float, ...]
    compile_ms: float
    report: PipelineReport

    @property
    def hashes(self) -> dict[str, str]:
        """A digest of each result: type, shape and bytes."""
        return {title: array_digest(values) for title, values in self.outputs.items()}

    def as_dict(self) -> dict[str, Any]:
        """What `dashi graph run --json` prints."""
        described = {
            title: {"shape": list(values.shape), "dtype": str(values.dtype), "hash": self.hashes[title]}
            for title, values in self.outputs.items()
        }
        return {
            "outputs": described,
            "ms": float(np.median(self.ms)),
            "ms_least": min(self.ms),
            "compile_ms": self.compile_ms,
            "report": self.report.as_dict(),
        }


def run_graph(
    graph: Graph,
    device: Device,
    inputs: Mapping[str, HostArray] | None = None,
    *,
    params: Mapping[str, HostArray] | None = None,
    class_: Class = "portable",
    repeats: int = 1,
    seed: int = 0,
) -> GraphRun:
    """Compiles a graph and runs it. Inputs and params that have no values get random ones from the seed."""
    own = {**random_values(graph, "param", seed), **graph.params, **(params or {})}
    values = {**random_values(graph, "input", seed), **(inputs or {})}
    start = time.perf_counter()
    with compile(graph, device, params=own, class_=class_) as pipeline:
        compiled = time.perf_counter() - start
        took: list[float] = []
        results: dict[str, HostArray] = {}
        for _ in range(max(1, repeats)):
            begin = time.perf_counter()
            results = pipeline.dispatch(values)
            took.append(1e3 * (time.perf_counter() - begin))
        return GraphRun(results, tuple(took), 1e3 * compiled, pipeline.report())


def random_values(graph: Graph, op: str, seed: int = 0) -> dict[str, HostArray]:
    """Values of all inputs (`op="input"`) or params of a graph: normal floats, whole numbers of 0 and 1."""
    rng = np.random.default_rng(seed)
    nodes = graph.of(op)
    if (total := sum(node.type.nbytes for node in nodes)) > _MOST_BYTES:
        raise InputError(f"the graph's {op}s have {total} bytes.", f"use a graph with at most {_MOST_BYTES}.")
    values: dict[str, HostArray] = {}
    for node in nodes:
        if node.dtype.is_float:
            values[node.name] = rng.standard_normal(node.shape, np.float32).astype(node.dtype.numpy)
        else:
            values[node.name] = rng.integers(0, 2, node.shape).astype(node.dtype.numpy)
    return values
