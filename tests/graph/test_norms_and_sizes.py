"""Norms of channels, resize and quantised integers: what they compute, and that devices give their bits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.types import HostArray

Floats = npt.NDArray[Any]
Run = Callable[[dg.Graph, Mapping[str, HostArray]], dict[str, Floats]]
CLOSE = 1e-5
"""Above what some 100 operations in fp32 on numbers of order 1 may be off, 100 x 2^-24."""
EPSILON = 1e-3


def normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def standardized(x: Floats, axes: tuple[int, ...]) -> Floats:
    """In fp64."""
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPSILON)


@pytest.mark.parametrize("lengths", [(), (70,), (5, 6)])
def test_norms_standardize_their_axes_and_weight_channels(lengths: tuple[int, ...], run_portably: Run) -> None:
    x, gamma, beta = normal(1, 2, 6, *lengths) * 3 + 1, normal(2, 6), normal(3, 6)
    mean, variance = normal(4, 6), np.square(normal(5, 6))
    b = dg.Builder("norms")
    value = b.input("x", x.shape)
    weights = b.param("gamma", gamma), b.param("beta", beta)
    g = b.graph(
        group=dg.group_norm(value, *weights, groups=3, epsilon=EPSILON),
        instance=dg.tanh(dg.instance_norm(value, *weights, EPSILON)),
        layer=dg.layer_norm_2d(value, *weights, EPSILON),
        batch=dg.batch_norm(value, b.param("mean", mean), b.param("variance", variance), *weights, EPSILON),
    )
    results = run_portably(g, {"x": x})
    last = tuple(range(2, x.ndim))
    shape = (-1, *(1 for _ in lengths))
    scale, shift = gamma.reshape(shape), beta.reshape(shape)
    parts = standardized(x.reshape(2, 3, 2, -1), (2, 3)).reshape(x.shape)
    alone = standardized(x, last) if last else np.zeros_like(x)
    expected = {
        "group": parts * scale + shift,
        "instance": np.tanh(alone * scale + shift),
        "layer": standardized(x, (1,)) * scale + shift,
        "batch": (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + EPSILON) * scale + shift,
    }
    for name, values in expected.items():
        assert np.abs(results[name] - values).max() < CLOSE * max(1, np.abs(values).max()), name


def test_the_norm_by_the_mean_of_squares_takes_weights_and_a_shift(run_portably: Run) -> None:
    x, gamma, beta = normal(1, 3, 70), normal(2, 70), normal(3, 70)
    b = dg.Builder("rms")
    value, weights, shift = b.input("x", x.shape), b.param("gamma", gamma), b.param("beta", beta)
    g = b.graph(plain=dg.rms_norm(value, weights), shifted=dg.rms_norm(value, weights, shift, EPSILON))
    results = run_portably(g, {"x": x})
    squares = np.square(x.astype(np.float64)).mean(-1, keepdims=True)
    assert np.abs(results["plain"] - x / np.sqrt(squares + 1e-6) * gamma).max() < CLOSE
    assert np.abs(results["shifted"] - (x / np.sqrt(squares + EPSILON) * gamma + beta)).max() < CLOSE
    with pytest.raises(GraphError, match=r"\(3,\) are not the weights of \(3, 70\)"):
        dg.rms_norm(value, weights, b.param("wrong", normal(4, 3)))


def test_a_norm_and_its_weights_are_one_dispatch() -> None:
    b = dg.Builder("norms")
    weights = b.param("gamma", normal(1, 4)), b.param("beta", normal(2, 4))
    for norm in (lambda x: dg.group_norm(x, *weights, groups=2), lambda x: dg.relu(dg.instance_norm(x, *weights))):
        g = b.graph(y=norm(b.input(f"x{len(b.nodes)}", (2, 4, 5, 5))))
        ops = [node.op for node in dg.run_passes(g).nodes if node.op not in ("input", "param", "view")]
        assert ops == ["rows"], g


def coordinate(kind: str, i: int, old: int, new: int, scale: float) -> float:
    if kind == "asymmetric":
        return i / scale
    if kind == "align_corners":
        return i * (old - 1) / (new - 1) if new > 1 else 0.0
    return 0.0 if kind == "pytorch_half_pixel" and new == 1 else (i + 0.5) / scale - 0.5


def neighbours(at: float, old: int, options: dict[str, str]) -> list[tuple[int, float]]:
    """Places and weights that make an element of the result."""
    if options.get("mode") == "linear":
        at = min(max(at, 0.0), old - 1.0)
        low = int(np.floor(at))
        return [(low, 1 - (at - low)), (min(low + 1, old - 1), at - low)]
    rounding = options.get("rounding", "round_prefer_floor")
    functions: dict[str, Callable[[float], float]] = {
        "floor": np.floor, "ceil": np.ceil, "round_prefer_floor": lambda c: np.ceil(c - 0.5),
        "round_prefer_ceil": lambda c: np.floor(c + 0.5),
    }  # fmt: skip
    return [(int(min(max(functions[rounding](at), 0), old - 1)), 1.0)]


RESIZES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "twice": ((2, 3, 4, 5), (8, 10), {}),
    "down": ((1, 2, 7, 9), (3, 4), {"rounding": "floor", "coordinates": "asymmetric"}),
    "ceil": ((1, 2, 5, 4), (8, 7), {"rounding": "ceil", "coordinates": "align_corners"}),
    "halves up": ((1, 1, 6), (3,), {"rounding": "round_prefer_ceil", "coordinates": "asymmetric"}),
    "linear": ((2, 3, 4, 5), (9, 7), {"mode": "linear"}),
    "linear corners": ((1, 2, 4, 5), (7, 1), {"mode": "linear", "coordinates": "align_corners"}),
    "linear one": ((1, 2, 4, 5), (1, 8), {"mode": "linear", "coordinates": "pytorch_half_pixel"}),
    "linear line": ((2, 3, 11), (27,), {"mode": "linear", "coordinates": "asymmetric"}),
    "linear box": ((1, 2, 3, 4, 3), (5, 3, 7), {"mode": "linear"}),
}


@pytest.mark.parametrize("case", RESIZES)
def test_resize_mixes_neighbours(case: str, run_portably: Run) -> None:
    shape, lengths, options = RESIZES[case]
    x = normal(1, *shape)
    b = dg.Builder("resize")
    g = b.graph(y=dg.tanh(dg.resize(b.input("x", shape), lengths, **options)))
    result = run_portably(g, {"x": x})["y"]
    expected = x.astype(np.float64)
    for axis, (old, new) in enumerate(zip(shape[2:], lengths, strict=True), start=2):
        kind = options.get("coordinates", "half_pixel")
        parts: list[HostArray] = []
        for i in range(new):
            mix = neighbours(coordinate(kind, i, old, new, new / old), old, options)
            parts.append(sum(w * np.take(expected, place, axis) for place, w in mix))  # pyright: ignore[reportArgumentType]
        expected = np.stack(parts, axis)
    assert np.abs(result - np.tanh(expected)).max() < CLOSE


def test_scales_say_lengths_and_coordinates(run_portably: Run) -> None:
    x = normal(2, 1, 1, 5, 5)
    b = dg.Builder("resize")
    value = b.input("x", x.shape)
    g = b.graph(y=dg.resize(value, scales=(1.5, 0.7), coordinates="asymmetric", rounding="floor"))
    result = run_portably(g, {"x": x})["y"]
    assert result.shape == (1, 1, 7, 3)
    rows, columns = (np.arange(7) / 1.5).astype(int), (np.arange(3) / 0.7).astype(int)
    assert (result[0, 0] == x[0, 0][rows][:, columns]).all()


def test_a_neighbour_of_no_weight_does_not_matter(run_portably: Run) -> None:
    x = np.array([[[1.0, np.nan, 2.0, np.inf, 3.0]]], np.float32)
    b = dg.Builder("resize")
    y = dg.resize(b.input("x", x.shape), (9,), mode="linear", coordinates="align_corners")
    result = run_portably(b.graph(y=y), {"x": x})["y"][0, 0]
    assert list(result[[0, 4, 6, 8]]) == [1.0, 2.0, np.inf, 3.0]
    assert np.isnan(result[1:4]).all()


def test_an_empty_value_is_resized_to_an_empty_one(run_portably: Run) -> None:
    b = dg.Builder("resize")
    g = b.graph(y=dg.resize(b.input("x", (0, 2, 3)), (6,)))
    assert run_portably(g, {"x": np.empty((0, 2, 3), np.float32)})["y"].shape == (0, 2, 6)


@pytest.mark.parametrize("kind", ["u8", "i8", "i16"])
def test_numbers_are_quantised_and_back(kind: str, run_portably: Run) -> None:
    x = np.concatenate([normal(1, 56) * 40, [2.5, -2.5, np.nan, np.inf, -np.inf, 0.5, 1e30, -1.5]]).astype(np.float32)
    x = x.reshape(2, 4, 8)
    numbers = np.iinfo({"u8": np.uint8, "i8": np.int8, "i16": np.int16}[kind])
    scale = np.array([0.5, 1.0, 0.1, 3.0], np.float32)
    zero = np.array([3, 0, 120, 7], numbers.dtype)
    b = dg.Builder("quantise")
    value, single = b.input("x", x.shape), b.constant(0.25)
    q = dg.quantize_linear(value, b.param("scale", scale), b.param("zero", zero), axis=-2)
    whole = dg.quantize_linear(value, single, to=kind)
    g = b.graph(
        q=q, whole=whole, back=dg.dequantize_linear(q, b.param("s", scale), b.param("z", zero), axis=1),
        plain=dg.dequantize_linear(whole, single),
    )  # fmt: skip
    results = run_portably(g, {"x": x})
    for name, s, z in (("q", scale[:, None], zero[:, None]), ("whole", np.float32(0.25), 0)):
        steps = np.rint(x / s).astype(np.float64) + z
        expected = np.clip(np.nan_to_num(steps, nan=0.0, posinf=1e9, neginf=-1e9), numbers.min, numbers.max)
        assert results[name].dtype == numbers.dtype
        assert (results[name] == expected).all(), name
    back = (results["q"].astype(np.float32) - zero[:, None].astype(np.float32)) * scale[:, None]
    assert (results["back"] == back).all()
    assert (results["plain"] == results["whole"].astype(np.float32) * np.float32(0.25)).all()


def test_sums_of_products_of_integers_are_dequantised(run_portably: Run) -> None:
    x = np.array([[5, -7, 2**24 + 1]], np.int32)
    b = dg.Builder("quantise")
    g = b.graph(y=dg.dequantize_linear(b.input("x", (1, 3), "i32"), b.param("s", np.array([0.5, 2, 1], np.float32))))
    assert run_portably(g, {"x": x})["y"].tolist() == [[2.5, -14.0, 2.0**24]]


def b_input(b: dg.Builder, shape: tuple[int, ...], kind: str = "f32") -> dg.Tensor:
    return b.input(f"i{len(b.nodes)}", shape, kind)


MISTAKES: dict[str, tuple[Callable[[dg.Builder, dg.Tensor], object], str]] = {
    "weights": (lambda b, x: dg.instance_norm(x, b_input(b, (3,)), b_input(b, (4,))), "weights (3,), (4,) for"),
    "groups": (lambda b, x: dg.group_norm(x, b_input(b, (4,)), b_input(b, (4,)), 3), "4 channels are no 3 groups"),
    "epsilon": (lambda b, x: dg.layer_norm_2d(x, b_input(b, (4,)), b_input(b, (4,)), -1.0), "epsilon is -1.0"),
    "rank": (lambda b, x: dg.group_norm(x.reshape(-1), x.reshape(-1), x.reshape(-1), 1), "is not defined for f32[192]"),
    "empty": (lambda b, x: dg.instance_norm(b_input(b, (2, 0)), b_input(b, (0,)), b_input(b, (0,))), "of nothing"),
    "mode": (lambda b, x: dg.resize(x, (2, 2), mode="cubic"), "mode='cubic' is none. Fix: use one of nearest, linear"),
    "lengths": (lambda b, x: dg.resize(x, (0, 2)), "do not become"),
    "many": (lambda b, x: dg.resize(x, (2, 2, 2, 2)), "4 axes of"),
    "huge": (lambda b, x: dg.resize(x, (1 << 20, 1 << 20)), "elements"),
    "scales": (lambda b, x: dg.resize(x, scales=(-1.0, 2.0)), "scales="),
    "both": (lambda b, x: dg.resize(x, (3, 3), scales=(1.0, 2.0)), "do not agree"),
    "neither": (lambda b, x: dg.resize(x), "is no list of integers"),
    "integers": (lambda b, x: dg.resize(dg.cast(x, "i32"), (2, 2)), "is not defined for int32"),
    "target": (lambda b, x: dg.quantize_linear(x, b.constant(1.0), to="f16"), "no quantised numbers of float16"),
    "zero": (lambda b, x: dg.dequantize_linear(x, b.constant(1.0)), "there are no quantised numbers of float32"),
    "scale": (lambda b, x: dg.quantize_linear(x, b_input(b, (5,))), "along axis 1 of (2, 4, 4, 6)"),
    "axis": (lambda b, x: dg.quantize_linear(x, b_input(b, (4,)), axis=9), "along axis 9 of"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_is_an_error_where_it_is_added(mistake: str) -> None:
    b = dg.Builder("mistakes")
    x = b.input("x", (2, 4, 4, 6))
    add, text = MISTAKES[mistake]
    with pytest.raises(GraphError, match=re.escape(text)) as error:
        add(b, x)
    assert str(error.value).startswith("node '")
    assert "Fix: " in str(error.value)


def test_every_name_of_a_coordinate_and_a_rounding_is_taken() -> None:
    b = dg.Builder("names")
    x = b.input("x", (1, 1, 4))
    kinds = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
    for kind, rounding in itertools.product(kinds, ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")):
        assert dg.resize(x, (6,), coordinates=kind, rounding=rounding).shape == (1, 1, 6)
