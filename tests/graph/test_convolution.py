"""Convolutions, transposed ones, windows and pools: what they compute, and that devices give the bits of the
definitions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dashi
from dashi import graph as dg
from dashi.errors import GraphError
from dashi.kernels.portable import contract
from dashi.runtime.device import Device
from dashi.types import HostArray

Floats = npt.NDArray[Any]
Run = Callable[[dg.Graph, Mapping[str, HostArray]], dict[str, Floats]]
AWKWARD = [0.0, -0.0, 2.0**-101, -(2.0**-102), 2.0**-126, 1e-45, 3e38, np.inf, -np.inf, np.nan]
CLOSE = 1e-5
"""Above the error of 200 fp32 products of order 1 that are summed one after another, 200 x 2^-24."""

CONVS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 6, 7), (4, 3, 3, 2), {}),
    "one axis": ((2, 3, 11), (4, 3, 4), {"stride": 2, "padding": 1, "dilation": 2}),
    "three axes": ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), {"padding": (1, 0, 1), "stride": (1, 2, 1)}),
    "asymmetric": ((1, 2, 5, 6), (3, 2, 3, 3), {"padding": [(2, 0), (0, 1)], "stride": (2, 1), "dilation": (1, 2)}),
    "same": ((2, 2, 7, 8), (3, 2, 3, 4), {"padding": "same", "stride": (2, 3)}),
    "same_lower": ((1, 2, 7, 8), (3, 2, 2, 4), {"padding": "same_lower", "stride": (1, 3)}),
    "groups": ((2, 6, 5, 5), (9, 2, 3, 3), {"groups": 3, "padding": 1}),
    "depthwise": ((2, 5, 6, 5), (5, 1, 3, 3), {"groups": 5, "padding": 1, "stride": (1, 2)}),
    "depthwise twice": ((2, 5, 9), (10, 1, 3), {"groups": 5, "padding": 2}),
    "depthwise solid": ((1, 3, 3, 4, 3), (3, 1, 2, 2, 2), {"groups": 3, "padding": 1}),
    "pointwise": ((2, 70, 4, 3), (5, 70, 1, 1), {}),
    "pointwise apart": ((1, 8, 4, 5), (5, 8, 1, 1), {"stride": 2}),
    "many": ((2, 3, 40, 34), (40, 3, 3, 3), {"padding": 1}),
    "many groups": ((3, 8, 33, 30), (10, 4, 2, 3), {"groups": 2, "stride": (1, 2), "padding": [(0, 1), (1, 1)]}),
    "many on one axis": ((2, 4, 900), (34, 4, 5), {"dilation": 2}),
    "many on three": ((1, 2, 6, 20, 22), (5, 2, 2, 3, 3), {"padding": (1, 0, 1)}),
    "cut off": ((1, 2, 6, 6), (3, 2, 3, 3), {"padding": [(-1, 1), (1, -2)]}),
}
TRANSPOSED: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 4, 5), (3, 4, 3, 2), {}),
    "one axis": ((2, 3, 5), (3, 4, 4), {"stride": 3, "padding": 1, "output_padding": 2, "dilation": 2}),
    "two axes": ((1, 4, 3, 4), (4, 2, 3, 3), {"stride": (2, 1), "padding": [(1, 0), (0, 2)], "output_padding": (1, 0)}),
    "groups": ((2, 4, 3, 3), (4, 3, 2, 2), {"groups": 2, "stride": 2}),
    "depthwise": ((2, 3, 4, 3), (3, 1, 3, 3), {"groups": 3, "stride": 2, "padding": 1, "output_padding": 1}),
    "many": ((1, 4, 20, 21), (4, 35, 3, 3), {"stride": 2, "padding": 1}),
    "much padding": ((1, 2, 6, 6), (2, 2, 2, 2), {"padding": 2}),
}


def normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def awkward(seed: int, *shape: int) -> Floats:
    rng = np.random.default_rng(seed)
    values = normal(seed, *shape)
    chosen = rng.random(shape) < 0.03
    values[chosen] = rng.choice(np.array(AWKWARD, np.float32), int(chosen.sum()))
    return values


def each(value: Any, rank: int) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value] * rank


def sides(padding: Any, rank: int, lengths: Any, taps: Any, stride: Any, dilation: Any) -> list[tuple[int, int]]:
    """Padding before and behind each axis, as ONNX's auto_pad says it."""
    if isinstance(padding, str):
        listed: list[tuple[int, int]] = []
        for n, k, s, d in zip(lengths, taps, stride, dilation, strict=True):
            total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
            small, large = total // 2, total - total // 2
            listed.append((small, large) if padding == "same" else (large, small))
        return listed
    return [side if isinstance(side, tuple) else (side, side) for side in each(padding, rank)]


