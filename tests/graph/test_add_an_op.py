"""The op that the page adds, added as the page says: it is checked, printed, fused and run like the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.graph import registry
from dashi.graph._arguments import checked
from dashi.graph.ops import activations
from dashi.graph.ops._compositions import composition
from dashi.types import HostArray

PAGE = Path(__file__).parents[2] / "docs" / "graph.md"
Run = Callable[[dg.Graph, Mapping[str, HostArray]], dict[str, HostArray]]


@pytest.fixture
def soft_shrink(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dg.Tensor]:
    """The function of the page's op, which is known as long as the test runs."""
    (text,) = re.findall(
        r"^```python file=src/dashi/graph/ops/activations.py\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    names: dict[str, Any] = {
        "Final": Final, "GraphError": GraphError, "Node": dg.Node, "Sequence": Sequence, "Tensor": dg.Tensor,
        "TensorType": dg.TensorType, "checked": checked, "composition": composition, "greater": dg.greater,
        "less": dg.less, "where": dg.where, "__name__": activations.__name__,
    }  # fmt: skip
    exec(compile("from __future__ import annotations\n" + text, str(PAGE), "exec"), names)
    known = {**registry.all_ops(), "soft_shrink": names["SOFT_SHRINK"]}
    monkeypatch.setattr(registry, "all_ops", lambda: known)
    return names["soft_shrink"]


def test_the_op_of_the_page_runs_everywhere(run_portably: Run, soft_shrink: Callable[..., dg.Tensor]) -> None:
    b = dg.Builder("shrunk")
    graph = b.graph(y=dg.tanh(soft_shrink(b.input("x", (3, 70)) * 2.0, 0.25)))
    x = np.random.default_rng(0).standard_normal((3, 70)).astype(np.float32)
    x[0, :4] = np.nan, np.inf, -np.inf, 0
    y = run_portably(graph, {"x": x})["y"]
    expected = np.tanh(np.sign(x) * np.maximum(np.abs(2 * x) - np.float32(0.25), 0))
    assert np.allclose(y[1:], expected[1:], rtol=1e-5, atol=1e-6)  # tanh's own accuracy
    lines = [str(graph) for graph in (graph, b.graph(y=soft_shrink(b.input("z", (3,)), 0.5)))]
    assert "soft_shrink %mul_0 {limit=0.25} : f32[3,70]" in lines[0]
    assert "{limit=0.5}" in lines[1]


def test_the_op_of_the_page_refuses_what_does_not_fit(soft_shrink: Callable[..., dg.Tensor]) -> None:
    x = dg.Builder("wrong").input("x", (3,), "i32")
    with pytest.raises(GraphError, match=r"node 'soft_shrink_0' \(soft_shrink of i32\[3\]\): .* is not shrunk by 0.5"):
        soft_shrink(x)
    with pytest.raises(GraphError, match="soft_shrink: `limit` is 'much', and not a number"):
        soft_shrink(x, "much")
