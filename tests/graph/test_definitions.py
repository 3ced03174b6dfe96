"""What portable means, written out number by number, as docs/graph.md says it: each value of a graph is that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import graph as dg
from dashi.kernels import portable
from dashi.runtime.device import Device
from dashi.types import HostArray

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(11)
RUN = 64


def added_in_order(values: Any) -> Any:
    total = np.float32(0)
    for value in values:
        total = np.float32(total + value)
    return total


def tree64(values: Any) -> Any:
    """Runs of 64 added in order, then their sums the same way."""
    values = list(values)
    while len(values) > 1:
        values = [added_in_order(values[start : start + RUN]) for start in range(0, len(values), RUN)]
    return added_in_order(values)


def product(a: Any, b: Any) -> Any:
    """Products of numbers, or of lists of them number by number."""
    return portable.mul(np.asarray(a, np.float32), np.asarray(b, np.float32))


def random(*shape: int) -> HostArray:
    """Numbers of many magnitudes, so that the order of a sum matters."""
    return (RNG.standard_normal(shape) * np.exp2(RNG.integers(-12, 12, shape))).astype(np.float32)


def run(device: Device, inputs: dict[str, HostArray], build: Any) -> HostArray:
    b = dg.Builder("definition")
    tensors = [b.input(name, array.shape, array.dtype) for name, array in inputs.items()]
    graph = b.graph(y=build(*tensors))
    with dg.compile(graph, device) as pipeline:
        assert pipeline.report().host_steps == {}
        return pipeline.dispatch(inputs)["y"]


@pytest.mark.parametrize("k", [1, 64, 65, 4097])
def test_a_product_is_tree64_over_k_alone_and_in_any_tile(device: Device, k: int) -> None:
    a, b = random(3, k), random(k, 2)
    expected = [[tree64(product(a[i], b[:, j])) for j in range(2)] for i in range(3)]
    results = [run(device, {"a": a, "b": b}, lambda a, b: a @ b)]
    # The same rows and columns among others: other tiles, other kernels.
    more = run(device, {"a": np.vstack([random(40, k), a]), "b": np.hstack([b, random(k, 30)])}, lambda a, b: a @ b)
    single = run(device, {"a": a[:1], "b": b}, lambda a, b: a @ b)
    results.append(np.ascontiguousarray(more[40:, :2]))
    assert all(result.tobytes() == np.array(expected, np.float32).tobytes() for result in results)
    assert single.tobytes() == np.array(expected[:1], np.float32).tobytes()


@pytest.mark.parametrize("n", [1, 64, 65, 4100])
def test_reductions_and_softmax_are_tree64_with_portable_roots_and_quotients(device: Device, n: int) -> None:
    x = random(2, n)
    count = np.float32(n)
    total = [tree64(row) for row in x]
    assert run(device, {"x": x}, lambda x: dg.sum_(x, 1)).tolist() == total
    means = [portable.divide(value, count) for value in total]
    assert run(device, {"x": x}, lambda x: dg.mean(x, 1)).tolist() == means
    length = [portable.sqrt(tree64(product(row, row))) for row in x]
    assert run(device, {"x": x}, lambda x: dg.norm(x, 1)).tolist() == length
    weights = [portable.exp(row - row.max()) for row in x]
    expected = [portable.divide(row, tree64(row)) for row in weights]
    assert run(device, {"x": x}, dg.softmax).tobytes() == np.array(expected, np.float32).tobytes()


def attention_by_definition(q: HostArray, k: HostArray, v: HostArray, scale: Any, counts: list[int]) -> list[Any]:
    """One query: runs of 64 positions, each with its own maximum; joined by tree64."""
    maxima: list[Any] = []
    sums: list[Any] = []
    values: list[list[Any]] = []
    for first in range(0, len(k), RUN):
        keys = [j for j in range(first, min(first + RUN, len(k))) if j in counts]
        scores = product(scale, [tree64(product(q, k[j])) for j in keys])
        peak = scores.max(initial=np.float32(-np.inf))
        weights = portable.exp(scores - peak)
        maxima.append(peak)
        sums.append(added_in_order(weights))
        values.append([added_in_order(product(weights, v[keys, d])) for d in range(v.shape[1])])
    top = max(maxima)
    factors = [np.float32(0) if m == -np.inf else portable.exp(np.float32(m - top)) for m in maxima]
    whole = tree64(product(factors, sums))
    joined = [tree64(product(factors, [part[d] for part in values])) for d in range(v.shape[1])]
    return [portable.divide(value, whole) for value in joined]


@pytest.mark.parametrize(("keys", "in_use", "window"), [(130, 130, 0), (200, 150, 70)])
def test_attention_is_by_runs_of_64_positions_joined_by_tree64(
    device: Device, keys: int, in_use: int, window: int
) -> None:
    q, k, v = (RNG.standard_normal((1, 1, n, 4)).astype(np.float32) for n in (3, keys, keys))
    position = in_use - 3
    counts = [[j for j in range(keys) if j <= position + i and (not window or j + window > position + i)]
              for i in range(3)]  # fmt: skip
    scale = np.float32(0.5)
    expected = [attention_by_definition(q[0, 0, i], k[0, 0], v[0, 0], scale, counts[i]) for i in range(3)]
    for array in (k, v):
        array[:, :, in_use:] = np.nan  # what does not count is left out, and not multiplied by 0
    positions = np.full(1, position, np.uint32)
    result = run(
        device,
        {"q": q, "k": k, "v": v, "positions": positions},
        lambda q, k, v, positions: dg.attention(q, k, v, scale=0.5, causal=True, window=window, positions=positions),
    )
    assert result[0, 0].tobytes() == np.array(expected, np.float32).tobytes()


def test_every_test_that_the_page_of_graphs_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "graph.md").read_text()))
    listed = [re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE) for file in (ROOT / "tests").rglob("*.py")]
    assert len(named) > 30
    assert sorted(named - {name for names in listed for name in names}) == []