def padded(x: Floats, pads: list[tuple[int, int]]) -> Floats:
    """In fp64; negative padding cuts off."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in pads)])
    cuts = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pads, x.shape[2:], strict=True))
    return x[(slice(None), slice(None), *cuts)]


def correlated(x: Floats, w: Floats, stride: Any, dilation: Any, groups: int) -> Floats:
    """The sums in fp64, tap by tap."""
    taps = w.shape[2:]
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], taps, stride, dilation, strict=True)]
    inside, outside = w.shape[1], w.shape[0] // groups
    total = np.zeros((x.shape[0], w.shape[0], *counts))
    for tap in itertools.product(*map(range, taps)):
        axes = zip(tap, counts, stride, dilation, strict=True)
        cut = tuple(slice(t * d, t * d + (c - 1) * s + 1, s) for t, c, s, d in axes)
        for g in range(groups):
            part = x[(slice(None), slice(g * inside, (g + 1) * inside), *cut)]
            weights = w[(slice(g * outside, (g + 1) * outside), slice(None), *tap)].astype(np.float64)
            total[:, g * outside : (g + 1) * outside] += np.einsum("oc,nc...->no...", weights, part)
    return total


@pytest.mark.parametrize("case", CONVS)
def test_a_convolution_is_the_sum_over_channels_and_taps(case: str, run_portably: Run) -> None:
    shape, weights, options = CONVS[case]
    x, w, bias = normal(1, *shape), normal(2, *weights), normal(3, weights[0])
    b = dg.Builder("conv")
    y = dg.conv(b.input("x", shape), b.param("w", w), b.param("bias", bias), **options)
    result = run_portably(b.graph(y=dg.relu(y)), {"x": x})["y"]
    rank = len(shape) - 2
    stride, dilation = each(options.get("stride", 1), rank), each(options.get("dilation", 1), rank)
    pads = sides(options.get("padding", 0), rank, shape[2:], weights[2:], stride, dilation)
    expected = correlated(padded(x, pads), w, stride, dilation, options.get("groups", 1))
    expected = np.maximum(expected + bias.reshape(-1, *(1,) * rank), 0)
    assert result.shape == expected.shape
    assert np.abs(result - expected).max() < CLOSE * np.abs(expected).max()


@pytest.mark.parametrize("case", TRANSPOSED)
def test_a_transposed_convolution_spreads_each_value_over_the_taps(case: str, run_portably: Run) -> None:
    shape, weights, options = TRANSPOSED[case]
    rank, groups = len(shape) - 2, options.get("groups", 1)
    x, w = normal(1, *shape), normal(2, *weights)
    b = dg.Builder("conv")
    y = dg.conv_transpose(
        b.input("x", shape), b.param("w", w), b.param("bias", normal(3, weights[1] * groups)), **options
    )
    result = run_portably(b.graph(y=y), {"x": x})["y"] - normal(3, weights[1] * groups).reshape(-1, *(1,) * rank)
    stride, dilation = each(options.get("stride", 1), rank), each(options.get("dilation", 1), rank)
    more = each(options.get("output_padding", 0), rank)
    axes = zip(shape[2:], weights[2:], stride, dilation, strict=True)
    whole = [(n - 1) * s + (k - 1) * d + 1 for n, k, s, d in axes]
    total = np.zeros((shape[0], weights[1] * groups, *whole))
    inside = shape[1] // groups
    for tap in itertools.product(*map(range, weights[2:])):
        where = zip(tap, shape[2:], stride, dilation, strict=True)
        cut = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, n, s, d in where)
        for c in range(shape[1]):
            g = c // inside
            part = np.einsum("o,n...->no...", w[(c, slice(None), *tap)].astype(np.float64), x[:, c].astype(np.float64))
            total[(slice(None), slice(g * weights[1], (g + 1) * weights[1]), *cut)] += part
    pads = sides(options.get("padding", 0), rank, shape[2:], weights[2:], stride, dilation)
    expected = padded(total, [(-low, m - high) for (low, high), m in zip(pads, more, strict=True)])
    assert result.shape == expected.shape
    assert np.abs(result - expected).max() < CLOSE * np.abs(expected).max()


@pytest.mark.parametrize("case", ["groups", "depthwise", "same", "pointwise", "many groups"])
def test_every_sum_is_tree64_over_channels_then_taps_whatever_computes_it(case: str, run_portably: Run) -> None:
    """Products of matrices and sums over windows: one definition, also for values that are no numbers."""
    shape, weights, options = CONVS[case]
    x, w = awkward(4, *shape), awkward(5, *weights)
    b = dg.Builder("conv")
    value = b.input("x", shape)
    columns = dg.im2col(value, weights[2:], **{k: v for k, v in options.items() if k != "groups"})
    results = run_portably(b.graph(y=dg.conv(value, b.param("w", w), **options), columns=columns), {"x": x})
    groups = options.get("groups", 1)
    images = results["columns"].reshape(shape[0], groups, -1, results["columns"].shape[-1])
    matrices = w.reshape(groups, weights[0] // groups, -1)
    with np.errstate(all="ignore"):
        expected = np.stack([[contract(m, c) for m, c in zip(matrices, image, strict=True)] for image in images])
    assert np.isnan(expected).any() or case == "pointwise"
    assert (np.nan_to_num(expected, nan=7.5).reshape(-1) == np.nan_to_num(results["y"], nan=7.5).reshape(-1)).all()


def test_padding_is_made_of_zeros_that_are_addends() -> None:
    b = dg.Builder("conv")
    w = np.array([[[np.inf, 1.0]]], np.float32)
    g = b.graph(y=dg.conv(b.input("x", (1, 1, 2)), b.param("w", w), padding=[(1, 0)]))
    y = dg.evaluate(g, {"x": np.ones((1, 1, 2), np.float32)})["y"]
    assert np.isnan(y[0, 0, 0])
    assert y[0, 0, 1] == np.inf


def test_doubles_are_convolved_too(run_portably: Run) -> None:
    b = dg.Builder("conv")
    x = b.input("x", (1, 2, 4, 4), "f64")
    w = b.param("w", normal(1, 3, 2, 3, 3).astype(np.float64))
    y = dg.average_pool(dg.conv(x, w, padding=1), (2, 2))
    run_portably(b.graph(y=y), {"x": normal(2, 1, 2, 4, 4).astype(np.float64)})


def test_a_convolution_is_a_frame_and_one_product_with_its_tail() -> None:
    b = dg.Builder("conv")
    x, residual = b.input("x", (2, 3, 8, 8)), b.input("residual", (2, 4, 8, 8))
    w, bias = b.param("w", normal(1, 4, 3, 3, 3)), b.param("bias", normal(2, 4))
    g = b.graph(y=dg.relu(dg.conv(x, w, bias, padding=1) + residual))
    ops = [node.op for node in dg.run_passes(g).nodes if node.op not in ("input", "param")]
    assert ops == ["pad_dilated", "map", "product"]
    large = dg.Builder("large")
    x, w = large.input("x", (2, 3, 48, 48)), large.param("w", normal(1, 40, 3, 3, 3))
    g = large.graph(y=dg.relu(dg.conv(x, w, large.param("bias", normal(2, 40)), padding=1)))
    ops = [node.op for node in dg.run_passes(g).nodes if node.op not in ("input", "param")]
    assert ops == ["pad_dilated", "window_product"]
    depthwise = dg.Builder("depthwise")
    x, w = depthwise.input("x", (2, 4, 8, 8)), depthwise.param("w", normal(1, 4, 1, 3, 3))
    g = depthwise.graph(y=dg.tanh(dg.conv(x, w, padding=1, groups=4)))
    assert [node.op for node in dg.run_passes(g).nodes if node.op not in ("input", "param")] == ["pad_dilated", "rows"]
    pointwise = dg.Builder("pointwise")
    x, w = pointwise.input("x", (2, 4, 8, 8)), pointwise.param("w", normal(1, 6, 4, 1, 1))
    g = pointwise.graph(y=dg.tanh(dg.conv(x, w)))
    assert [node.op for node in dg.run_passes(g).nodes if node.op not in ("input", "param")] == ["product"]


POOLS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "side by side": ((2, 3, 6, 8), (2, 2), {}),
    "one axis": ((2, 3, 11), (3,), {"stride": 2, "padding": 1}),
    "dilated": ((1, 2, 9, 8), (2, 3), {"stride": 1, "dilation": (3, 2), "padding": [(1, 0), (0, 2)]}),
    "ceil": ((1, 2, 7, 8), (3, 2), {"stride": (2, 3), "ceil_mode": True}),
    "ceil and padding": ((1, 2, 6, 6), (3, 3), {"stride": 2, "padding": 1, "ceil_mode": True}),
    "ceil inside padding": ((1, 1, 5), (2,), {"stride": 3, "padding": [(0, 2)], "ceil_mode": True}),
    "same": ((1, 2, 5, 6), (3, 2), {"stride": 2, "padding": "same"}),
    "three axes": ((1, 2, 4, 5, 4), (2, 3, 2), {"padding": (0, 1, 0)}),
    "long": ((1, 1, 200), (130,), {"stride": 35}),
}


def windows(x: Floats, taps: tuple[int, ...], options: dict[str, Any]) -> tuple[Floats, Floats]:
    """The taps of each window, NaN where they lie on no value; and whether they lie on values or padding."""
    rank = len(taps)
    stride, dilation = each(options.get("stride", taps), rank), each(options.get("dilation", 1), rank)
    pads = sides(options.get("padding", 0), rank, x.shape[2:], taps, stride, dilation)
    counts: list[int] = []
    for n, k, s, d, (low, high) in zip(x.shape[2:], taps, stride, dilation, pads, strict=True):
        room = n + low + high - (k - 1) * d - 1
        count = (-(-room // s) if options.get("ceil_mode") else room // s) + 1
        counts.append(count - (options.get("ceil_mode", False) and (count - 1) * s >= n + low))
    shown = np.full((*x.shape[:2], *counts, *taps), np.nan)
    inside = np.zeros((*counts, *taps), bool)
    for place in itertools.product(*map(range, (*counts, *taps))):
        at = [o * s + t * d - p[0] for o, t, s, d, p in zip(place, place[rank:], stride, dilation, pads, strict=False)]
        inside[place] = all(-p[0] <= a < n + p[1] for a, n, p in zip(at, x.shape[2:], pads, strict=True))
        if all(0 <= a < n for a, n in zip(at, x.shape[2:], strict=True)):
            shown[(slice(None), slice(None), *place)] = x[(slice(None), slice(None), *at)]
    return shown, inside


@pytest.mark.parametrize("case", POOLS)
def test_pools_are_maxima_and_means_of_windows(case: str, run_portably: Run) -> None:
    shape, taps, options = POOLS[case]
    x = normal(1, *shape)
    b = dg.Builder("pools")
    value = b.input("x", shape)
    g = b.graph(
        largest=dg.max_pool(value, taps, **options),
        mean=dg.relu(dg.average_pool(value, taps, **options)),
        padded=dg.average_pool(value, taps, **options, count_padding=True),
    )
    results = run_portably(g, {"x": x})
    shown, inside = windows(x, taps, options)
    axes = tuple(range(-len(taps), 0))
    assert (results["largest"] == np.nanmax(shown, axes)).all()
    total = np.nansum(shown, axes)
    assert np.abs(results["mean"] - np.maximum(total / (~np.isnan(shown)).sum(axes), 0)).max() < CLOSE
    assert np.abs(results["padded"] - total / inside.sum(axes)).max() < CLOSE


def test_pools_of_awkward_values_have_one_bit_pattern(run_portably: Run) -> None:
    b = dg.Builder("pools")
    x = b.input("x", (2, 3, 8, 9))
    largest = dg.max_pool(x, (3, 3), stride=2, padding=1)
    g = b.graph(a=largest, b=dg.average_pool(x, (3, 3), stride=2, padding=1), c=dg.global_max_pool(x))
    results = run_portably(g, {"x": awkward(7, 2, 3, 8, 9)})
    assert np.isnan(results["a"]).any()


def test_global_pools_reduce_every_channel(run_portably: Run) -> None:
    x = normal(3, 2, 5, 4, 6)
    b = dg.Builder("pools")
    value = b.input("x", x.shape)
    results = run_portably(b.graph(mean=dg.global_average_pool(value), most=dg.global_max_pool(value)), {"x": x})
    assert (results["most"] == x.max((2, 3), keepdims=True)).all()
    assert np.abs(results["mean"] - x.mean((2, 3), keepdims=True, dtype=np.float64)).max() < CLOSE


def classifier(batch: int) -> dg.Graph:
    """A small network for pictures of 3 x 32 x 32, with one of every kind of layer."""
    b = dg.Builder("classifier")
    rng = np.random.default_rng(11)

    def weights(name: str, *shape: int) -> dg.Tensor:
        scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
        return b.param(name, (rng.standard_normal(shape) * scale).astype(np.float32))

    x = b.input("pictures", (batch, 3, 32, 32))
    y = dg.conv(x, weights("w1", 16, 3, 3, 3), weights("b1", 16), stride=2, padding=1)
    mean, spread = weights("mean", 16), b.param("variance", np.linspace(0.5, 2, 16, dtype=np.float32))
    y = dg.relu(dg.batch_norm(y, mean, spread, weights("gamma", 16), weights("beta", 16)))
    y = dg.relu(dg.conv(y, weights("w2", 16, 1, 3, 3), weights("b2", 16), padding=1, groups=16))
    shortcut = dg.max_pool(y, (2, 2))
    y = dg.conv(y, weights("w3", 16, 16, 3, 3), weights("b3", 16), stride=2, padding=1)
    y = dg.relu(y + shortcut)
    y = dg.group_norm(dg.conv(y, weights("w4", 32, 16, 1, 1)), weights("g4", 32), weights("b4", 32), groups=4)
    y = dg.global_average_pool(dg.average_pool(y, (2, 2))).reshape(batch, 32)
    return b.graph(scores=dg.softmax(y @ weights("w5", 32, 10) + weights("b5", 10)))


def test_a_classifier_runs_on_the_device_alone(run_portably: Run) -> None:
    pictures = normal(12, 2, 3, 32, 32)
    scores = run_portably(classifier(2), {"pictures": pictures})["scores"]
    assert np.abs(scores.sum(1) - 1).max() < CLOSE
    assert scores[0].tobytes() != scores[1].tobytes()


@pytest.mark.parametrize("batch", [3, 8])
def test_a_picture_has_the_same_bits_in_every_batch(batch: int, device: Device) -> None:
    picture = normal(13, 1, 3, 32, 32)
    pictures = np.full((batch, 3, 32, 32), np.nan, np.float32)
    pictures[batch // 2] = picture[0]
    with dg.compile(classifier(1), device) as alone, dg.compile(classifier(batch), device) as many:
        expected = alone.dispatch({"pictures": picture})["scores"]
        scores = many.dispatch({"pictures": pictures})["scores"]
    assert scores[batch // 2].tobytes() == expected[0].tobytes()
    assert not np.isnan(expected).any()


def mixture(batch: int) -> dg.Graph:
    """Ops of pictures one by one; alone, a picture's convolution is multiplied as a matrix, among others by windows."""
    b = dg.Builder("mixture")
    x, w = b.input("x", (batch, 16, 24, 24)), b.param("w", normal(1, 40, 16, 3, 3))
    weights = b.param("gamma", normal(2, 16)), b.param("beta", normal(3, 16))
    modes = dg.rfft(x)
    return b.graph(
        conv=dg.conv(x, w, padding="same"), spread=dg.conv_transpose(x, b.param("v", normal(4, 16, 8, 2, 2)), stride=2),
        group=dg.group_norm(x, *weights, groups=4), layer=dg.layer_norm_2d(x, *weights),
        pool=dg.average_pool(x, (3, 3), stride=2, padding=1), size=dg.resize(x, (17, 30), mode="linear"), modes=modes,
    )  # fmt: skip


