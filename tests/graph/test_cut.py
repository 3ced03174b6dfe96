"""Values larger than what a device binds: kernels take them one part after another, and the bits stay."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import LimitError
from dashi.graph.ops._pieces import IN_PLACE
from dashi.graph.passes._regions import Region, regions, whole
from dashi.graph.passes.cut import CutLargeValues
from dashi.graph.passes.fuse import Fuse
from dashi.graph.passes.plan_memory import PlanMemory
from dashi.graph.passes.schedule import STORED, Schedule
from dashi.kernels.packed import FORMATS
from dashi.kernels.packed._other_formats import OTHER_FORMATS
from dashi.kernels.packed._products import random_blocks
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

LIMIT = 4096
"""Bytes: what the graphs of these tests may bind at once."""
Build = Callable[[dg.Builder], dg.Tensor]
CUT = (*dg.PASSES, CutLargeValues(LIMIT))
RNG = np.random.default_rng(5)
AWKWARD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38, 2.0**-102], np.float32)


def values(*shape: int) -> HostArray:
    array = RNG.standard_normal(shape).astype(np.float32)
    chosen = RNG.random(shape) < 0.02
    array[chosen] = RNG.choice(AWKWARD, int(chosen.sum()))
    return array


def elementwise(b: dg.Builder) -> dg.Tensor:
    x, row, column = b.param("p", values(70, 64)), b.param("row", values(64)), b.param("column", values(70, 1))
    y = dg.tanh(x * row + column)
    return dg.slice_(y * y, [3], [9]) + dg.slice_(y, [60, 0], [66, None])


def chain(b: dg.Builder) -> dg.Tensor:
    """Values that two readers need, so that they are stored: a map, a map over rows, a reduction with a tail."""
    x, bias = b.param("p", values(3, 50, 31)), b.param("bias", values(50, 1))
    y = dg.relu(x) + bias
    weights = dg.softmax(y)
    return dg.sum_(weights * y, 2) * 0.5 + dg.mean(dg.unit(y), 2)


def kept_axes(b: dg.Builder) -> dg.Tensor:
    x, scale = b.param("p", values(9, 4, 128)), b.param("scale", values(9, 4, 1))
    return dg.sum_(x, 2, keepdims=True) * scale + dg.norm(x, (1, 2), keepdims=True)


def middle_axis(b: dg.Builder) -> dg.Tensor:
    x = b.param("p", values(6, 40, 16))
    return dg.max_(x - 1.0, 1)


def by_rows(b: dg.Builder) -> dg.Tensor:
    a, w, bias = b.param("a", values(100, 70)), b.param("w", values(70, 12)), b.param("bias", values(12))
    return dg.max_(dg.relu(a @ w + bias), 1)


def batches(b: dg.Builder) -> dg.Tensor:
    a, w = b.param("a", values(5, 2, 12, 33)), b.param("w", values(5, 1, 33, 9))
    return dg.sum_(a @ w, (1, 3))


def by_columns(b: dg.Builder) -> dg.Tensor:
    x, w, bias = b.input("x", (3, 20)), b.param("w", values(300, 20)), b.param("bias", values(300))
    return dg.tanh(x @ w.transpose() + bias)


def by_columns_of_rows(b: dg.Builder) -> dg.Tensor:
    """The second factor lies in the other order; the tail reads the first, too."""
    x, w = b.input("x", (3, 20)), b.param("w", values(20, 300))
    y = x @ w
    return y * dg.sum_(x, 1, keepdims=True)


def many_columns_of_many_rows(b: dg.Builder) -> dg.Tensor:
    a, w = b.param("a", values(40, 20)), b.param("w", values(20, 300))
    return dg.sum_(a @ w, 1)


def lookup(b: dg.Builder) -> dg.Tensor:
    table = b.param("table", values(300, 16))
    return dg.gather(table, b.constant(np.array([[0, 299, 300], [64, 63, 2**32 - 1]], np.uint32)))


def whole_numbers(b: dg.Builder) -> dg.Tensor:
    table = b.param("table", RNG.integers(0, 2**32, (3000,)).astype(np.uint32))
    return dg.gather(table, b.constant(np.array([0, 2999, 1024, 3000], np.uint32)))


def joined(b: dg.Builder) -> dg.Tensor:
    x, y = b.param("p", values(33, 40)), b.param("q", values(31, 40))
    return dg.max_(dg.concat([dg.relu(x), dg.tanh(y)]), 1)


def joined_in_place(b: dg.Builder) -> dg.Tensor:
    """Parts that can be bound, and lie in a whole that cannot."""
    x, y = b.param("p", values(16, 64)), b.param("q", values(16, 64))
    return dg.max_(dg.concat([dg.relu(x), dg.tanh(y)]), 1)


def widened(b: dg.Builder) -> dg.Tensor:
    """A table of packed weights without kernels: stored as fp32, looked up and multiplied with."""
    w = b.packed_param("w", "Q2_K", (20, 256), random_blocks(OTHER_FORMATS["Q2_K"], np.random.default_rng(1), 20, 256))
    rows = dg.gather(w, b.constant(np.array([19, 0, 20], np.uint32)))
    return dg.tanh(rows) @ w.transpose() + b.param("bias", values(20))


GRAPHS = (
    elementwise, chain, kept_axes, middle_axis, by_rows, batches, by_columns, by_columns_of_rows,
    many_columns_of_many_rows, lookup, whole_numbers, joined, joined_in_place, widened,
)  # fmt: skip


@pytest.mark.parametrize("build", GRAPHS)
def test_cutting_changes_no_bit_and_leaves_nothing_too_large(build: Build) -> None:
    b = dg.Builder("large")
    graph = b.graph(y=build(b))
    inputs = {node.name: values(*node.shape) for node in graph.of("input")}
    lowered = dg.run_passes(graph, CUT)
    assert dg.evaluate(lowered, inputs)["y"].tobytes() == dg.evaluate(graph, inputs)["y"].tobytes()
    assert dg.parse_graph(str(lowered)) == lowered
    require_bindable(lowered)


@pytest.mark.parametrize("build", [chain, by_columns, lookup, joined, joined_in_place, widened])
def test_devices_give_the_bits_of_whole_values(build: Build, device: Device) -> None:
    b = dg.Builder("large")
    graph = b.graph(y=build(b))
    inputs = {node.name: values(*node.shape) for node in graph.of("input")}
    expected = dg.evaluate(graph, inputs)["y"]
    with dg.compile(graph, device, passes=CUT) as pipeline:
        pipeline.check()
        assert pipeline.report().host_steps == {}
        assert pipeline.dispatch(inputs)["y"].tobytes() == expected.tobytes()


def require_bindable(graph: dg.Graph) -> None:
    """No step reads or makes more than the limit, and what lies in parts takes no memory twice."""
    steps = Schedule().run(graph)
    assert any(node.type.nbytes > LIMIT for node in graph.nodes)
    for step in steps:
        small = [step.node.type.nbytes, *(graph[name].type.nbytes for name in step.reads)]
        assert max(small) <= LIMIT or step.copies is not None, step
    assert not any(step.node.op in (*IN_PLACE, *STORED) for step in steps)
    plan = PlanMemory().run(graph, steps)
    assert plan.offsets.keys().isdisjoint(plan.aliases)
    in_steps = PlanMemory(most_extra=0).run(graph, steps)
    assert in_steps.nbytes <= in_steps.liveness_bytes + 256 * len(plan.offsets)


def test_params_of_cut_graphs_are_set_and_read() -> None:
    b = dg.Builder("large")
    graph = b.graph(y=chain(b))
    other = values(3, 50, 31)
    with CpuDevice() as device, dg.compile(graph, device, passes=CUT) as pipeline:
        pipeline.set_param("p", other)
        assert pipeline.param("p").tobytes() == other.tobytes()
        assert pipeline.dispatch({})["y"].tobytes() == dg.evaluate(graph, {}, {"p": other})["y"].tobytes()


def refused(b: dg.Builder) -> dg.Tensor:
    """Every row of the result reads elements of all rows of a value that is computed."""
    x = dg.tanh(b.param("p", values(64, 64)))
    return dg.max_(x.transpose(), 1)


def test_what_no_rows_can_be_cut_of_is_an_error_that_names_the_node() -> None:
    b = dg.Builder("large")
    graph = b.graph(y=refused(b))
    with pytest.raises(
        LimitError, match=r"node 'max_0' \(rows\) works on .*16384 bytes; the device binds 4096"
    ) as error:
        dg.run_passes(graph, CUT)
    assert "Fix: cut the value into parts by rows" in str(error.value)


def test_parts_of_a_concat_lie_in_a_whole_that_no_kernel_binds() -> None:
    b = dg.Builder("large")
    lowered = dg.run_passes(b.graph(y=joined_in_place(b)), CUT)
    steps = Schedule().run(lowered)
    join = next(step for step in steps if step.copies is not None)
    plan = PlanMemory().run(lowered, steps)
    assert join.node.type.nbytes > LIMIT
    parts = [step.node.name for step in steps if step.level == 1]
    assert [(plan.aliases[name], plan.starts.get(name, 0)) for name in parts] == [
        (join.node.name, 0), (join.node.name, 4096)
    ]  # fmt: skip
    apart = PlanMemory(reuse=False).run(lowered, steps)
    assert apart.aliases.keys().isdisjoint(parts)


def convolved(b: dg.Builder) -> dg.Tensor:
    return dg.mean(dg.conv(b.param("p", values(1, 3, 48, 48)), b.param("w", values(40, 3, 3, 3))), (1, 2, 3))


def pointwise(b: dg.Builder) -> dg.Tensor:
    return dg.mean(dg.conv(b.param("p", values(1, 4, 20, 20)), b.param("w", values(4, 4, 1, 1))), (1, 2, 3))


def packed(b: dg.Builder) -> dg.Tensor:
    data = random_blocks(FORMATS["Q8_0"], np.random.default_rng(1), 200, 32)
    return dg.max_(b.input("x", (8, 32)) @ b.packed_param("w", "Q8_0", (200, 32), data).transpose(), 1)


@pytest.mark.parametrize(
    ("build", "op"), [(convolved, "window_product"), (pointwise, "product"), (packed, "packed_product")]
)
def test_products_that_are_written_in_other_ways_are_refused_by_name(build: Build, op: str) -> None:
    b = dg.Builder("large")
    graph = b.graph(y=build(b))
    with pytest.raises(LimitError, match=rf"\({op}\) works on .*; the device binds 4096 .*Fix: cut the value"):
        dg.run_passes(graph, CUT)


def test_inputs_and_results_must_be_bound_whole() -> None:
    b = dg.Builder("large")
    graph = b.graph(y=dg.max_(b.input("x", (64, 64)), 1))
    with pytest.raises(LimitError, match=r"the input 'x' .* Fix: pass it in several inputs"):
        dg.run_passes(graph, CUT)
    b = dg.Builder("large")
    graph = b.graph(y=dg.tanh(b.param("p", values(64, 64))))
    with pytest.raises(LimitError, match=r"the result 'y' .* Fix: slice it into several results"):
        dg.run_passes(graph, CUT)


def test_regions_cover_a_value_once_in_order_and_begin_where_arrays_may() -> None:
    for shape, most, unit in (((7, 64), 128, 64), ((3, 1, 50, 4), 24, 4), ((1000,), 64, 64), ((5, 256), 64, 64)):
        found = regions(whole(shape), lambda region, most=most: region.size <= most, unit)
        assert found is not None
        parts, at = list(found), 0
        for part in parts:
            start = np.ravel_multi_index(part.starts, shape)
            assert (start, start % unit, part.size <= most) == (at, 0, True)
            at += part.size
        assert at == math.prod(shape)
    assert regions(whole((4, 3)), lambda region: region.size <= 3, 64) is None
    assert regions(Region((0, 0), (4, 64)), lambda region: region.size <= 64, 64, axes=()) is None


def test_fusion_stops_at_the_arrays_that_a_device_binds() -> None:
    b = dg.Builder("wide")
    x = [b.input(f"x{k}", (8, 8)) for k in range(9)]
    total = x[0] @ x[1] + x[2] - x[3] * x[4]
    graph = b.graph(y=dg.softmax(total * x[5] + x[6] - x[7]) * x[8])
    inputs = {f"x{k}": values(8, 8) for k in range(9)}
    expected = dg.evaluate(graph, inputs)["y"].tobytes()
    for buffers in (4, 5, 7):
        passes = tuple(Fuse(buffers=buffers) if step.name == "fuse" else step for step in dg.PASSES)
        lowered = dg.run_passes(graph, passes)
        assert all(len(set(step.reads)) < buffers for step in Schedule().run(lowered))
        assert dg.evaluate(lowered, inputs)["y"].tobytes() == expected
    assert len(Schedule().run(lowered)) < len(Schedule().run(dg.run_passes(graph, dg.UNFUSED)))


def test_the_tail_of_a_product_reads_its_factor_through_the_same_view(device: Device) -> None:
    b = dg.Builder("residual")
    x = b.input("x", (16, 16)).transpose()
    graph = b.graph(y=x @ b.param("w", values(16, 16)) + x)
    inputs = {"x": values(16, 16)}
    with dg.compile(graph, device) as pipeline:
        assert pipeline.report().kernels == {"product": 1}
        assert pipeline.dispatch(inputs)["y"].tobytes() == dg.evaluate(graph, inputs)["y"].tobytes()


@pytest.mark.long
def test_params_above_what_lavapipe_binds(vulkan: Device) -> None:
    """An embedding table of 156 MiB, which is the last product's weights, too."""
    table = np.random.default_rng(0).standard_normal((40_000, 1024), dtype=np.float32)
    b = dg.Builder("embedding")
    ids, w = b.input("ids", (2, 3), "u32"), b.param("table", table)
    rows = dg.gather(w, ids)
    graph = b.graph(rows=rows, y=rows.reshape(6, 1024) @ w.transpose(), top=dg.max_(w * 0.5, 1), sums=dg.sum_(w, 1))
    inputs = {"ids": np.array([[0, 39_999, 40_000], [32_768, 32_767, 7]], np.uint32)}
    with dg.compile(graph, vulkan) as pipeline:
        pipeline.check()
        report = pipeline.report()
        assert report.stored_bytes >= table.nbytes > vulkan.limits.storage_range or vulkan.info.is_hardware
        assert report.arena_bytes <= 1.08 * report.liveness_bytes
        results = pipeline.dispatch(inputs)
    few = [*range(3), 32_766, 32_767, 32_768, 39_999]
    looked_up = np.concatenate([table, np.zeros((1, 1024), np.float32)])[inputs["ids"]]
    assert results["rows"].tobytes() == looked_up.tobytes()
    b = dg.Builder("few")
    w = b.param("table", table[few])
    part = b.graph(
        y=b.param("rows", looked_up.reshape(6, 1024)) @ w.transpose(), top=dg.max_(w * 0.5, 1), sums=dg.sum_(w, 1)
    )
    expected = dg.evaluate(part, {})
    assert results["y"][:, few].tobytes() == expected["y"].tobytes()
    assert results["top"][few].tobytes() == expected["top"].tobytes()
    assert results["sums"][few].tobytes() == expected["sums"].tobytes()


@pytest.mark.long
def test_dispatches_of_more_workgroups_than_a_device_takes_at_once(vulkan: Device) -> None:
    """Rows of 64 to a workgroup, tiles of 64 rows of a product, 256 places of a lookup."""
    rows, places = 65_536 * 64 + 100, 65_536 * 256 + 3
    b = dg.Builder("groups")
    x, table, index = b.input("x", (rows, 2)), b.input("table", (1000,)), b.input("index", (places,), "u32")
    y = x @ b.param("w", np.ones((2, 1), np.float32))
    graph = b.graph(sums=dg.sum_(x, 1) * 0.5, y=y, looked_up=dg.gather(table, index))
    numbers = np.arange(rows, dtype=np.float32) % 1024
    inputs = {"x": np.stack([numbers, numbers], 1), "table": np.arange(1000, dtype=np.float32)}
    inputs["index"] = np.arange(places, dtype=np.uint32) % 1000
    with dg.compile(graph, vulkan) as pipeline:
        results = pipeline.dispatch(inputs)
    assert (results["sums"] == numbers).all()
    assert (results["y"][:, 0] == 2 * numbers).all()
    assert (results["looked_up"] == inputs["index"]).all()
