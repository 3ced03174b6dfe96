"""Conformance of generated kernels: random graphs have the bits of their definition in every call, on every device,
fused or not, from any thread; each row is alone; and the placed barriers are as many as are needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashi import graph as dg
from dashi.errors import HazardError, NoResultError
from dashi.kernels._cases import DISTRIBUTIONS
from dashi.runtime import open_device
from dashi.runtime._hazards import Batch
from dashi.runtime.device import Device, Program
from dashi.types import DTYPES, HostArray

Bits = dict[str, bytes]
UNARY = (dg.tanh, dg.relu, dg.exp, dg.sqrt, dg.erf, dg.gelu, dg.sigmoid, dg.softplus, dg.floor, dg.absolute, dg.log)
BINARY: tuple[Callable[[Any, Any], dg.Tensor], ...] = (
    dg.maximum, dg.minimum, dg.power, lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y,
)  # fmt: skip
REDUCTIONS = (dg.sum_, dg.mean, dg.max_, dg.min_, dg.prod, dg.norm)
SEEDS = st.integers(0, 2**20)


def row_graph(seed: int, rows: int, steps: int = 7) -> dg.Graph:
    """A graph of so many random ops, in which axis 0 is a batch: no op mixes its rows."""
    rng = np.random.default_rng(seed)
    b, listed = dg.Builder("rows"), shapes(seed)
    most = 4 * math.prod(listed["y"])
    values = [b.input(name, (rows, *listed[name]), float_type(seed)) for name in listed]
    words, index = dg.rng_input(b, rows), b.input("index", (rows,), "u32")
    for _ in range(steps):
        x = values[int(rng.integers(len(values)))]
        x = x if len(x.shape) > 1 else x.reshape(rows, 1)
        value = _row_op(rng, b, x, values, (words, index))
        if math.prod(value.shape[1:]) > most:  # what grows is cut
            value = dg.slice_(value.reshape(rows, -1), [0, 0], [None, most])
        values.append(value)
    return b.graph(last=values[-1], other=values[-2], shown=values[int(rng.integers(len(values)))])


def float_type(seed: int) -> str:
    """Every third graph computes in fp64."""
    return "f32" if seed % 3 else "f64"


def shapes(seed: int) -> dict[str, tuple[int, int]]:
    """The inputs, and the shapes of their rows: every fourth graph has longer ones than runs and tiles of kernels."""
    return {"x": (3, 4), "y": (3, 4), "z": (4, 4)} if seed % 4 else {"x": (9, 70), "y": (9, 70), "z": (70, 70)}


def _row_op(
    rng: np.random.Generator, b: dg.Builder, x: dg.Tensor, values: list[dg.Tensor], words: tuple[dg.Tensor, dg.Tensor]
) -> dg.Tensor:
    """One op of x that leaves rows alone; which one, does not depend on how many rows there are."""

    def choose(among: Any) -> Any:
        return among[int(rng.integers(len(among)))]

    def param(*shape: int) -> dg.Tensor:
        return b.param(f"p{len(b.nodes)}", rng.standard_normal(shape).astype(x.dtype.numpy))

    def spread(v: dg.Tensor) -> dg.Tensor:
        """A value of as many axes, of which some have the length 1."""
        gone = [axis for axis in axes if rng.integers(2)] or [last]
        return choose(REDUCTIONS)(v, tuple(gone), keepdims=True)

    rows, trailing, width = x.shape[0], x.shape[1:], x.shape[-1]
    alike = [x, *(v for v in values if v.shape[1:] == trailing)]
    axes, last = range(1, len(x.shape)), len(x.shape) - 1
    order = (0, *reversed(axes))
    options: list[Callable[[], dg.Tensor]] = [
        lambda: choose(UNARY)(x),
        lambda: choose(BINARY)(x, choose(alike)),
        lambda: choose(BINARY)(choose(UNARY)(x), param(width)),
        lambda: dg.where(dg.less(x, choose(alike)), x * 0.5, choose(alike)),
        lambda: choose(REDUCTIONS)(x, int(choose(axes))) * 2.0,
        lambda: choose(REDUCTIONS)(x * x, last, keepdims=True) + x,
        lambda: choose(BINARY)(spread(x), choose(UNARY)(choose(alike))),
        lambda: choose(BINARY)(choose(UNARY)(choose(alike)), spread(x)),
        lambda: choose(REDUCTIONS)(x, tuple(axes)[-2:]) + 0.5,
        lambda: choose(BINARY)(choose(REDUCTIONS)(x, last), param(*trailing[:-1]) if len(trailing) > 1 else 1.5),
        lambda: choose(BINARY)(param(*trailing), choose(REDUCTIONS)(x, 1, keepdims=True)),
        lambda: dg.softmax(x - 1.0) * choose(alike),
        lambda: dg.log_softmax(x),
        lambda: dg.unit(x),
        lambda: dg.layer_norm(x, param(width), param(width)),
        lambda: dg.rms_norm(x, param(width)),
        lambda: x.transpose(*order),
        lambda: x.transpose(*order).reshape(rows, -1).reshape(*x.shape),
        lambda: dg.slice_(x, [0, trailing[0] - 1], [None, None], [1, -1]),
        lambda: choose(UNARY)(dg.slice_(x, [0] * (last + 1), [None] * (last + 1), [1] * last + [2])),
        lambda: dg.expand(spread(x), x.shape) * choose(alike),
        lambda: dg.cast(dg.cast(x * 3.0, choose(("i32", "u32", "f16", "bf16", "bool", "i8"))), x.dtype.name) - x,
        lambda: dg.cast(dg.greater_equal(dg.cast(x, "i32"), dg.cast(choose(alike), "i32")), x.dtype.name) + x,
        lambda: dg.concat([x, choose(alike)], last),
        lambda: dg.relu(x @ param(width, 5) + param(5)),
        lambda: choose(BINARY)(param(5), choose(UNARY)(choose(BINARY)(x @ param(5, width).transpose(), param(5)))),
        lambda: dg.tanh(dg.gather(param(6, 3), words[1])),
        lambda: dg.cast(dg.random_normal(words[0], trailing, stream=len(b.nodes)), x.dtype.name) * x,
    ]
    if len(x.shape) == 3:
        options += [
            lambda: x @ choose(alike).transpose(*order),
            lambda: choose(BINARY)(choose(alike) @ param(width, width), x.transpose(0, 2, 1).reshape(*x.shape)),
            lambda: choose(BINARY)(x @ param(width, trailing[0]), param(trailing[0], 1)),
            lambda: dg.attention(x, x, choose(alike), scale=0.5, causal=bool(rng.integers(2))),
            lambda: dg.softmax((x @ x.transpose(*order)) * 0.25) @ choose(alike),
            lambda: _cells(x, param),
            lambda: dg.selective_scan(x, dg.softplus(x), param(width), x, choose(alike))[0],
            lambda: _delta_rule(x),
        ]
    return choose(options)()


def _cells(x: dg.Tensor, param: Callable[..., dg.Tensor]) -> dg.Tensor:
    states, _ = dg.gru(x.transpose(1, 0, 2), param(1, 6, x.shape[2]), param(1, 6, 2), param(1, 12))
    return states.reshape(x.shape[1], x.shape[0], 2).transpose(1, 0, 2)


def _delta_rule(x: dg.Tensor) -> dg.Tensor:
    keys = dg.unit(x).reshape(*x.shape[:2], 1, x.shape[2])
    return dg.gated_delta(keys, keys, x, -dg.softplus(x), dg.sigmoid(x))[0]


def row_inputs(seed: int, rows: int, distribution: str = "adversarial", item: int = 1) -> dict[str, HostArray]:
    rng = np.random.default_rng([seed, item])
    fill, kind = DISTRIBUTIONS[distribution], DTYPES[float_type(seed)]
    floats = {n: fill(rng, rows * math.prod(shape), kind).reshape(rows, *shape) for n, shape in shapes(seed).items()}
    words = rng.integers(0, 1 << 32, (rows, 4), dtype=np.uint32)
    return {**floats, "rng": words, "index": rng.integers(0, 8, rows, dtype=np.uint32)}


def rewritten(graph: dg.Graph, inputs: dict[str, HostArray]) -> Bits:
    """The bits that every run has to give."""
    return bits(dg.evaluate(dg.run_passes(graph, after="rewrite"), inputs))


def bits(results: dict[str, HostArray]) -> Bits:
    return {title: array.tobytes() for title, array in results.items()}


def among_others(inputs: dict[str, HostArray], rows: int, place: int) -> dict[str, HostArray]:
    """One row among others: floats of NaN, and indices past all ends."""
    batch: dict[str, HostArray] = {}
    for name, array in inputs.items():
        padding: Any = np.nan if array.dtype.kind == "f" else 2**32 - 1
        batch[name] = np.full((rows, *array.shape[1:]), padding, array.dtype)
        batch[name][place] = array[0]
    return batch


def calls(pipeline: dg.CompiledPipeline, inputs: dict[str, HostArray]) -> Iterator[tuple[str, dict[str, HostArray]]]:
    """What each call of a pipeline makes of inputs, by its name."""
    yield "dispatch", (expected := pipeline.dispatch(inputs))

    def empty() -> dict[str, HostArray]:
        return {title: np.empty_like(array) for title, array in expected.items()}

    pipeline.dispatch_into(inputs, into := empty())
    yield "dispatch_into", into
    yield "dispatch_timed", pipeline.dispatch_timed(inputs)[0]
    for results in pipeline.dispatch_batched([inputs] * 3):
        yield "dispatch_batched", results
    pipeline.dispatch_batched_into([inputs] * 2, into_batch := [empty(), empty()])
    yield from (("dispatch_batched_into", results) for results in into_batch)
    yield "dispatch_resident, no handles", pipeline.dispatch_resident(inputs)
    handles = {name: pipeline.bind(name, inputs[name]) for name in ("x", "index")}
    others: Any = {name: inputs[name] for name in inputs if name not in handles}
    yield "dispatch_resident", pipeline.dispatch_resident(others)
    pipeline.dispatch_resident_into({**others, **handles}, into := empty())
    yield "dispatch_resident_into", into
    outputs = pipeline.dispatch_resident_outputs(others)
    yield "dispatch_resident_outputs", {handle.name: pipeline.read(handle) for handle in outputs}
    yield from (("dispatch_resident_batched", r) for r in pipeline.dispatch_resident_batched([others, inputs]))
    pipeline.dispatch_resident_batched_into([others] * 2, into_batch := [empty(), empty()])
    yield from (("dispatch_resident_batched_into", results) for results in into_batch)
    with pipeline.clone() as other:
        yield "clone", other.dispatch_resident(others)


def check_every_call(seed: int, distribution: str, device: Device) -> None:
    """Every call of the fused and the unfused pipeline gives the bits of the definition, from threads too."""
    graph = row_graph(seed, 3)
    batch = [row_inputs(seed, 3, distribution, item) for item in range(4)]
    expected = [rewritten(graph, inputs) for inputs in batch]
    for passes in (dg.PASSES, dg.UNFUSED):
        with dg.compile(graph, device, passes=passes, slots=2) as pipeline, ThreadPoolExecutor(4) as pool:
            pipeline.check()
            for call, results in calls(pipeline, batch[0]):
                assert bits(results) == expected[0], (call, len(passes))
            assert [bits(r) for r in pool.map(pipeline.dispatch, batch)] == expected


def check_rows(seed: int, rows: int, distribution: str) -> None:
    """A row has the bits that it has alone, wherever it stands among rows of NaN."""
    inputs = row_inputs(seed, 1, distribution)
    alone, place = rewritten(row_graph(seed, 1), inputs), seed % rows
    graph = dg.run_passes(row_graph(seed, rows), after="rewrite")
    for title, array in dg.evaluate(graph, among_others(inputs, rows, place)).items():
        assert array[place].tobytes() == alone[title], title


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_call_gives_the_bits_of_the_definition(distribution: str, device: Device) -> None:
    check_every_call(len(distribution), distribution, device)


@pytest.mark.long
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@given(seed=SEEDS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_call_gives_the_bits_of_the_definition_for_many_graphs(
    distribution: str, device: Device, seed: int
) -> None:
    check_every_call(seed, distribution, device)


@given(seed=SEEDS, rows=st.sampled_from([3, 8, 32]), distribution=st.sampled_from([*DISTRIBUTIONS]))
@settings(max_examples=25)
def test_a_row_has_the_same_bits_alone_and_among_rows_of_nan(seed: int, rows: int, distribution: str) -> None:
    check_rows(seed, rows, distribution)


@pytest.mark.long
@given(seed=SEEDS, rows=st.sampled_from([3, 8, 32, 65]), distribution=st.sampled_from([*DISTRIBUTIONS]))
@settings(max_examples=1000)
def test_rows_of_many_graphs_are_alone(seed: int, rows: int, distribution: str) -> None:
    check_rows(seed, rows, distribution)


@given(seed=SEEDS, rows=st.sampled_from([3, 8, 32]))
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_are_alone_on_devices_too(seed: int, rows: int, device: Device) -> None:
    inputs, place = row_inputs(seed, 1), seed % rows
    alone = rewritten(row_graph(seed, 1), inputs)
    with dg.compile(row_graph(seed, rows), device) as pipeline:
        for title, array in pipeline.dispatch(among_others(inputs, rows, place)).items():
            assert array[place].tobytes() == alone[title], title


def recorded(device: Device, graph: dg.Graph, passes: Any = dg.PASSES) -> list[Program]:
    """The programs that a pipeline of the graph records, not closed yet."""
    programs: list[Program] = []

    def note(program: Program) -> Program:
        programs.append(program)
        return program

    device.watcher = note
    try:
        dg.compile(graph, device, passes=passes)
    finally:
        device.watcher = None
    return programs


@given(seed=SEEDS)
@settings(max_examples=6)
def test_each_placed_barrier_is_needed_and_they_suffice(seed: int) -> None:
    with open_device("null") as null:
        for passes in (dg.PASSES, dg.UNFUSED):
            for program in recorded(null, row_graph(seed, 3), passes):
                with program:
                    program.check()
                    for batch in program.schedule():
                        _require_each_barrier(batch)


def _require_each_barrier(batch: Batch) -> None:
    """A batch without any one of its barriers is caught."""
    for place, kind in enumerate(batch.barriers):
        if kind:
            dropped = [*batch.barriers[:place], 0, *batch.barriers[place + 1 :]]
            with pytest.raises(HazardError, match="Fix: "):
                Batch(batch.commands, dropped, batch.names).check()


def test_the_null_device_records_every_graph_and_computes_none() -> None:
    with open_device("null") as null:
        for seed in range(2):
            with dg.compile(row_graph(seed, 3), null) as pipeline:
                assert pipeline.report().dispatches > 0
                with pytest.raises(NoResultError):
                    pipeline.dispatch(row_inputs(seed, 3))


def chains(count: int, length: int = 4) -> dg.Graph:
    """Independent chains of steps that are not fused, each over an input of its own."""
    b = dg.Builder("chains")
    results: dict[str, dg.Tensor] = {}
    for k in range(count):
        x = b.input(f"x{k}", (32, 8))
        for _ in range(length):
            x = dg.softmax(x @ b.param(f"w{len(b.nodes)}", np.eye(8, dtype=np.float32)))
        results[f"y{k}"] = x
    return b.graph(**results)


def test_independent_chains_of_one_arena_share_their_barriers() -> None:
    with open_device("null") as null, dg.compile(chains(1), null) as alone, dg.compile(chains(3), null) as three:
        assert three.report().barriers == alone.report().barriers
        assert three.report().dispatches == 3 * alone.report().dispatches
        assert three.report().longest_chain == alone.report().longest_chain
        three.check()


@pytest.mark.parametrize("axes", [0, 1, (0, 1), (0, 2)])
def test_the_tail_of_a_reduction_stretches_a_vector_along_the_axes_that_are_left(axes: Any, device: Device) -> None:
    b = dg.Builder("cube")
    x, v = b.input("x", (4, 4, 4, 4)), b.input("v", (4,))
    graph = b.graph(y=dg.tanh(dg.sum_(x, axes) * v) + v)
    inputs = {"x": np.arange(256, dtype=np.float32).reshape(4, 4, 4, 4) / 1e4, "v": np.arange(4, dtype=np.float32)}
    with dg.compile(graph, device) as pipeline:
        assert pipeline.report().kernels == {"sum": 1}
        assert bits(pipeline.dispatch(inputs)) == bits(dg.evaluate(graph, inputs))


def test_the_tail_of_a_product_reads_its_arrays_by_name_whatever_their_order_in_the_formula(device: Device) -> None:
    b = dg.Builder("order")
    x, q, r, v = b.input("x", (3, 4)), b.input("q", (3, 4)), b.input("r", (3, 4)), b.input("v", (4,))
    graph = b.graph(y=r * (q - dg.relu(x @ b.param("w", np.eye(4, dtype=np.float32)) + v)))
    inputs = {n.name: np.random.default_rng(k).random(n.shape, np.float32) for k, n in enumerate(graph.of("input"))}
    with dg.compile(graph, device) as pipeline:
        assert pipeline.report().kernels == {"product": 1}
        assert bits(pipeline.dispatch(inputs)) == bits(dg.evaluate(graph, inputs))


def test_the_tail_of_a_product_may_read_what_the_product_reads(device: Device) -> None:
    b = dg.Builder("again")
    x = b.input("x", (4, 4))
    graph = b.graph(y=(x @ b.param("w", np.eye(4, dtype=np.float32)) - x.transpose()) * x, z=x @ x + x)
    inputs = {"x": np.random.default_rng(1).random((4, 4), np.float32)}
    with dg.compile(graph, device) as pipeline:
        assert pipeline.report().kernels == {"product": 2}
        assert bits(pipeline.dispatch(inputs)) == bits(dg.evaluate(graph, inputs))


def test_the_tail_of_a_convolution_reads_its_arrays_by_name_too(device: Device) -> None:
    rng = np.random.default_rng(3)
    b = dg.Builder("pictures")
    x, q, s = b.input("x", (2, 8, 32, 32)), b.input("q", (2, 3, 32, 32)), b.input("s", (2, 3, 32, 32))
    w, v = (b.param(n, rng.random(shape, np.float32)) for n, shape in (("w", (3, 8, 3, 3)), ("v", (3, 1, 1))))
    graph = b.graph(y=q * (s - dg.relu(dg.conv(x, w, padding=1) + v)))
    inputs = {n.name: rng.random(n.shape, np.float32) for n in graph.of("input")}
    with dg.compile(graph, device) as pipeline:
        assert pipeline.report().kernels["windows"] == 1
        assert bits(pipeline.dispatch(inputs)) == bits(dg.evaluate(graph, inputs))