@pytest.mark.parametrize("batch", [3, 8])
def test_what_is_beside_a_picture_does_not_matter(batch: int, device: Device) -> None:
    lowered = [dg.run_passes(mixture(n)) for n in (1, batch)]
    assert [graph[dict(graph.outputs)["conv"]].op for graph in lowered] == ["product", "window_product"]
    picture = awkward(14, 1, 16, 24, 24)
    pictures = np.full((batch, 16, 24, 24), np.nan, np.float32)
    pictures[-1] = picture[0]
    with dg.compile(mixture(1), device) as alone, dg.compile(mixture(batch), device) as many:
        expected, results = alone.dispatch({"x": picture}), many.dispatch({"x": pictures})
    for name, values in expected.items():
        assert results[name][-1].tobytes() == values[0].tobytes(), name


def test_an_empty_batch_has_empty_results(run_portably: Run) -> None:
    b = dg.Builder("empty")
    x = b.input("x", (0, 2, 5, 5))
    y = dg.conv(x, b.param("w", normal(1, 4, 2, 3, 3)), padding=1)
    z = dg.conv(x, b.param("v", normal(1, 2, 1, 3, 3)), groups=2)
    g = b.graph(y=dg.max_pool(y, (2, 2)), z=dg.conv_transpose(z, b.param("u", normal(2, 2, 3, 2, 2)), stride=2))
    assert run_portably(g, {"x": np.empty((0, 2, 5, 5), np.float32)})["y"].shape == (0, 4, 2, 2)


