"""Ops of index, order and shape: NumPy's and ONNX's semantics, and the same bits on every device."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.runtime.device import Device
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

RNG = np.random.default_rng(11)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
X.reshape(-1)[:6] = 0.0, np.nan, np.inf, -np.inf, 2.0**-101, 1.0
TIES = np.array([[2, 1, 2, np.nan, 0, 2, -1], [np.nan, 3, 3, -np.inf, 5, np.nan, np.inf]], np.float32)
Index = np.ndarray[Any, np.dtype[np.int64]]

Case = tuple[Callable[..., dg.Tensor], tuple[HostArray, ...], HostArray]


def numpy_top(x: HostArray, k: int, largest: bool) -> Index:
    """Places in order along the last axis: stable, NaN last."""
    values: Any = np.asarray(x, np.float64)
    keys = np.where(np.isnan(values), np.inf, -values if largest else values)
    return np.lexsort((keys, np.isnan(values)), axis=-1)[..., :k]


JOINS: dict[Literal["add", "mul", "min", "max"], Any] = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def scattered(base: HostArray, places: list[tuple[int, ...]], values: list[float], function: Any) -> HostArray:
    """Values at places, one after another."""
    result: Any = base.copy()
    for place, value in zip(places, values, strict=True):
        result[place] = function(result[place], value)
    return result


NONE = np.zeros((0, 2), np.int32)
BYTES = np.array([1, 2], np.int8)
I64 = np.array([[0, -1], [2, 1]], np.int64)
ELEMENTS = RNG.integers(-3, 3, (3, 2, 5))
TUPLES = np.array([[0, -1], [2, 1], [-3, 3]], np.int64)
BATCHED = np.array([[[1], [-1]], [[0], [2]], [[3], [3]]], np.int32)
TARGETS = np.array([1, 0, 1, 1, -1], np.int64)
ADDED = RNG.integers(-4, 4, (5, 4)).astype(np.float32)

CASES: dict[str, Case] = {
    "gather along 0": (lambda x, i: dg.gather(x, i), (X, I64), X[I64]),
    "gather along 1": (lambda x, i: dg.gather(x, i, 1), (X, I64), X[:, I64]),
    "gather along -1": (lambda x, i: dg.gather(x, i, -1), (X, I64.astype(np.int8)), X[:, :, I64]),
    "gather of a scalar index": (lambda x, i: dg.gather(x, i, 1), (X, np.array(-2)), X[:, -2]),
    "gather past the end": (
        lambda x, i: dg.gather(x, i, 1),
        (X, np.array([4, -5, 1, 2**40, -(2**40)])),
        np.stack([X[:, 1] if k == 2 else np.zeros((3, 5), np.float32) for k in range(5)], 1),
    ),
    "gather of nothing": (lambda x, i: dg.gather(x, i, 1), (X, NONE), X[:, NONE]),
    "gather_elements": (
        lambda x, i: dg.gather_elements(x, i, 0),
        (X, ELEMENTS),
        np.take_along_axis(X[:, :2], ELEMENTS % 3, 0),
    ),
    "gather_elements along the last": (
        lambda x, i: dg.gather_elements(x, i, -1),
        (X, ELEMENTS[:, :, :3].astype(np.int32)),
        np.take_along_axis(X[:, :2], ELEMENTS[:, :, :3], 2),
    ),
    "gather_nd": (lambda x, i: dg.gather_nd(x, i), (X, TUPLES), X[TUPLES[:, 0], TUPLES[:, 1]]),
    "gather_nd of elements": (
        lambda x, i: dg.gather_nd(x, i),
        (X, np.array([[[0, 1, 2]], [[2, -1, -1]]])),
        np.array([[X[0, 1, 2]], [X[2, 3, 4]]]),
    ),
    "gather_nd with a batch": (
        lambda x, i: dg.gather_nd(x, i, 1),
        (X, BATCHED),
        np.stack([X[b, BATCHED[b, :, 0]] for b in range(3)]),
    ),
    "scatter_elements": (
        lambda x, i, v: dg.scatter_elements(x, i, v, 1),
        (X, np.array([[[0, -1, 2, 3, 0]]]), np.array([[[1, 2, 3, 4, 5]]], np.float32)),
        scattered(X, [(0, 0, 0), (0, 3, 1), (0, 2, 2), (0, 3, 3), (0, 0, 4)], [1, 2, 3, 4, 5], lambda _, v: v),
    ),
    "scatter_elements of one place": (
        lambda x, i, v: dg.scatter_elements(x, i, v),
        (np.zeros(3, np.float32), np.array([1, 1, -2, 7]), np.array([1, 2, 3, 4], np.float32)),
        np.array([0, 3, 0], np.float32),
    ),
    **{
        f"scatter_elements, {join}": (
            partial(dg.scatter_elements, join=join),
            (np.array([1, 2, 3], np.float32), TARGETS, ADDED[:, 0]),
            scattered(np.array([1, 2, 3], np.float32), [(t,) for t in TARGETS], list(ADDED[:, 0]), function),
        )
        for join, function in JOINS.items()
    },
    "scatter_elements of integers": (
        lambda x, i, v: dg.scatter_elements(x, i, v, join="add"),
        (np.array([1, 2, 3], np.int32), TARGETS, np.arange(5, dtype=np.int32)),
        np.array([2, 7, 7], np.int32),
    ),
    "scatter_elements of bytes": (
        lambda x, i, v: dg.scatter_elements(x, i, v, join="none"),
        (np.array([1, 2, 3], np.uint8), TARGETS, np.arange(5, dtype=np.uint8)),
        np.array([1, 3, 4], np.uint8),
    ),
    "scatter_nd": (
        lambda x, i, v: dg.scatter_nd(x, i, v, "max"),
        (np.zeros((3, 4), np.float32), TARGETS[:, None], ADDED),
        np.stack([np.maximum(ADDED[1], 0), np.maximum(ADDED[[0, 2, 3]].max(0), 0), np.maximum(ADDED[4], 0)]),
    ),
    "scatter_nd of elements": (
        lambda x, i, v: dg.scatter_nd(x, i, v),
        (np.zeros((3, 4), np.float32), np.array([[0, -1], [2, 0]]), np.array([5, 6], np.float32)),
        scattered(np.zeros((3, 4), np.float32), [(0, 3), (2, 0)], [5, 6], lambda _, v: v),
    ),
    "scatter_add along 0": (
        lambda x, i, v: dg.scatter_add(x, i, v),
        (np.ones((3, 4), np.float32), TARGETS, ADDED),
        1 + np.stack([ADDED[s == TARGETS % 3].sum(0) for s in range(3)]),
    ),
    "scatter_add along 1": (
        lambda x, i, v: dg.scatter_add(x, i, v, 1),
        (np.ones((4, 3), np.float32), TARGETS, ADDED.T.copy()),
        (1 + np.stack([ADDED[s == TARGETS % 3].sum(0) for s in range(3)])).T,
    ),
    "pad": (
        lambda x: dg.pad(x, [(1, 0), (0, 2), (3, 1)], value=2.5),
        (X,),
        np.pad(X, [(1, 0), (0, 2), (3, 1)], constant_values=2.5),
    ),
    "pad of bytes": (lambda x: dg.pad(x, [(2, 1)]), (BYTES,), np.array([0, 0, 1, 2, 0], np.int8)),
    "pad and cut": (
        lambda x: dg.pad(x, [(-1, 2), (0, 0), (1, -2)]),
        (X,),
        np.pad(X[1:, :, :3], [(0, 2), (0, 0), (1, 0)]),
    ),
    "cut": (lambda x: dg.pad(x, [(-1, 0), (0, -2), (0, 0)], "edge"), (X,), X[1:, :2]),
    "pad of nothing": (lambda x: dg.pad(x, [(1, 1)], value=3), (np.zeros(0, np.float32),), np.full(2, 3, np.float32)),
    **{
        f"pad, {mode}": (
            partial(dg.pad, widths=[(2, 1), (0, 0), (4, 3)], mode=mode),
            (X,),
            np.pad(X, [(2, 1), (0, 0), (4, 3)], mode),
        )
        for mode in ("reflect", "edge", "wrap")
    },
    "tile": (lambda x: dg.tile(x, [2, 1, 3]), (X,), np.tile(X, (2, 1, 3))),
    "tile no times": (lambda x: dg.tile(x, [1, 0, 1]), (X,), X[:, :0]),
    "reverse": (lambda x: dg.reverse(x, [0, -1]), (X,), X[::-1, :, ::-1]),
    "narrow": (lambda x: dg.narrow(x, -2, 1, 2), (X,), X[:, 1:3]),
    "split": (lambda x: dg.split(x, [1, 3, 0], 1)[1], (X,), X[:, 1:]),
    "split into equal parts": (lambda x: dg.split(x, 3, -1)[2], (X,), X[:, :, 4:]),
    "slice with steps": (lambda x: dg.slice_(x, [-1, 0, 4], [None, 3, 0], [-2, 2, -3]), (X,), X[-1::-2, 0:3:2, 4:0:-3]),
    "stop_gradient": (lambda x: dg.stop_gradient(x) * 2.0, (X,), X * np.float32(2)),
    "one_hot": (
        lambda i: dg.one_hot(i, 3),
        (np.array([0, -1, 2, 3, -4]),),
        np.array([[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0]], np.float32),
    ),
    "one_hot along 0": (
        lambda i: dg.one_hot(i, 2, 0, on=7, off=-1, dtype="i64"),
        (np.array([[0, 1]], np.uint8),),
        np.array([[[7, -1]], [[-1, 7]]]),
    ),
    "lower_triangle": (lambda x: dg.lower_triangle(x, 1), (X,), np.tril(X, 1)),
    "upper_triangle": (lambda x: dg.upper_triangle(x, -2), (X,), np.triu(X, -2)),
    "no triangle": (lambda x: dg.upper_triangle(x, 2**60), (X,), np.zeros_like(X)),
    "argmax": (lambda x: dg.argmax(x, 1), (X,), X.argmax(1).astype(np.uint32)),
    "argmin": (lambda x: dg.argmin(x, -1, keepdims=True), (X,), X.argmin(-1, keepdims=True).astype(np.uint32)),
    "last argmax": (lambda x: dg.argmax(x, 1, last=True), (TIES[:, [0, 1, 2, 4]],), np.array([2, 0], np.uint32)),
    "argmax of integers": (lambda x: dg.argmax(x, 0), (I64 * 2**60,), np.array([1, 1], np.uint32)),
    "argmin of bytes": (lambda x: dg.argmin(x, 1), (I64.astype(np.int8),), np.array([1, 1], np.uint32)),
    "argsort": (lambda x: dg.argsort(x), (TIES,), numpy_top(TIES, 7, False).astype(np.uint32)),
    "argsort, falling": (lambda x: dg.argsort(x, descending=True), (TIES,), numpy_top(TIES, 7, True).astype(np.uint32)),
    "argsort of integers": (
        lambda x: dg.argsort(x, 0),
        (np.array([[3, 1], [-(2**40), 1], [3, 0]]),),
        np.array([[1, 2], [0, 0], [2, 1]], np.uint32),
    ),
    "sort of bytes": (lambda x: dg.sort(x, 0), (ELEMENTS.astype(np.int8),), np.sort(ELEMENTS.astype(np.int8), 0)),
    "sort of truth values": (lambda x: dg.sort(x), (TIES > 1,), np.sort(TIES > 1)),
    "sort": (lambda x: dg.sort(x, 1), (X,), np.sort(X, 1)),
    "top_k": (lambda x: dg.top_k(x, 3)[0], (TIES,), np.take_along_axis(TIES, numpy_top(TIES, 3, True), -1)),
    "top_k places": (lambda x: dg.top_k(x, 4, largest=False)[1], (TIES,), numpy_top(TIES, 4, False).astype(np.uint32)),
    "top_k along 0": (lambda x: dg.top_k(x, 2, 0)[0], (ELEMENTS,), np.sort(ELEMENTS, 0)[::-1][:2]),
    "top none": (lambda x: dg.top_k(x, 0)[0], (TIES,), TIES[:, :0]),
    "cumsum of integers": (lambda x: dg.cumsum(x, 1), (ELEMENTS,), np.cumsum(ELEMENTS, 1)),
    "cumsum, exclusive": (
        lambda x: dg.cumsum(x, -1, exclusive=True),
        (ADDED,),
        np.cumsum(np.pad(ADDED, [(0, 0), (1, 0)]), 1)[:, :-1],
    ),
    "cumsum, exclusive and reverse": (
        lambda x: dg.cumsum(x, 0, exclusive=True, reverse=True),
        (ADDED,),
        np.cumsum(np.pad(ADDED[::-1], [(1, 0), (0, 0)]), 0)[:-1][::-1],
    ),
    "cumprod": (lambda x: dg.cumprod(x, 0, reverse=True), (ADDED,), np.cumprod(ADDED[::-1], 0)[::-1]),
    "cumsum of bytes": (lambda x: dg.cumsum(x, 0), (np.full(3, 100, np.uint8),), np.array([100, 200, 44], np.uint8)),
}  # fmt: skip


ON_THE_HOST = ("scatter_elements of integers", "pad of nothing")
"""Joins of integers, and results that are nothing but a constant."""


def compared(make: Callable[..., dg.Tensor], inputs: tuple[HostArray, ...], device: Device) -> tuple[HostArray, Any]:
    """The uncompiled run, whose bits a device must give, fused and not; and which steps the host took."""
    b = dg.Builder("case")
    tensors = [b.input(f"in{k}", value.shape, value.dtype) for k, value in enumerate(inputs)]
    graph = b.graph(y=make(*tensors))
    fed = {f"in{k}": value for k, value in enumerate(inputs)}
    expected = dg.evaluate(graph, fed)["y"]
    steps: Any = None
    for passes in (dg.PASSES, dg.UNFUSED):
        with dg.compile(graph, device, passes=passes) as pipeline:
            result = pipeline.dispatch(fed)["y"]
            steps = pipeline.report().host_steps
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        assert result.tobytes() == expected.tobytes()
    assert str(dg.parse_graph(str(graph))) == str(graph)
    return expected, steps


@pytest.mark.parametrize("name", CASES)
def test_an_op_means_what_numpy_and_onnx_mean(name: str, device: Device) -> None:
    make, inputs, meant = CASES[name]
    result, steps = compared(make, inputs, device)
    assert (result.dtype, result.shape) == (meant.dtype, meant.shape)
    np.testing.assert_array_equal(result, meant)
    assert not steps or name in ON_THE_HOST


@pytest.mark.parametrize(("rows", "length"), [(1, 2000), (5, 1100), (3, 65), (40, 17)])
@pytest.mark.parametrize("descending", [False, True])
def test_rows_are_put_in_order_by_pairs_and_by_radix(rows: int, length: int, descending: bool, device: Device) -> None:
    x = RNG.choice(np.array([np.nan, np.inf, 0, 1, 2, 2.5, -7], np.float32), (rows, length))
    result, steps = compared(lambda t: dg.argsort(t, descending=descending), (x,), device)
    np.testing.assert_array_equal(result, numpy_top(x, length, descending))
    assert not steps


@pytest.mark.parametrize("length", [64, 65, 300, 4097])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_scans_go_by_runs_of_64(length: int, kind: type, device: Device) -> None:
    x = RNG.standard_normal((2, length)).astype(kind)
    for scan in (dg.cumsum, dg.cumprod):
        whole, _ = compared(lambda t, scan=scan: scan(t, 1), (x,), device)
        without, _ = compared(lambda t, scan=scan: scan(t, 1, exclusive=True), (x,), device)
        assert whole[:, :-1].tobytes() == without[:, 1:].tobytes()
    sums: Any = dg.evaluate(_graph_of(x), {"x": x})["y"]
    exact = np.cumsum(x.astype(np.longdouble), 1)
    # 64 additions in sequence at each of few levels: far below one rounding for each element.
    assert np.abs(sums - exact).max() < 70 * np.finfo(kind).eps * np.abs(x).sum(1).max()


def _graph_of(x: HostArray) -> dg.Graph:
    b = dg.Builder("scan")
    return b.graph(y=dg.cumsum(b.input("x", x.shape, x.dtype), 1))


def test_many_values_of_one_place_are_joined_by_tree64(device: Device) -> None:
    values = RNG.standard_normal(5000).astype(np.float32)
    index = RNG.integers(0, 2, 5000)
    base = np.zeros(2, np.float32)
    result, _ = compared(lambda x, i, v: dg.scatter_elements(x, i, v, join="add"), (base, index, values), device)
    b = dg.Builder("sums")
    chosen = [values[index == place] for place in (0, 1)]
    sums = [dg.sum_(b.input(f"in{k}", part.shape), 0) for k, part in enumerate(chosen)]
    alone = dg.evaluate(b.graph(a=sums[0], b=sums[1]), {f"in{k}": part for k, part in enumerate(chosen)})
    assert [v.tobytes() for v in result] == [alone["a"].tobytes(), alone["b"].tobytes()]


def test_parts_of_a_pad_and_constant_places_are_folded() -> None:
    b = dg.Builder("folded")
    x = b.input("x", (3, 4))
    graph = dg.run_passes(b.graph(y=dg.pad(dg.tanh(x), [(1, 1), (0, 2)])), after="fuse")
    assert [node.op for node in graph.nodes if node.op not in ("constant", "view")] == ["input", "map", "take"]


@pytest.mark.parametrize("kind", ["f16", "i16", "u8", "bool"])
def test_small_elements_are_picked_as_they_are(kind: str, device: Device) -> None:
    x = (RNG.standard_normal((7, 5)) * 3).astype(np.dtype(str(dtype_of(kind).numpy)))
    b = dg.Builder("small")
    t, index = b.input("x", x.shape, kind), b.constant(np.array([6, -1, 0, 3, 9]))
    graph = b.graph(y=dg.gather(t, index, 1), z=dg.gather(t, index))
    lowered = dg.run_passes(graph, after="fuse")
    assert {node.dtype.name for node in lowered.nodes if node.op != "constant"} == {kind}
    result, steps = compared(lambda v, i: dg.gather(v, i), (x, np.array([6, -1, 0, 3, 9])), device)
    assert not steps
    assert result.tobytes() == np.concatenate([x[[6, -1, 0, 3]], np.zeros((1, 5), x.dtype)]).tobytes()


def test_short_rows_are_put_in_order_by_two_reductions_that_store_no_pair() -> None:
    b = dg.Builder("pairs")
    graph = dg.run_passes(b.graph(y=dg.argsort(dg.tanh(b.input("x", (7, 60))))), after="fuse")
    computed = [node for node in graph.nodes if node.op not in ("constant", "view")]
    assert [node.op for node in computed] == ["input", "map", "rows", "rows", "cast"]
    assert max(node.type.size for node in computed) == 420


MISTAKES: dict[str, tuple[Callable[[dg.Builder, dg.Tensor], object], str]] = {
    "axis of a gather": (lambda b, x: dg.gather(x, b.constant([0]), 3), "'x' of shape (3, 4, 5) has no axis 3"),
    "type of an index": (lambda b, x: dg.gather_elements(x, x, 0), "node 'gather_elements_0'"),
    "tuples too long": (lambda b, x: dg.gather_nd(x, b.constant(np.zeros((2, 4), np.int64))), "node 'gather_nd_0'"),
    "tuples too short a batch": (
        lambda b, x: dg.gather_nd(x, b.constant(np.zeros((2, 1), np.int64)), 1),
        "name nothing in (3, 4, 5) behind 1 axes",
    ),
    "elements beyond": (
        lambda b, x: dg.gather_elements(x, b.constant(np.zeros((3, 5, 5), np.int64)), 0),
        "does not lie within (3, 4, 5)",
    ),
    "values of a scatter": (
        lambda b, x: dg.scatter_elements(x, b.constant(np.zeros((1, 1, 1), np.int64)), x),
        "the values are of shape (3, 4, 5). Fix: pass values of shape (1, 1, 1)",
    ),
    "join": (
        lambda b, x: dg.scatter_nd(x, b.constant(np.zeros((3, 4, 5, 3), np.int64)), x, "sum"),  # pyright: ignore[reportArgumentType]
        "are not joined by 'sum'. Fix: use one of none, add, mul, min, max",
    ),
    "widths": (lambda b, x: dg.pad(x, [(1, 1)]), "node 'pad_0' (pad of f32[3,4,5]): 1 and 1 widths for 3 axes"),
    "mode": (lambda b, x: dg.pad(x, [(1, 1)] * 3, "mirror"), "there is no mode 'mirror'"),  # pyright: ignore[reportArgumentType]
    "negative": (lambda b, x: dg.pad(x, [(-2, -2), (0, 0), (0, 0)]), "cannot be padded"),
    "too large": (lambda b, x: dg.pad(x, [(2**40, 0), (0, 0), (0, 0)]), "use at most 4294967295"),
    "repeats": (lambda b, x: dg.tile(x, [2]), "is not repeated [2] times"),
    "too many repeats": (lambda b, x: dg.tile(x, [2**31, 1, 1]), "use at most 4294967295"),
    "lengths": (lambda b, x: dg.split(x, [1, 1], 1), "is not split into [1, 1] along axis 1"),
    "no parts": (lambda b, x: dg.split(x, 0), "is not split into 0"),
    "narrow": (lambda b, x: dg.narrow(x, 1, 3, 2), "has no 2 elements from 3 on along axis 1"),
    "k": (lambda b, x: dg.top_k(x, 6), "6 of the 5 elements of 'x' along axis 2 are asked for"),
    "no elements": (lambda b, x: dg.argmax(dg.slice_(x, [0], [0]), 0), "argmax is not defined for f32[0,4,5]"),
    "classes": (lambda b, x: dg.one_hot(x, -1), "there cannot be -1 classes"),
    "scan": (lambda b, x: dg.cumsum(dg.is_nan(x), 0), "node 'cumsum_0'"),
    "matrix": (lambda b, x: dg.lower_triangle(b.input("z", (3,))), "'z' of shape (3,) is no matrix"),
    "softmax": (lambda b, x: dg.softmax(x, 5), "has no axis 5"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_is_an_error_that_names_where(mistake: str) -> None:
    make, text = MISTAKES[mistake]
    b = dg.Builder("wrong")
    with pytest.raises(GraphError) as error:
        make(b, b.input("x", (3, 4, 5)))
    assert text in str(error.value)
    assert "Fix: " in str(error.value)


def test_sizes_agree_with_counting() -> None:
    b = dg.Builder("sizes")
    parts = dg.split(b.input("x", (7, 2)), 3)
    assert [part.shape for part in parts] == [(3, 2), (3, 2), (1, 2)]
    assert math.prod(dg.tile(parts[0], (2, 3)).shape) == 36
