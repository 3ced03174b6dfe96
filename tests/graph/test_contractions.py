"""Contractions over any axes, products in groups, and Fourier transforms: what they compute, and that devices give
their bits."""

from __future__ import annotations

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
Axes = tuple[tuple[int, ...], tuple[int, ...]]
CLOSE = 1e-5
"""Above what sums of 100 products of order 1 in fp32 may be off, 100 x 2^-24."""
NONE: Axes = ((), ())


def normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


DOTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Axes, Axes, str]] = {
    "matrices": ((3, 4), (4, 5), ((1,), (0,)), NONE, "ij,jk->ik"),
    "two axes": ((3, 4, 5), (5, 4, 2), ((1, 2), (1, 0)), NONE, "ijk,kjl->il"),
    "batch": ((2, 3, 4), (5, 4, 2), ((-1,), (1,)), ((0,), (-1,)), "bij,kjb->bik"),
    "two batches": ((2, 3, 4, 6), (3, 6, 2), ((3,), (1,)), ((0, 1), (2, 0)), "abij,bja->abi"),
    "outer": ((3,), (4,), NONE, NONE, "i,j->ij"),
    "inner": ((7,), (7,), ((0,), (0,)), NONE, "i,i->"),
    "numbers": ((), (3,), NONE, NONE, ",i->i"),
    "empty": ((3, 0), (0, 4), ((1,), (0,)), NONE, "ij,jk->ik"),
}


@pytest.mark.parametrize("case", DOTS)
def test_dot_general_is_the_sum_of_einsum(case: str, run_portably: Run) -> None:
    left, right, contracting, batch, formula = DOTS[case]
    x, y = normal(1, *left), normal(2, *right)
    b = dg.Builder("dot")
    z = dg.dot_general(b.input("x", left), b.input("y", right), contracting, batch)
    result = run_portably(b.graph(z=z), {"x": x, "y": y})["z"]
    expected = np.einsum(formula, x.astype(np.float64), y.astype(np.float64))
    assert result.shape == expected.shape
    assert np.abs(result - expected).max(initial=0) < CLOSE


def test_each_row_is_multiplied_with_the_matrix_of_its_group(run_portably: Run) -> None:
    x, w = normal(1, 6, 70), normal(2, 4, 70, 5)
    group = np.array([3, 0, 0, 2, 7, 3], np.uint32)
    x[1, 3] = np.nan
    w[1] = np.inf  # a group that no row has
    b = dg.Builder("experts")
    y = dg.grouped_matmul(b.input("x", x.shape), b.param("w", w), b.input("group", (6,), "u32"))
    result = run_portably(b.graph(y=y), {"x": x, "group": group})["y"]
    expected = np.zeros((6, 5))
    for i in (0, 2, 3, 5):
        expected[i] = x[i].astype(np.float64) @ w[group[i]]
    assert np.isnan(result[1]).all()
    assert np.abs(np.delete(result - expected, 1, 0)).max() < 4 * CLOSE
    alone = dg.Builder("alone")
    g = alone.graph(y=alone.input("x", (1, 70)) @ alone.param("w", w[3]))
    assert dg.evaluate(g, {"x": x[:1]})["y"].tobytes() == result[:1].tobytes()


@pytest.mark.parametrize("n", [1, 2, 15, 16, 30, 64])
def test_transforms_are_those_of_numpy(n: int, run_portably: Run) -> None:
    x, z = normal(1, 2, 3, n), normal(2, 2, 3, n, 2)
    b = dg.Builder("spectrum")
    real, pairs = b.input("x", x.shape), b.input("z", z.shape)
    modes = dg.rfft(real)
    g = b.graph(
        modes=modes, back=dg.irfft(modes, n), forward=dg.fft(pairs), inverse=dg.tanh(dg.fft(pairs, inverse=True))
    )
    results = run_portably(g, {"x": x, "z": z})
    complex_z = (z[..., 0] + 1j * z[..., 1]).astype(np.complex128)
    backward = np.fft.ifft(complex_z)
    expected = {
        "modes": as_pairs(np.fft.rfft(x.astype(np.float64))), "back": x, "forward": as_pairs(np.fft.fft(complex_z)),
        "inverse": np.tanh(as_pairs(backward)),
    }  # fmt: skip
    for name, values in expected.items():
        assert results[name].shape == values.shape
        assert np.abs(results[name] - values).max() < CLOSE * max(1, np.abs(values).max()), name


def as_pairs(values: Floats) -> Floats:
    return np.stack([np.real(values), np.imag(values)], -1)


def test_a_line_has_the_same_modes_in_every_batch() -> None:
    def spectrum(lines: int, x: HostArray) -> HostArray:
        b = dg.Builder("spectrum")
        return dg.evaluate(b.graph(y=dg.rfft(b.input("x", (lines, 12)))), {"x": x})["y"]

    many = np.full((8, 12), np.nan, np.float32)
    many[5] = normal(1, 12)
    assert spectrum(8, many)[5].tobytes() == spectrum(1, many[5:6])[0].tobytes()


MISTAKES: dict[str, tuple[Callable[[dg.Builder, dg.Tensor], object], str]] = {
    "axes": (lambda b, x: dg.dot_general(x, x, ((3,), (0,))), "(3,) are no different axes of (4, 6)"),
    "twice": (lambda b, x: dg.dot_general(x, x, ((0, 0), (0, 0))), "are no different axes"),
    "lengths": (lambda b, x: dg.dot_general(x, x, ((0,), (1,))), "contracting axes of [4] and [6] do not fit"),
    "batch": (lambda b, x: dg.dot_general(x, x, NONE, ((0,), (1,))), "batch axes of [4] and [6] do not fit"),
    "large": (lambda b, x: dg.dot_general(b.input("v", (1 << 20,)), b.input("u", (1 << 20,)), NONE), "elements"),
    "groups": (lambda b, x: dg.grouped_matmul(x, b.input("w", (3, 6, 2)), b.input("g", (4,))), "in groups of float32"),
    "rows": (lambda b, x: dg.grouped_matmul(x, b.input("w", (3, 5, 2)), b.input("g", (4,), "u32")), "do not fit"),
    "no groups": (lambda b, x: dg.grouped_matmul(x, b.input("w", (0, 6, 2)), b.input("g", (4,), "u32")), "no groups"),
    "prime": (lambda b, x: dg.rfft(b.input("v", (11,))), "there is no Fourier transform of 11 values"),
    "long": (lambda b, x: dg.rfft(b.input("v", (8192,))), "Fix: pad or crop to 4096"),
    "pairs": (lambda b, x: dg.fft(x), "fft of (4, 6)"),
    "modes": (lambda b, x: dg.irfft(b.input("v", (5, 2)), 10), "5 modes are not those of 10 values"),
    "integers": (lambda b, x: dg.rfft(dg.cast(x, "i32")), "is not defined for int32"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_is_an_error_where_it_is_added(mistake: str) -> None:
    b = dg.Builder("mistakes")
    x = b.input("x", (4, 6))
    add, text = MISTAKES[mistake]
    with pytest.raises(GraphError, match=re.escape(text)) as error:
        add(b, x)
    assert str(error.value).startswith("node '")
    assert "Fix: " in str(error.value)
