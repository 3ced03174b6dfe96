"""Names that passes make up stand beside whatever names the user chose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashi import graph as dg
from dashi.graph.ir import free_name
from dashi.graph.pass_order import PASSES
from dashi.runtime.device import Device
from dashi.types import HostArray

RNG = np.random.default_rng(3)


def graph_with(names: Sequence[str]) -> dg.Graph:
    """A graph of which every pass makes new nodes; with inputs of these names, whose sum is a result."""
    b = dg.Builder("names")
    x, w = b.input("x", (2, 4)), b.param("w", RNG.standard_normal((3, 4)).astype(np.float32))
    rows = b.constant(np.array([1, 0], np.uint32))
    results = {
        "same": x,
        "product": dg.gelu(x @ w.transpose()),
        "moved": dg.gather(x.transpose().reshape(4, 2), rows),
        "picked": dg.gather(x, rows),
        "joined": dg.concat([x, x], 1),
        "parts": dg.softmax((x @ b.input("keys", (4, 2))) * 0.5) @ x,
        "attention": dg.attention(x, x.reshape(4, 2).transpose(), x, scale=1.0),
    }
    total = b.constant(1.0)
    for name in names:
        total = total + b.input(name, (2,))
    return b.graph(**results, total=total)


def made_up(graph: dg.Graph) -> list[str]:
    """The names that passes add."""
    lowered = (dg.run_passes(graph, after=step.name) for step in PASSES)
    return sorted({node.name for g in lowered for node in g.nodes} - graph.by_name.keys())


def same_results(graph: dg.Graph, device: Device) -> bool:
    inputs: dict[str, HostArray] = {
        node.name: RNG.standard_normal(node.shape).astype(np.float32) for node in graph.of("input")
    }
    expected = dg.evaluate(dg.run_passes(graph, after="rewrite"), inputs)
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch(inputs)
    return {n: v.tobytes() for n, v in results.items()} == {n: v.tobytes() for n, v in expected.items()}


def test_a_result_may_be_called_as_an_input_is(device: Device) -> None:
    b = dg.Builder("collision")
    x = b.input("y.result", (2,))
    assert same_results(b.graph(y=x), device)


def test_names_of_passes_give_way_to_those_of_the_user(device: Device) -> None:
    names = made_up(graph_with(()))
    for ending in (".result", ".copy", ".canonical", ".dense", ".keys"):
        assert any(name.endswith(ending) for name in names), ending
    assert any(".erf_" in name for name in names)
    again = graph_with(names)
    assert not set(made_up(again)) & {node.name for node in again.nodes}
    assert same_results(again, device)


def test_a_free_name_is_the_first_that_nothing_has() -> None:
    assert free_name("y", ()) == "y"
    assert free_name("y", ("y", "y.2")) == "y.3"