MISTAKES: dict[str, tuple[Callable[[dg.Builder, dg.Tensor], object], str]] = {
    "channels": (lambda b, x: dg.conv(x, b.input("w", (4, 2, 3, 3))), "node 'conv_0' (conv of f32[1,3,8,8], f32[4,2,"),
    "groups": (lambda b, x: dg.conv(x, b.input("w", (4, 1, 3, 3)), groups=3), "3 groups of 3 channels do not fit"),
    "no groups": (lambda b, x: dg.conv(x, b.input("w", (4, 3, 3, 3)), groups=0), "in 0 groups"),
    "rank": (lambda b, x: dg.conv(x, b.input("w", (4, 3, 3))), "is not convolved with (4, 3, 3)"),
    "bias": (lambda b, x: dg.conv(x, b.input("w", (4, 3, 3, 3)), b.input("b", (3,))), "a bias of shape (3,) for"),
    "types": (lambda b, x: dg.conv(x, b.input("w", (4, 3, 3, 3), "f64")), "do not mix"),
    "integers": (lambda b, x: dg.max_pool(dg.cast(x, "i32"), (2, 2)), "is not defined for int32"),
    "large windows": (lambda b, x: dg.max_pool(x, (9, 2)), "no window that spans (9, 2) fits (8, 8)"),
    "stride": (lambda b, x: dg.max_pool(x, (2, 2), stride=(1, 2, 3)), "stride=(1, 2, 3) says nothing of 2 axes"),
    "no stride": (lambda b, x: dg.max_pool(x, (2, 2), stride=0), "use numbers from 1 to"),
    "padding": (lambda b, x: dg.max_pool(x, (2, 2), padding="full"), "padding='full' is no padding"),  # pyright: ignore[reportArgumentType]
    "sides": (lambda b, x: dg.max_pool(x, (2, 2), padding=[(1, 2)]), "says nothing of 2 axes"),
    "huge padding": (lambda b, x: dg.average_pool(x, (2, 2), padding=1 << 30), "is beyond"),
    "huge frame": (lambda b, x: dg.max_pool(x, (2, 2), padding=1 << 20), "elements"),
    "taps": (lambda b, x: dg.im2col(x, (2,)), "windows of (2,) over axes (8, 8)"),
    "spread": (lambda b, x: dg.conv_transpose(x, b.input("w", (3, 2, 2, 2)), output_padding=1), "is not below stride"),
    "same": (
        lambda b, x: b.apply(
            "conv_transpose", x, b.input("w", (3, 2, 2, 2)), padding="same", stride=1, dilation=1, groups=1,
            output_padding=0,
        ),
        "pass numbers",
    ),
    "weights": (lambda b, x: dg.conv(x, b.input("w", (4, 3, 0, 3))), "are none"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_impossible_window_is_an_error_where_it_is_added(mistake: str) -> None:
    b = dg.Builder("mistakes")
    x = b.input("x", (1, 3, 8, 8))
    add, text = MISTAKES[mistake]
    with pytest.raises(GraphError, match=re.escape(text)) as error:
        add(b, x)
    assert str(error.value).startswith("node '")
    assert "Fix: " in str(error.value)


def test_the_null_device_takes_a_classifier() -> None:
    with dashi.open("null") as device, dg.compile(classifier(1), device) as pipeline:
        assert pipeline.report().host_steps == {}
