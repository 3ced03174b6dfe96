"""Graphs on hardware: packed weights, experts, an attention block, resident batches: the bits of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dashi import graph as dg
from dashi.kernels.packed import FORMATS
from dashi.kernels.packed._products import random_blocks
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.types import HostArray

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(16)


def normal(*shape: int) -> HostArray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rows", [1, 2, 16, 33])
def test_packed_products_and_experts_have_the_bits_of_numpy(name: str, rows: int, gpu: VulkanDevice) -> None:
    k, n, groups = 4096 + 256, 65, 3
    b = dg.Builder("packed")
    x, group = b.input("x", (rows, k)), b.input("group", (rows,), "u32")
    w = b.packed_param("w", name, (n, k), random_blocks(FORMATS[name], RNG, n, k))
    e = b.packed_param("e", name, (groups, n, k), random_blocks(FORMATS[name], RNG, groups * n, k))
    graph = b.graph(y=dg.tanh(x @ w.transpose()), z=dg.grouped_matmul(x, e.transpose(0, 2, 1), group))
    values = {"x": normal(rows, k), "group": RNG.integers(0, groups + 1, rows).astype(np.uint32)}
    expected = dg.evaluate(graph, values)
    with dg.compile(graph, gpu) as pipeline:
        got = pipeline.dispatch(values)
        assert (pipeline.report().host_steps, pipeline.report().widened) == ({}, {})
    assert {title: array.tobytes() for title, array in got.items()} == {t: a.tobytes() for t, a in expected.items()}


def test_an_attention_block_has_the_bits_of_numpy(gpu: VulkanDevice) -> None:
    b = dg.Builder("block")
    x = b.input("x", (2, 130, 64))
    w = [b.param(f"w{k}", normal(64, n)) for k, n in enumerate((128, 64, 64))] + [b.param("out", normal(128, 64))]
    tables = dg.rope_tables(130, 16)
    cos, sin = (b.param(name, table) for name, table in zip(("cos", "sin"), tables, strict=True))
    graph = b.graph(y=dg.attention_block(x, w, 8, tables=(cos, sin), causal=True))
    values = {"x": normal(2, 130, 64)}
    with dg.compile(graph, gpu) as pipeline:
        assert pipeline.dispatch(values)["y"].tobytes() == dg.evaluate(graph, values)["y"].tobytes()


def test_a_batch_of_resident_runs_has_the_bits_of_runs_one_by_one(gpu: VulkanDevice) -> None:
    b = dg.Builder("cell")
    x, h = b.input("x", (64,)), b.input("h", (64,))
    graph = b.graph(state=dg.tanh(x + h * 0.5))
    steps, state = [normal(64) for _ in range(20)], np.zeros(64, np.float32)
    expected: list[bytes] = []
    for step in steps:
        state = dg.evaluate(graph, {"x": step, "h": state})["state"]
        expected.append(state.tobytes())
    with dg.compile(graph, gpu) as pipeline:
        pipeline.feed(pipeline.bind("h", np.zeros(64, np.float32)), "state")
        results = pipeline.dispatch_resident_batched([{"x": step} for step in steps], ["state"])
    assert [result["state"].tobytes() for result in results] == expected
