"""Elementwise ops of every element type: NumPy's meaning, wrapped round or rounded after each, fused or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.runtime.device import Device
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

INTEGERS = ("i8", "u16", "i32", "i64", "u64")
RNG = np.random.default_rng(5)
POINTS = np.array([-3.5, -1.0, -0.25, 0.0, 0.3, 1.0, 2.5, 9.0, np.nan, np.inf, -np.inf], np.float32)


def integers(kind: str) -> tuple[Any, Any]:
    """Numbers of all sizes, and such that may be shifts and divisors, 0 among them."""
    limits = np.iinfo(str(dtype_of(kind).numpy))
    x = RNG.integers(limits.min, limits.max, 40, dtype=np.dtype(str(dtype_of(kind).numpy)), endpoint=True)
    y = RNG.integers(-7 if limits.min else 0, 7, 40).astype(x.dtype)
    x[:3], y[:3] = (limits.min, limits.max, 0), (3, 0, 0)
    return x, y


def run(graph: dg.Graph, inputs: dict[str, HostArray], device: Device) -> dict[str, Any]:
    """The uncompiled run, whose bits a device must give without the host, fused and not."""
    expected = dg.evaluate(graph, inputs)
    for passes in (dg.PASSES, dg.UNFUSED):
        with dg.compile(graph, device, passes=passes) as pipeline:
            results = pipeline.dispatch(inputs)
            assert pipeline.report().host_steps == {}
        assert {n: v.tobytes() for n, v in results.items()} == {n: v.tobytes() for n, v in expected.items()}
    return expected


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_wrap_round_after_every_op(kind: str, device: Device) -> None:
    x, y = integers(kind)
    b = dg.Builder("integers")
    u, v = b.input("x", x.shape, kind), b.input("y", y.shape, kind)
    graph = b.graph(
        chain=dg.divide((u + v) * u - v, 3), top=dg.maximum(u, v), low=dg.minimum(u, v), mod=dg.mod(u, v),
        whole=dg.divide(u, v), rest=dg.truncated_mod(u, v), both=dg.bit_and(u, v), either=dg.bit_or(u, v),
        one=dg.bit_xor(u, v), held=dg.clip(u, 2, 5), squared=dg.square(u), fma=dg.fma(u, v, v), sign=dg.sign(u),
        up=dg.shift_left(u, dg.bit_and(v, 7)), down=dg.shift_right(u, dg.bit_and(v, 7)), minus=-u, size=dg.absolute(u),
    )  # fmt: skip
    results = run(graph, {"x": x, "y": y}, device)
    with np.errstate(all="ignore"):
        divisor = np.where(y == 0, 1, y)
        towards_zero = np.array([_quotient(int(a), int(c)) for a, c in zip(x, y, strict=True)], object)
        chain = ((x + y) * x - y).astype(x.dtype)
        meant = {
            "chain": np.array([_quotient(int(a), 3) for a in chain]).astype(x.dtype), "top": np.maximum(x, y),
            "low": np.minimum(x, y), "mod": np.where(y == 0, 0, np.mod(x, divisor)),
            "whole": towards_zero, "rest": x - (towards_zero.astype(object) * y.astype(object)),
            "both": x & y, "either": x | y, "one": x ^ y, "held": np.clip(x, 2, 5), "squared": x * x, "fma": x * y + y,
            "sign": np.sign(x), "up": x << (y & 7), "down": x >> (y & 7), "minus": -x, "size": np.abs(x),
        }  # fmt: skip
    bits = 8 * x.dtype.itemsize
    for name, values in meant.items():
        wrapped = [int(value) % (1 << bits) for value in values.tolist()]
        assert [int(value) % (1 << bits) for value in results[name].tolist()] == wrapped, name


def _quotient(x: int, y: int) -> int:
    return 0 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)


def test_halves_are_rounded_after_every_op(device: Device) -> None:
    x, y = (RNG.standard_normal(50).astype(np.float16) for _ in range(2))
    b = dg.Builder("halves")
    u, v = b.input("x", (50,), "f16"), b.input("y", (50,), "f16")
    graph = b.graph(sum=u + v, chain=(u * v + u) * v, exp=dg.exp(u), power=dg.power(dg.absolute(u), v), silu=dg.silu(u))
    results = run(graph, {"x": x, "y": y}, device)
    assert results["sum"].tobytes() == (x + y + np.float16(0)).tobytes()
    assert results["chain"].tobytes() == ((x * y + x) * y + np.float16(0)).tobytes()
    np.testing.assert_allclose(results["exp"], np.exp(x.astype(np.float64)), rtol=2**-11)
    np.testing.assert_allclose(results["silu"], x / (1 + np.exp(-x.astype(np.float64))), rtol=2**-10)


def test_truth_values_are_joined(device: Device) -> None:
    x, y = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    b = dg.Builder("truth")
    u, v = b.input("x", (4,), "bool"), b.input("y", (4,), "bool")
    z = b.input("z", (11,))
    named = {"both": dg.logical_and(u, v), "either": dg.logical_or(u, v), "one": dg.logical_xor(u, v)}
    named |= {"neither": dg.logical_not(dg.logical_or(u, v)), "same": dg.equal(u, v), "picked": dg.where(u, v, u)}
    within = dg.logical_and(dg.less(z, 2.0), dg.logical_not(dg.is_nan(z)))
    signs = {"plus": dg.is_infinite(z, negative=False), "minus": dg.is_infinite(z, positive=False)}
    none = dg.is_infinite(z, negative=False, positive=False)
    graph = b.graph(**named, **signs, within=within, infinite=dg.is_infinite(z), none=none)
    results = run(graph, {"x": x, "y": y, "z": POINTS}, device)
    assert results["both"].tolist() == (x & y).tolist()
    assert results["either"].tolist() == (x | y).tolist()
    assert results["one"].tolist() == (x ^ y).tolist()
    assert results["neither"].tolist() == (~(x | y)).tolist()
    assert results["same"].tolist() == (x == y).tolist()
    assert results["picked"].tolist() == (x & y).tolist()
    assert results["within"].tolist() == (POINTS < 2).tolist()
    assert results["infinite"].tolist() == np.isinf(POINTS).tolist()
    assert results["plus"].tolist() == np.isposinf(POINTS).tolist()
    assert results["minus"].tolist() == np.isneginf(POINTS).tolist()
    assert not results["none"].any()


def _erf(x: Any) -> Any:
    return np.array([math.erf(v) for v in x])


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _elu(x: Any, alpha: float) -> Any:
    return np.where(x < 0, alpha * np.expm1(x), x)


def _gelu_tanh(x: Any) -> Any:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS: dict[str, tuple[Callable[[dg.Tensor], dg.Tensor], Callable[[Any], Any]]] = {
    "elu": (lambda x: dg.elu(x, 2.0), lambda x: _elu(x, 2)),
    "gelu": (dg.gelu, lambda x: x / 2 * (1 + _erf(x / math.sqrt(2)))),
    "gelu_tanh": (dg.gelu_tanh, _gelu_tanh),
    "hard_sigmoid": (lambda x: dg.hard_sigmoid(x, 0.5, 0.6), lambda x: np.clip(x * 0.5 + 0.6, 0, 1)),
    "hard_swish": (dg.hard_swish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "leaky_relu": (lambda x: dg.leaky_relu(x, 0.1), lambda x: np.where(x < 0, x * 0.1, x)),
    "mish": (dg.mish, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "selu": (dg.selu, lambda x: 1.05070102214813232421875 * _elu(x, 1.67326319217681884765625)),
    "silu": (dg.silu, lambda x: x * _sigmoid(x)),
    "tan": (dg.tan, np.tan),
    "clip": (lambda x: dg.clip(x, lo=-1.0), lambda x: np.maximum(x, -1)),
    "mod": (lambda x: dg.mod(x, -2.0), lambda x: np.mod(x, -2)),
    "truncated_mod": (lambda x: dg.truncated_mod(x, -2.0), lambda x: np.fmod(x, -2)),
    "divide": (lambda x: dg.divide(x, 3.0), lambda x: x / 3),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_activations_are_their_formulas(kind: str, device: Device) -> None:
    x = POINTS[:8].astype(dtype_of(kind).numpy)
    b = dg.Builder("activations")
    t = b.input("x", x.shape, kind)
    chosen = ACTIVATIONS if kind == "f32" else {name: ACTIVATIONS[name] for name in ("gelu", "selu", "mod")}
    results = run(b.graph(**{name: make(t) for name, (make, _) in chosen.items()}), {"x": x}, device)
    # Steps cancel no more than a few bits at these points.
    rtol, atol = (2e-6, 1e-7) if kind == "f32" else (1e-14, 1e-15)
    for name, (_, meant) in chosen.items():
        np.testing.assert_allclose(results[name], meant(x.astype(np.float64)), rtol, atol, err_msg=name)


def test_an_activation_is_fused_with_its_neighbours() -> None:
    b = dg.Builder("fused")
    x = b.input("x", (4,))
    graph = dg.run_passes(b.graph(y=dg.silu(x * 2.0) + dg.gelu_tanh(x)), after="fuse")
    assert [node.op for node in graph.nodes] == ["input", "map"]


REDUCTIONS: dict[str, tuple[Callable[..., dg.Tensor], Callable[..., Any]]] = {
    "absolute_sum": (dg.absolute_sum, lambda x, a: np.abs(x).sum(a)),
    "square_sum": (dg.square_sum, lambda x, a: (x * x).sum(a)),
    "norm": (dg.norm, lambda x, a: np.sqrt((x * x).sum(a))),
    "logsumexp": (dg.logsumexp, lambda x, a: np.log(np.exp(x).sum(a))),
    "prod": (dg.prod, lambda x, a: x.prod(a)),
}


def test_reductions_and_softmax_go_over_any_axes(device: Device) -> None:
    x = RNG.standard_normal((3, 4, 5)).astype(np.float32)
    b = dg.Builder("axes")
    t = b.input("x", x.shape)
    sums = {name: make(t, (0, -1)) for name, (make, _) in REDUCTIONS.items()}
    graph = b.graph(**sums, softmax=dg.softmax(t, 1), logs=dg.log_softmax(t, 0))
    results = run(graph, {"x": x}, device)
    exact = x.astype(np.float64)
    for name, (_, meant) in REDUCTIONS.items():
        np.testing.assert_allclose(results[name], meant(exact, (0, 2)), rtol=1e-6, err_msg=name)
    weights = np.exp(exact)
    np.testing.assert_allclose(results["softmax"], weights / weights.sum(1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(results["logs"], np.log(weights / weights.sum(0)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["bool", "i8", "u32", "i64"])
def test_whole_numbers_are_reduced_exactly_and_wrap_round(kind: str, device: Device) -> None:
    x = integers(kind)[0].reshape(2, 4, 5) if kind != "bool" else RNG.random((2, 4, 5)) < 0.4
    b = dg.Builder("whole")
    t = b.input("x", x.shape, kind)
    results = {"max": dg.max_(t, (0, 2)), "min": dg.min_(t, 1, keepdims=True)}
    meant: dict[str, Any] = {"max": x.max((0, 2)), "min": x.min(1, keepdims=True)}
    if kind != "bool":
        results |= {"sum": dg.sum_(t, (1, 2)), "prod": dg.prod(t, 0), "none": dg.prod(dg.narrow(t, 1, 0, 0), 1)}
        meant |= {
            "sum": x.sum((1, 2), dtype=x.dtype),
            "prod": x.prod(0, dtype=x.dtype),
            "none": np.ones((2, 5), x.dtype),
        }
    computed = dg.evaluate(b.graph(**results), {"x": x})
    for name, values in meant.items():
        assert computed[name].dtype == x.dtype
        np.testing.assert_array_equal(computed[name], values)
    run(b.graph(**{name: results[name] for name in results if name != "none"}), {"x": x}, device)


def test_halves_are_reduced_in_float32_and_rounded_once(device: Device) -> None:
    x = RNG.standard_normal((3, 100)).astype(np.float16)
    b = dg.Builder("halves")
    t = b.input("x", x.shape, "f16")
    results = run(b.graph(sum=dg.sum_(t, 1), softmax=dg.softmax(t, 0)), {"x": x}, device)
    np.testing.assert_allclose(results["sum"], x.astype(np.float64).sum(1), rtol=2**-11)
    weights = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(results["softmax"], weights / weights.sum(0), rtol=2**-11)


MISTAKES: dict[str, tuple[Callable[[dg.Builder, dg.Tensor], object], str]] = {
    "bits of floats": (lambda b, x: dg.bit_and(x, x), "bit_and is not defined for float32. Fix: cast to int32."),
    "logic of floats": (lambda b, x: dg.logical_and(x, x), "node 'logical_and_0' (logical_and of f32[3], f32[3])"),
    "truth values added": (lambda b, x: dg.is_nan(x) + dg.is_nan(x), "add is not defined for bool"),
    "roots of integers": (lambda b, x: dg.sqrt(b.input("i", (2,), "i8")), "sqrt is not defined for int8"),
    "activation of integers": (lambda b, x: dg.silu(b.input("i", (2,), "i32")), "node 'silu_0' (silu of i32[2])"),
    "numbers of an activation": (lambda b, x: b.apply("elu", x), "alpha=None is no number"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_has_no_meaning_is_an_error_that_names_the_node(mistake: str) -> None:
    make, text = MISTAKES[mistake]
    b = dg.Builder("wrong")
    with pytest.raises(GraphError) as error:
        make(b, b.input("x", (3,)))
    assert text in str(error.value)


def test_a_formula_in_text_does_not_compute_in_narrow_numbers() -> None:
    text = 'graph g\n%x = input : i8[3]\n%y = map %x {body=["add in0 in0"], views=[null]} : i8[3]\nreturn y=%y\n'
    with pytest.raises(GraphError, match=r"line 3: .*computes in int8. Fix: cast, compute and cast back."):
        dg.parse_graph(text)
