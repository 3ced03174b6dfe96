"""What each pass makes of a small graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.graph.pass_order import Pass
from dashi.graph.passes.plan_memory import PlanMemory
from dashi.graph.passes.rewrite import Rewrite
from dashi.graph.passes.schedule import PlannedStep, Schedule
from dashi.kernels.abi import Limits
from dashi.runtime._null_device import NullDevice
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device

RNG = np.random.default_rng(0)


def attention_by_parts() -> dg.Graph:
    b = dg.Builder("parts")
    q, k, v = (b.input(name, (2, 5, 4)) for name in "qkv")
    weights = dg.softmax((q @ k.transpose(0, 2, 1)) * 0.5)
    return b.graph(y=weights @ v)


def test_a_tail_reads_an_operand_of_its_product_through_the_view_of_both(device: Device) -> None:
    b = dg.Builder("residual")
    x = b.input("x", (4, 4))
    turned = x.transpose()
    graph = b.graph(y=dg.relu(turned @ x + turned))
    (product,) = dg.run_passes(graph, after="fuse").of("product")
    assert product.get("tail") == ("add value in2", "relu v0")
    inputs = {"x": RNG.standard_normal((4, 4)).astype(np.float32)}
    with dg.compile(graph, device) as pipeline:
        assert pipeline.dispatch(inputs)["y"].tobytes() == dg.evaluate(graph, inputs)["y"].tobytes()


def layer() -> dg.Graph:
    b = dg.Builder("layer")
    x = b.input("x", (8, 16))
    w = b.param("w", RNG.standard_normal((32, 16)).astype(np.float32))
    bias = b.param("bias", RNG.standard_normal(32).astype(np.float32))
    h = dg.relu(x @ w.transpose() + bias)
    return b.graph(y=dg.tanh(h) * 0.5 - h)


def test_rewrite_folds_constants_and_says_so() -> None:
    b = dg.Builder("constants")
    half = dg.sqrt(b.constant(0.25))
    graph = dg.run_passes(b.graph(y=b.input("x", (3,)) * half), after="rewrite")
    assert [node.op for node in graph.nodes] == ["constant", "input", "mul"]
    assert graph.notes == ("fold_constants: sqrt_0",)


def test_rewrite_finds_attention_in_its_parts_and_names_it() -> None:
    graph = attention_by_parts()
    rewritten = dg.run_passes(graph, after="rewrite")
    assert [node.op for node in rewritten.nodes] == ["input", "input", "input", "attention"]
    assert rewritten.notes == ("attention: matmul_1",)
    inputs = {name: RNG.standard_normal((2, 5, 4)).astype(np.float32) for name in "qkv"}
    # Sums are cut into runs: the last bits may differ, and no more.
    first, second = (np.asarray(dg.evaluate(g, inputs)["y"], np.float64) for g in (rewritten, graph))
    np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)
    assert dg.program_id(graph) != dg.program_id(graph, passes=(Rewrite(attention=False), *dg.PASSES[1:]))


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [
        ((1, 6, 1, 2, 4), (6, 1, 1, 3, 4), (6, 1, 1, 3, 4)),
        ((2, 4), (3, 4), (3, 5)),
        ((2, 2, 4), (1, 3, 4), (1, 3, 4)),
        ((1, 6, 2, 4), (1, 2, 1, 3, 4), (1, 2, 1, 3, 4)),
        ((1, 4, 2, 4), (1, 1, 3, 4), (1, 1, 3, 4)),
        ((2, 4), (3, 4), (5, 3, 4)),
        ((0, 4), (3, 4), (3, 4)),
        ((2, 257), (2, 257), (2, 257)),
    ],
)
def test_rewrite_leaves_alone_what_the_kernel_of_attention_would_not_compute(
    q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], device: Device
) -> None:
    b = dg.Builder("stretched")
    query, keys, value = (b.input(name, shape) for name, shape in zip("qkv", (q, k, v), strict=True))
    turned = keys.transpose(*range(len(k) - 2), len(k) - 1, len(k) - 2)
    graph = b.graph(y=dg.softmax((query @ turned) * 0.5) @ value)
    inputs = {n: RNG.standard_normal(s).astype(np.float32) for n, s in zip("qkv", (q, k, v), strict=True)}
    with dg.compile(graph, device) as pipeline:
        assert pipeline.report().rewrites == ()
        assert pipeline.dispatch(inputs)["y"].tobytes() == dg.evaluate(graph, inputs)["y"].tobytes()


def test_legalize_makes_movement_one_index_map() -> None:
    b = dg.Builder("moves")
    x = b.input("x", (2, 3, 4))
    moved = dg.slice_(x.transpose(2, 0, 1), [1], [None], [2]).reshape(2, 6)
    graph = dg.run_passes(b.graph(y=moved + 1.0), after="legalize")
    (view,) = (node for node in graph.of("view") if graph.users[node.name] == ("add_0",))
    assert view.inputs == ("x",)
    assert view.get("view") == ((2, 6), (2, 4), 1)


def test_legalize_copies_what_no_strides_can_name() -> None:
    b = dg.Builder("copies")
    x = b.input("x", (2, 3))
    graph = dg.run_passes(b.graph(y=x.transpose().reshape(6) + 1.0), after="legalize")
    assert [node.op for node in graph.nodes if node.op == "copy"] == ["copy"]


MOVES = {
    "transpose": "%a = transpose %x {axes=[1,0]} : f32[3,2]\n%b = view %a {view=[[6],[1],0]} : f32[6]",
    "slice": "%a = slice %x {starts=[1], steps=[1], stops=[2]} : f32[1,3]\n%b = view %a {view=[[3],[1],0]} : f32[3]",
    "first": "%a = slice %x {starts=[0], steps=[1], stops=[1]} : f32[1,3]\n%b = view %a {view=[[3],[-1],2]} : f32[3]",
    "expand": "%a = expand %x {shape=[2,2,3]} : f32[2,2,3]\n%b = view %a {view=[[12],[1],0]} : f32[12]",
    "view": "%a = view %x {view=[[3,2],[1,3],0]} : f32[3,2]\n%b = view %a {view=[[2,2],[3,1],1]} : f32[2,2]",
}


@pytest.mark.parametrize("moves", MOVES)
def test_a_view_of_a_view_shows_the_elements_of_that_view(moves: str, device: Device) -> None:
    graph = dg.parse_graph(f"graph views\n%x = input : f32[2,3]\n{MOVES[moves]}\nreturn y=%b\n")
    inputs = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    with dg.compile(graph, device) as pipeline:
        assert pipeline.dispatch(inputs)["y"].tolist() == dg.evaluate(graph, inputs)["y"].tolist()


def test_fuse_makes_one_map_of_a_chain_and_folds_views_into_it() -> None:
    b = dg.Builder("chain")
    x, y = b.input("x", (2, 3)), b.input("y", (3, 2))
    graph = dg.run_passes(b.graph(z=dg.where(dg.greater(x, 0.0), dg.tanh(x + y.transpose()), x * 0.5)))
    (fused,) = graph.of("map")
    body = ("greater in0 f32:0.0", "add in0 in1", "tanh v1", "mul in0 f32:0.5", "where v0 v2 v3")
    assert fused.get("body") == body
    assert fused.get("views") == (None, ((2, 3), (1, 2), 0))


@pytest.mark.parametrize("passes", [dg.PASSES, dg.UNFUSED], ids=["fused", "unfused"])
def test_a_constant_of_one_number_that_stretches_what_it_meets_keeps_its_shape(
    passes: tuple[Pass, ...], device: Device
) -> None:
    b = dg.Builder("stretched")
    x = b.input("x", (2, 3))
    halves = dg.sum_(x, (1,), keepdims=True) / b.constant(np.full(2, 2, np.float32))
    more = dg.relu(x * b.constant(np.full((4, 1, 3), 2, np.float32)))
    graph = b.graph(halves=halves, more=more, sums=dg.sum_(more, (0,)), product=halves @ x + more)
    inputs = {"x": RNG.standard_normal((2, 3)).astype(np.float32)}
    expected = dg.evaluate(graph, inputs)
    with dg.compile(graph, device, passes=passes) as pipeline:
        results = pipeline.dispatch(inputs)
    assert {name: values.shape for name, values in results.items()} == {
        "halves": (2, 2), "more": (4, 2, 3), "sums": (2, 3), "product": (4, 2, 3),
    }  # fmt: skip
    assert all(results[name].tobytes() == expected[name].tobytes() for name in expected)


def test_an_empty_value_may_have_an_axis_longer_than_memory(device: Device) -> None:
    b = dg.Builder("empty")
    long = b.input("x", (0, 4)).reshape(0, (1 << 31) - 1)
    graph = b.graph(y=long, z=dg.relu(long.transpose()))
    inputs = {"x": np.zeros((0, 4), np.float32)}
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch(inputs)
    expected = {"y": (0, (1 << 31) - 1), "z": ((1 << 31) - 1, 0)}
    assert {name: values.shape for name, values in results.items()} == expected
    assert {name: values.shape for name, values in dg.evaluate(graph, inputs).items()} == expected


def test_a_pass_that_changes_the_type_of_a_result_is_an_error() -> None:
    @dataclass(frozen=True)
    class Halve:
        name: str = "halve"

        def run(self, graph: dg.Graph) -> dg.Graph:
            return dg.parse_graph(str(graph).replace("f32", "f16"))

    with pytest.raises(GraphError, match=r"the pass 'halve' makes the result 'y' f16\[3\], not f32\[3\]\."):
        dg.run_passes(dg.parse_graph("graph g\n%x = input : f32[3]\nreturn y=%x"), (Halve(),))


def test_fuse_gives_a_product_its_tail() -> None:
    graph = dg.run_passes(layer())
    assert [node.op for node in graph.nodes] == ["input", "param", "param", "packed", "product"]
    (fused,) = graph.of("product")
    assert fused.get("tail") == ("add value in2", "relu v0", "tanh v1", "mul v2 f32:0.5", "sub v3 v1")


def test_fuse_gives_a_reduction_its_head_and_its_tail() -> None:
    b = dg.Builder("rows")
    x, y, w = b.input("x", (4, 6)), b.input("y", (4, 6)), b.input("w", (4,))
    graph = dg.run_passes(b.graph(s=dg.sum_(dg.square(x - y), 1) * w, n=dg.layer_norm(x + y, *_weights(b))))
    summed, normal = graph.of("rows")
    assert (summed.get("head"), summed.get("tail")) == (("sub in0 in1", "square v0"), ("mul value in2",))
    assert (normal.get("head"), normal.get("tail")) == (("add in0 in1",), ("mul value in2", "add v0 in3"))


def _weights(b: dg.Builder) -> tuple[dg.Tensor, dg.Tensor]:
    return b.param("gamma", np.ones(6, np.float32)), b.param("beta", np.ones(6, np.float32))


def test_fuse_leaves_alone_what_others_read_too() -> None:
    b = dg.Builder("shared")
    x, w = b.input("x", (4, 4)), b.param("w", np.eye(4, dtype=np.float32))
    product = x @ w
    graph = dg.run_passes(b.graph(y=dg.tanh(product), z=product))
    assert [node.op for node in graph.nodes] == ["input", "param", "product", "map"]


def test_assign_layouts_keeps_a_transposed_weight_as_its_product_reads_it() -> None:
    (packed,) = dg.run_passes(layer()).of("packed")
    assert (packed.inputs, packed.shape) == (("w",), (16, 32))


def test_legalize_makes_concat_copies_along_any_axis() -> None:
    b = dg.Builder("joined")
    x, y = b.input("x", (2, 3)), b.input("y", (2, 1))
    graph = dg.run_passes(b.graph(z=dg.concat([dg.tanh(x), dg.exp(y)], 1) + 1.0))
    assert [step.place for step in Schedule().run(graph)] == ["kernel"] * 3 + ["copies", "kernel"]
    (last,) = (node for node in graph.nodes if node.name in graph.results)
    assert last.get("views") == (((2, 4), (1, 2), 0),)


def test_plan_memory_reuses_bytes_and_reports_the_bound() -> None:
    b = dg.Builder("chain")
    x = b.input("x", (64, 64))
    w = b.param("w", np.eye(64, dtype=np.float32))
    for _ in range(6):
        x = x @ w
    graph = dg.run_passes(b.graph(y=x))
    steps = Schedule().run(graph)
    plan = PlanMemory().run(graph, steps)
    assert plan.nbytes == plan.liveness_bytes == 2 * 64 * 64 * 4
    assert plan.unshared_bytes == 7 * 64 * 64 * 4
    assert PlanMemory(reuse=False).run(graph, steps).nbytes == plan.unshared_bytes


def test_values_that_live_at_the_same_time_share_no_byte() -> None:
    graph = dg.run_passes(layer(), dg.UNFUSED)
    steps = Schedule().run(graph)
    plan = PlanMemory().run(graph, steps)
    for index, step in enumerate(steps):
        later = {name for after in steps[index + 1 :] for name in after.reads} | graph.results
        live = {step.node.name, *step.reads, *(n for n in plan.offsets if n in later and _position(steps, n) < index)}
        ranges = sorted((plan.offsets[n], plan.offsets[n] + graph[n].type.nbytes) for n in live if n in plan.offsets)
        assert all(first[1] <= second[0] for first, second in pairwise(ranges))


def _position(steps: Sequence[PlannedStep], name: str) -> int:
    return next((i for i, step in enumerate(steps) if step.node.name == name), -1)


def test_explain_prints_every_pass() -> None:
    graph = layer()
    for name in ("rewrite", "legalize", "fuse", "assign_layouts", "cut", "choose_products"):
        assert dg.parse_graph(dg.explain(graph, after=name)).name == "layer"
    assert 'method="fast"' in dg.explain(graph, after="choose_products", class_="device")
    assert 'method="fast"' not in dg.explain(graph, after="choose_products")
    assert "(x, w.sub_0.in1.dense, bias) -> f32[8,32]" in dg.explain(graph, after="schedule")
    assert "bytes planned" in dg.explain(graph, after="plan_memory")
    assert "1 dispatches, 0 barriers" in dg.explain(graph, after="record")
    with pytest.raises(GraphError, match="there is no pass 'fusion'"):
        dg.explain(graph, after="fusion")


def test_explain_shows_the_plan_of_a_device(device: Device) -> None:
    graph = layer()
    with dg.compile(graph, device) as pipeline:
        recorded = pipeline.bare_program()
        assert str(len(recorded.steps)) == str(dg.explain(graph, device=device).count("\n") + 1)
        recorded.close()
    assert f"on {device.info.spec}" in dg.explain(graph, after="record", device=device)
    few = Limits(storage_range=1 << 10)
    with NullDevice(few) as small:
        assert "window %" in dg.explain(graph, after="cut", device=small)
        assert dg.explain(graph, after="cut") == dg.explain(graph, after="assign_layouts")


def test_a_result_may_be_another_shape_of_a_param_read_through_a_view(device: Device) -> None:
    b = dg.Builder("shown")
    w = b.param("w", RNG.standard_normal((4, 4)).astype(np.float32))
    graph = b.graph(y=dg.reverse(w, 0).reshape(-1).reshape(2, 8))
    with dg.compile(graph, device) as pipeline:
        assert pipeline.dispatch({})["y"].tobytes() == dg.evaluate(graph, {})["y"].tobytes()


def joined(rows: int) -> dg.Graph:
    """Two values joined, of which one is read again; and both joined once more behind a third."""
    b = dg.Builder("joined")
    x = b.input("x", (rows, 64))
    first, second = dg.tanh(x), dg.exp(x)
    pair = dg.concat([first, second])
    both = dg.concat([dg.sum_(first, 1, keepdims=True) + x, dg.sqrt(pair)])
    return b.graph(y=dg.concat([both, both]), z=dg.relu(pair))


def test_parts_are_written_where_they_lie_in_the_whole(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = joined(4)
    plan = dg.explain(graph, after="plan_memory").splitlines()
    assert "tanh_0: the bytes of concat_0.join_1" in plan
    assert "exp_0: the bytes of concat_0.join_1 from 1024 on" in plan
    assert "sqrt_0: the bytes of concat_2.join_5 from 1024 on" in plan
    copies: list[object] = []
    make = type(device).copy_step

    def counted(self: Device, source: Array, target: Array) -> AnyStep:
        copies.append(target)
        return make(self, source, target)

    monkeypatch.setattr(type(device), "copy_step", counted)
    inputs = {"x": RNG.standard_normal((4, 64)).astype(np.float32)}
    expected = dg.evaluate(graph, inputs)
    counts: list[int] = []
    for plan_memory in (PlanMemory, partial(PlanMemory, reuse=False)):
        copies.clear()
        monkeypatch.setattr("dashi.graph.compiler.PlanMemory", plan_memory)
        with dg.compile(graph, device) as pipeline:
            pipeline.check()
            results = pipeline.dispatch(inputs)
        counts.append(len(copies))
        assert {n: v.tobytes() for n, v in results.items()} == {n: v.tobytes() for n, v in expected.items()}
    assert counts == [1, 6]  # what is joined with itself is copied once


@pytest.mark.parametrize(("rows", "kind"), [(3, "f32"), (1, "f16"), (7, "u8"), (16, "u8")])
def test_parts_that_cannot_be_bound_in_the_whole_are_copied(rows: int, kind: str, device: Device) -> None:
    b = dg.Builder("parts")
    x = b.input("x", (rows, 5), kind)
    same = dg.where(dg.equal(x, x), x, x)
    graph = b.graph(y=dg.concat([same, dg.reverse(same, 0), x]), z=dg.concat([same.transpose(), same.transpose()], 1))
    inputs = {"x": np.arange(rows * 5).reshape(rows, 5).astype(np.dtype(str(x.dtype.numpy)))}
    expected = dg.evaluate(graph, inputs)
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch(inputs)
    assert {n: v.tobytes() for n, v in results.items()} == {n: v.tobytes() for n, v in expected.items()}
