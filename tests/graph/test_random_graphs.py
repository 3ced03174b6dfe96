"""The central claim: whatever devices, and passes behind `rewrite`, do with a graph, its bits are those of the
uncompiled run of the graph after `rewrite`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashi import graph as dg
from dashi.graph.pass_order import PASSES
from dashi.runtime.device import Device
from dashi.types import HostArray

AWKWARD = [0.0, -0.0, 1.0, -1.5, 2.0**-101, -(2.0**-102), 2.0**-126, 1e-45, 3e38, np.inf, -np.inf, np.nan]
UNARY = (
    dg.tanh, dg.relu, dg.exp, dg.sqrt, dg.square, dg.erf, dg.gelu, dg.sigmoid, dg.floor, dg.absolute, dg.silu, dg.mish,
    dg.elu, dg.gelu_tanh, dg.hard_swish, dg.leaky_relu, dg.tan, dg.stop_gradient,
)  # fmt: skip
REDUCTIONS = (
    dg.sum_, dg.mean, dg.max_, dg.min_, dg.prod, dg.norm, dg.absolute_sum, dg.square_sum, dg.logsumexp,
)  # fmt: skip
BINARY = (
    dg.maximum, dg.minimum, lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, dg.mod,
    dg.truncated_mod, lambda x, y: dg.fma(x, y, y),
)  # fmt: skip


def random_graph(seed: int, steps: int = 7) -> dg.Graph:
    """A graph of so many random ops on matrices of 3 x 4 and what becomes of them."""
    rng = np.random.default_rng(seed)
    b = dg.Builder("random")
    values = [b.input("x", (3, 4)), b.input("y", (3, 4)), b.param("w", random_values((4, 4), rng))]
    rows = b.input("rows", (3,), "u32")
    for _ in range(steps):
        x = values[int(rng.integers(len(values)))]
        x = x if x.shape else x.reshape(1)
        values.append(_random_op(rng, b, x, values, rows))
    return b.graph(last=values[-1], other=values[-2], shown=values[int(rng.integers(len(values)))])


def _random_op(rng: np.random.Generator, b: dg.Builder, x: dg.Tensor, values: list[dg.Tensor], rows: Any) -> Any:
    """One op of x: a function of its elements, a movement, a product, or something over rows."""

    def choose(among: Any) -> Any:
        return among[int(rng.integers(len(among)))]

    alike = [x, *(v for v in values if v.shape == x.shape)]
    fits = [v for v in values if len(v.shape) == 2 and len(x.shape) == 2 and v.shape[0] == x.shape[1]]
    last = len(x.shape) - 1
    options: list[Callable[[], Any]] = [
        lambda: choose(UNARY)(x),
        lambda: choose(UNARY)(x),
        lambda: choose(BINARY)(x, choose(alike)),
        lambda: choose(BINARY)(x, choose(alike)),
        lambda: dg.where(dg.less(x, choose(alike)), x * 0.5, choose(alike)),
        lambda: dg.cast(dg.greater(x, 0.0), "f32") + x,
        x.transpose,
        lambda: x.reshape(-1).reshape(*reversed(x.shape)),
        lambda: choose(REDUCTIONS)(x, int(rng.integers(len(x.shape)))) * 2.0,
        lambda: choose(REDUCTIONS)(x * x, last, keepdims=True) + x,
        lambda: dg.softmax(x - 1.0) * choose(alike),
        lambda: dg.unit(x),
        lambda: dg.layer_norm(x, b.constant(np.arange(x.shape[-1]), "f32"), b.constant(np.ones(x.shape[-1]), "f32")),
        lambda: dg.slice_(x, [x.shape[0] - 1], [None], [-1]),
        lambda: dg.where(dg.logical_xor(dg.less(x, 1.0), dg.is_nan(choose(alike))), x, choose(alike)),
        lambda: _index_op(choose, x, choose(alike)),
        lambda: _index_op(choose, x, choose(alike)),
    ]
    if len(x.shape) == 2:
        options += [lambda: dg.gather(x, rows), lambda: dg.concat([x, x.transpose().reshape(*x.shape)], 1)]
        options += [lambda: dg.attention(x, x, choose(alike), scale=0.5)]
        options += [lambda: _by_parts(x, x, choose(alike)), lambda: _by_parts(x.reshape(1, *x.shape), x, choose(alike))]
        pair = (2, 1, *x.shape)
        options += [lambda: _stretched_parts(x, dg.concat([x, choose(alike)]).reshape(*pair))]
    if fits:
        options += [lambda: x @ choose(fits), lambda: dg.relu(x @ choose(fits) + 0.25) * 3.0]
        options += [lambda: x.reshape(1, *x.shape) @ choose(fits)]
    return choose(options)()


def _index_op(choose: Any, x: dg.Tensor, y: dg.Tensor) -> dg.Tensor:
    """One op of index, order or shape; the size stays small."""
    axis = choose(range(len(x.shape)))
    index = x.builder.constant(np.array([-1, 0, -1][: x.shape[axis]]))
    first = dg.split(x, [1, x.shape[axis] - 1], axis)[0]
    options: list[Callable[[], Any]] = [
        lambda: dg.gather(x, index, axis),
        lambda: dg.gather_elements(x, dg.argsort(y, axis), axis),
        lambda: dg.scatter_elements(x, dg.argsort(y, axis, descending=True), y, axis, choose(("none", "add"))),
        lambda: dg.scatter_add(x, index, dg.gather(y, index, axis), axis),
        lambda: dg.scatter_nd(x, x.builder.constant([[0]]), dg.narrow(y, 0, 0, 1), choose(("mul", "min", "max"))),
        lambda: dg.gather_nd(x, x.builder.constant([[0], [-1]])),
        lambda: dg.pad(first, [(1, 1)] * len(x.shape), "edge"),
        lambda: dg.pad(first, [(0, 1)] * len(x.shape), value=2.5),
        lambda: dg.tile(first, [2] * len(x.shape)),
        lambda: dg.reverse(x, axis),
        lambda: dg.cumsum(x, axis, exclusive=choose((False, True)), reverse=choose((False, True))),
        lambda: dg.cumprod(x, axis),
        lambda: dg.top_k(x, min(2, x.shape[axis]), axis, largest=choose((False, True)))[0],
        lambda: dg.one_hot(dg.argmax(x, axis, last=choose((False, True))), 3),
        lambda: dg.softmax(x, axis) - dg.log_softmax(y, axis),
        lambda: dg.lower_triangle(x @ y.transpose() if len(x.shape) == 2 else x.reshape(1, -1)),
    ]
    return choose(options)()


def _by_parts(q: dg.Tensor, k: dg.Tensor, v: dg.Tensor) -> dg.Tensor:
    """Attention as two products with a softmax between them, which `rewrite` may find."""
    order = (*range(len(k.shape) - 2), len(k.shape) - 1, len(k.shape) - 2)
    return dg.softmax((q @ k.transpose(*order)) * 0.5) @ v


def _stretched_parts(x: dg.Tensor, pair: dg.Tensor) -> dg.Tensor:
    """Attention of 1 x 2 batches of queries over 2 x 1 batches of keys, as one matrix."""
    batch, _, rows, columns = pair.shape
    return _by_parts(pair.reshape(1, batch, rows, columns), pair, pair * x).reshape(-1, columns)


def random_values(shape: tuple[int, ...], rng: np.random.Generator) -> HostArray:
    values = rng.standard_normal(shape).astype(np.float32)
    chosen = rng.random(shape) < 0.2
    values[chosen] = rng.choice(np.array(AWKWARD, np.float32), int(chosen.sum()))
    return values


def random_inputs(seed: int) -> dict[str, HostArray]:
    rng = np.random.default_rng(seed + 1)
    rows = np.array([0, 2, 2**32 - 1], np.uint32)
    return {"x": random_values((3, 4), rng), "y": random_values((3, 4), rng), "rows": rows}


def same_bits(first: dict[str, HostArray], second: dict[str, HostArray]) -> bool:
    return first.keys() == second.keys() and all(first[k].tobytes() == second[k].tobytes() for k in first)


SEEDS = st.integers(0, 2**16)


@given(seed=SEEDS)
@settings(max_examples=20)
def test_no_pass_behind_rewrite_changes_a_bit(seed: int) -> None:
    graph, inputs = random_graph(seed), random_inputs(seed)
    expected = dg.evaluate(dg.run_passes(graph, after="rewrite"), inputs)
    for step in PASSES:
        lowered = dg.run_passes(graph, after=step.name)
        assert same_bits(dg.evaluate(lowered, inputs), expected), step.name
        assert dg.parse_graph(str(lowered)) == lowered, step.name


@given(seed=SEEDS)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_devices_give_the_bits_of_the_uncompiled_run_fused_or_not(seed: int, device: Device) -> None:
    graph, inputs = random_graph(seed), random_inputs(seed)
    expected = dg.evaluate(dg.run_passes(graph, after="rewrite"), inputs)
    for passes in (dg.PASSES, dg.UNFUSED):
        with dg.compile(graph, device, passes=passes) as pipeline:
            pipeline.check()
            assert same_bits(pipeline.dispatch(inputs), expected)
            assert all(same_bits(r, expected) for r in pipeline.dispatch_batched([inputs] * 6))


@pytest.mark.parametrize("rows", [3, 8, 32])
def test_a_row_has_the_same_bits_in_every_batch(rows: int, device: Device) -> None:
    row = random_inputs(3)["x"][:1].copy()
    with dg.compile(_rows_alone(1), device) as alone, dg.compile(_rows_alone(rows), device) as many:
        batch = np.full((rows, 4), np.nan, np.float32)
        batch[rows // 2] = row
        expected = alone.dispatch({"x": row})["y"]
        assert many.dispatch({"x": batch})["y"][rows // 2].tobytes() == expected[0].tobytes()


def _rows_alone(rows: int) -> dg.Graph:
    b = dg.Builder("rows")
    x = b.input("x", (rows, 4))
    w = b.param("w", random_inputs(5)["x"].transpose().copy())
    return b.graph(y=dg.softmax(dg.tanh(x @ w)) - dg.mean(x, 1, keepdims=True))
