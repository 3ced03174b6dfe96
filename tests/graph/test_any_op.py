"""Single ops of random shapes and types, empty ones too: what the builder takes, every device computes, with the bits
of its definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.runtime import open_device
from dashi.runtime.device import Device
from dashi.types import HostArray

LENGTHS = (0, 1, 1, 2, 3, 4, 5, 7, 65)
TYPES = ("f32", "f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool")
FLOATS = ("f32", "f64", "f16")
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 0.5, -2.5)
Values = list[dg.Tensor]


class Random:
    """Random choices, and a builder with inputs of random shapes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = dg.Builder("any")

    def choose(self, among: Any) -> Any:
        return among[int(self.rng.integers(len(among)))]

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        lengths = [self.choose(LENGTHS) for _ in range(self.number(low, high))]
        while np.prod([max(1, n) for n in lengths]) > 20000:
            lengths[lengths.index(max(lengths))] = 2
        return tuple(lengths)

    def stretched(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that stretches to another one."""
        return tuple(1 if self.number(0, 3) == 0 else n for n in shape[self.number(0, len(shape)) :])

    def axis(self, x: dg.Tensor) -> int:
        return self.number(-len(x.shape), len(x.shape) - 1)

    def input(self, shape: tuple[int, ...], kind: str = "") -> dg.Tensor:
        return self.builder.input(f"x{len(self.builder.nodes)}", shape, kind or self.choose(TYPES))

    def floats(self, low: int = 1, high: int = 4) -> dg.Tensor:
        return self.input(self.shape(low, high), self.choose(FLOATS))

    def values(self, node: dg.Node) -> HostArray:
        kind = node.dtype
        if kind.name == "bool":
            return self.rng.integers(0, 2, node.shape).astype(np.bool_)
        if not kind.is_float:
            words = self.rng.integers(0, 1 << 63, node.shape, dtype=np.uint64) >> np.uint64(self.choose((0, 60)))
            return np.asarray(words).astype(kind.numpy)
        values = np.asarray(self.rng.standard_normal(node.shape)).astype(kind.numpy)
        chosen = self.rng.random(node.shape) < 0.2 * self.number(0, 1)
        special = np.array(SPECIAL).astype(kind.numpy)[self.rng.integers(0, len(SPECIAL), node.shape)]
        return np.where(chosen, special, values)


def unary(r: Random) -> Values:
    names = "absolute relu sign exp log rsqrt sigmoid softplus tanh erf floor round_ elu gelu silu logical_not is_nan"
    return [getattr(dg, r.choose(names.split()))(r.input(r.shape(0, 6)))]


def binary(r: Random) -> Values:
    names = "maximum power mod divide truncated_mod logical_xor bit_and shift_left shift_right equal less"
    shape, kind = r.shape(), r.choose(TYPES)
    x, y = (r.input(r.stretched(shape), kind) for _ in range(2))
    return [getattr(dg, r.choose(names.split()))(x, y)]


def selection(r: Random) -> Values:
    shape, kind = r.shape(), r.choose(TYPES)
    return [dg.where(r.input(r.stretched(shape), "bool"), *(r.input(r.stretched(shape), kind) for _ in range(2)))]


def reduction(r: Random) -> Values:
    names, x = "sum_ mean max_ min_ prod norm absolute_sum square_sum logsumexp", r.input(r.shape(1))
    axes = [axis for axis in range(len(x.shape)) if r.number(0, 1)] or [0]
    return [getattr(dg, r.choose(names.split()))(x, axes, bool(r.number(0, 1)))]


def row_map(r: Random) -> Values:
    x = r.floats()
    gamma, beta = (r.input(x.shape[-1:], x.dtype.name) for _ in range(2))
    return [r.choose((
        lambda: dg.softmax(x, r.axis(x)), lambda: dg.log_softmax(x, r.axis(x)), lambda: dg.unit(x),
        lambda: dg.layer_norm(x, gamma, beta), lambda: dg.rms_norm(x, gamma, beta),
    ))()]  # fmt: skip


def channel_norm(r: Random) -> Values:
    x = r.floats(2)
    gamma, beta, mean, variance = (r.input(x.shape[1:2], x.dtype.name) for _ in range(4))
    return [r.choose((
        lambda: dg.group_norm(x, gamma, beta, r.number(1, 3)), lambda: dg.instance_norm(x, gamma, beta),
        lambda: dg.layer_norm_2d(x, gamma, beta), lambda: dg.batch_norm(x, mean, variance, gamma, beta),
    ))()]  # fmt: skip


def order(r: Random) -> Values:
    x = r.input(r.shape(1))
    axis = r.axis(x)
    name = r.choose(("cumsum", "cumprod", "argmax", "argmin", "sort", "argsort", "top_k"))
    more = (r.number(0, x.shape[axis]),) if name == "top_k" else ()
    results = getattr(dg, name)(x, *more, axis)
    return list(results) if more else [results]


def picked(r: Random) -> Values:
    x, kind = r.input(r.shape(1, 3)), r.choose(("i32", "u32", "i64", "u8"))
    smaller = tuple(r.number(0, n) for n in x.shape)
    return [r.choose((
        lambda: dg.gather(x, r.input(r.shape(0, 3), kind), r.axis(x)),
        lambda: dg.gather_elements(x, r.input(smaller, kind), r.axis(x)),
        lambda: dg.gather_nd(x, r.input((*r.shape(0, 2), r.number(0, len(x.shape))), kind)),
    ))()]  # fmt: skip


def scattered(r: Random) -> Values:
    x, kind, join = r.input(r.shape(1, 3)), r.choose(("i32", "u32")), r.choose(("none", "add", "mul", "min", "max"))
    smaller, width, rows = tuple(r.number(0, n) for n in x.shape), r.number(0, len(x.shape)), r.choose(LENGTHS)
    own = x.dtype.name
    return [r.choose((
        lambda: dg.scatter_elements(x, r.input(smaller, kind), r.input(smaller, own), r.axis(x), join),
        lambda: dg.scatter_nd(x, r.input((rows, width), kind), r.input((rows, *x.shape[width:]), own), join),
        lambda: dg.scatter_add(x, r.input((rows,), kind), r.input((rows, *x.shape[1:]), own)),
    ))()]  # fmt: skip


def moved(r: Random) -> Values:
    x = r.input(r.shape(1))
    rank = range(len(x.shape))
    steps = [r.choose((-3, -2, -1, 1, 2, 3)) for _ in rank]
    starts, stops = ([r.choose((None, r.number(-9, 9))) for _ in rank] for _ in range(2))
    return r.choose((
        lambda: [dg.slice_(x, [start or 0 for start in starts], stops, steps)],
        lambda: [dg.reverse(x, [axis for axis in rank if r.number(0, 1)])],
        lambda: [dg.tile(x, [r.number(0, 3) for _ in rank])],
        lambda: [dg.pad(x, [(r.number(-1, 3), 1) for _ in rank], r.choose(("constant", "reflect", "edge")))],
        lambda: [dg.expand(x, (2, *x.shape)), x.transpose(), x.reshape(-1)],
        lambda: dg.split(x, r.number(1, 4), r.axis(x)),
        lambda: [dg.concat([x, dg.narrow(x, 0, 0, x.shape[0] // 2), x], 0)],
        lambda: [dg.cast(x, r.choose(TYPES))],
    ))()  # fmt: skip


def product(r: Random) -> Values:
    shape, kind = r.shape(0, 2), r.choose(("f32", "f64"))
    m, k, n = (r.choose(LENGTHS) for _ in range(3))
    y = r.input((*r.stretched(shape), m, k), kind) @ r.input((*r.stretched(shape), k, n), kind)
    return [dg.relu(y + r.input(r.stretched(y.shape), kind)) if r.number(0, 1) else y]


def windows(r: Random) -> Values:
    axes, kind, groups = r.number(1, 3), r.choose(("f32", "f64")), r.choose((1, 1, 2))
    lengths, taps = [r.choose((0, 1, 4, 9)) for _ in range(axes)], [r.number(0, 3) for _ in range(axes)]
    x = r.input((r.number(0, 2), groups * r.number(0, 2), *lengths), kind)
    w = r.input((groups * r.number(0, 2), x.shape[1] // groups, *taps), kind)
    stride, pad = r.number(1, 3), r.number(0, 1)
    return [r.choose((
        lambda: dg.conv(x, w, stride=stride, dilation=r.number(1, 2), groups=groups, padding=pad),
        lambda: dg.max_pool(x, taps, stride=stride, padding=pad),
        lambda: dg.average_pool(x, taps, stride=stride, padding=pad),
        lambda: dg.resize(x, [*x.shape[:2], *(r.number(0, 6) for _ in taps)], mode=r.choose(("nearest", "linear"))),
    ))()]  # fmt: skip


def attention(r: Random) -> Values:
    batch, heads, kind = r.number(0, 2), r.number(1, 2), r.choose(("f32", "f64"))
    queries, keys, depth = r.choose((0, 1, 3, 70)), r.choose((0, 1, 5, 130)), r.choose((1, 3, 8))
    more: dict[str, Any] = {"causal": bool(r.number(0, 1)), "window": r.choose((0, 3))}
    if r.number(0, 1):
        more["mask"] = r.input((batch, keys), "bool")
    if r.number(0, 1):
        more["bias"] = r.input((1, heads, queries, 1), kind)
    if r.number(0, 1):
        more["lengths"] = r.input((batch,), "u32")
    q = r.input((batch, heads, queries, depth), kind)
    return [dg.attention(q, *(r.input((batch, 1, keys, depth), kind) for _ in range(2)), **more)]


def sequence(r: Random) -> Values:
    kind = r.choose(("f32", "f64"))
    steps, batch, width, units, directions = (*(r.number(0, 4) for _ in range(4)), r.number(1, 2))
    cell, gates = r.choose((("lstm", 4), ("gru", 3), ("rnn", 1)))
    x, w = r.input((steps, batch, width), kind), r.input((directions, gates * units, width), kind)
    direction = ("forward", "bidirectional")[directions - 1]
    options = dg.CellOptions(direction=direction)
    return list(getattr(dg, cell)(x, w, r.input((directions, gates * units, units), kind), options=options))


def packed(r: Random) -> Values:
    form, length, size = r.choose((("Q8_0", 32, 34), ("Q4_K", 256, 144), ("F16", 1, 2), ("Q2_K", 256, 84)))
    n, k = r.number(0, 5), length * r.number(0, 2)
    data = r.rng.integers(0, 256, n * k // length * size, dtype=np.uint8)
    w = r.builder.packed_param("w", form, (n, k), data)
    return [r.choose((
        lambda: r.input((r.choose(LENGTHS), k), "f32") @ w.transpose(),
        lambda: dg.gather(w, r.input(r.shape(0, 2), "u32")),
        lambda: w * 2.0,
    ))()]  # fmt: skip


FAMILIES: tuple[Callable[[Random], Values], ...] = (
    unary, binary, selection, reduction, row_map, channel_norm, order, picked, scattered, moved, product, windows,
    attention, sequence, packed,
)  # fmt: skip


def check_any(seed: int, device: Device) -> bool:
    """Whether there is such an op; then its bits are those of the definition."""
    r = Random(seed)
    try:
        values = FAMILIES[seed % len(FAMILIES)](r)
    except GraphError:
        return False
    graph = r.builder.graph(**{f"y{k}": value for k, value in enumerate(values)})
    inputs = {node.name: r.values(node) for node in graph.of("input")}
    expected = dg.evaluate(graph, inputs)
    assert dg.parse_graph(str(graph)) == graph
    with dg.compile(graph, device, cache=False) as pipeline:
        pipeline.check()
        results = pipeline.dispatch(inputs)
    for title, array in expected.items():
        assert (results[title].shape, results[title].dtype) == (array.shape, array.dtype), (seed, str(graph))
        assert results[title].tobytes() == array.tobytes(), (seed, str(graph))
    return True


def test_single_ops_of_odd_shapes_have_the_bits_of_their_definitions() -> None:
    with open_device("cpu") as cpu:
        assert sum(check_any(seed, cpu) for seed in range(150)) > 90


def test_single_ops_of_odd_shapes_have_these_bits_on_a_vulkan_device(vulkan: Device) -> None:
    assert sum(check_any(seed, vulkan) for seed in range(1000, 1015)) > 8


@pytest.mark.long
@pytest.mark.parametrize("first", [10_000, 20_000])
def test_many_single_ops_of_odd_shapes(first: int, vulkan: Device) -> None:
    with open_device("cpu") as cpu:
        for seed in range(first, first + 600):
            check_any(seed, cpu)
    for seed in range(first, first + 60):
        check_any(seed, vulkan)


def empty_ops(b: dg.Builder) -> Values:
    """Ops of nothing: no rows, no channels, no units, no blocks."""
    x, channels, rows = b.input("x", (2, 0, 5)), b.input("channels", (0,)), b.input("rows", (2, 3, 0, 4))
    keys, bias = b.input("keys", (2, 3, 7, 4)), b.input("bias", (1, 1, 1, 7))
    steps, weights, recurrent = b.input("steps", (3, 2, 4)), b.input("weights", (1, 0, 4)), b.input("units", (1, 0, 0))
    blocks = b.packed_param("blocks", "Q8_0", (3, 0), b"")
    none = b.packed_param("none", "Q4_K", (0, 256), b"")
    return [
        dg.batch_norm(x, channels, channels, channels, channels),
        dg.attention(rows, keys, keys, bias=bias),
        *dg.gru(steps, weights, recurrent),
        dg.gather(blocks, b.input("index", (2,), "u32")),
        b.input("m", (2, 256)) @ none.transpose(),
    ]


def test_ops_of_nothing_are_computed(device: Device) -> None:
    b = dg.Builder("nothing")
    graph = b.graph(**{f"y{k}": value for k, value in enumerate(empty_ops(b))})
    inputs = {node.name: np.zeros(node.shape, node.dtype.numpy) for node in graph.of("input")}
    expected = dg.evaluate(graph, inputs)
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch(inputs)
    assert {title: (array.shape, array.tobytes()) for title, array in results.items()} == {
        title: (array.shape, array.tobytes()) for title, array in expected.items()
    }


@pytest.mark.parametrize("rows", [1, 2, 4, 5])
def test_the_front_of_an_array_of_any_length_is_copied(device: Device, rows: int) -> None:
    """A part of a whole number of 16 bytes, from the front of an array that is none."""
    b = dg.Builder("front")
    x = b.input("x", (rows * 4 + 1, 3))
    graph = b.graph(y=dg.slice_(x, [0], [rows * 4]), z=dg.slice_(x, [0], [rows * 4]) * 2.0)
    values = np.arange(x.node.type.size, dtype=np.float32).reshape(x.shape)
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch({"x": values})
    assert results["y"].tolist() == values[:-1].tolist()
    assert results["z"].tolist() == (values[:-1] * 2).tolist()
