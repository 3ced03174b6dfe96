"""What tests of ops share: a graph compiled for a device, and held to its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from dashi import graph as dg
from dashi.runtime.device import Device
from dashi.types import HostArray

Run = Callable[[dg.Graph, Mapping[str, HostArray]], dict[str, HostArray]]


@pytest.fixture
def run_portably(device: Device) -> Run:
    """Runs a graph on the device, fused and not, and asserts that no step is the host's and that every bit is that of
    the definitions, also after each pass; gives the results."""

    def run(graph: dg.Graph, inputs: Mapping[str, HostArray]) -> dict[str, HostArray]:
        expected = dg.evaluate(graph, inputs)
        bits = {name: values.tobytes() for name, values in expected.items()}
        assert dg.parse_graph(str(graph)) == graph
        for step in dg.PASSES:
            lowered = dg.run_passes(graph, after=step.name)
            assert dg.parse_graph(str(lowered)) == lowered, step.name
            values_there = dg.evaluate(lowered, inputs)
            assert {name: values.tobytes() for name, values in values_there.items()} == bits, step.name
        for passes in (dg.PASSES, dg.UNFUSED):
            with dg.compile(graph, device, passes=passes) as pipeline:
                assert pipeline.report().host_steps == {}
                pipeline.check()
                results = pipeline.dispatch(inputs)
                assert {name: values.tobytes() for name, values in results.items()} == bits
        return expected

    return run
