"""Kernels that NumPy has as functions: their values, their awkward arguments, and bits that must not change."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.errors import DTypeError
from dashi.kernels import portable
from dashi.kernels._glsl import INCLUDES
from dashi.kernels.portable import _accuracy as accuracy
from dashi.runtime.device import Device
from dashi.types import DTYPES

FLOATS = pytest.mark.parametrize("kind", [np.float32, np.float64])
NAN, INF = np.nan, np.inf


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


UNARY: dict[str, tuple[Callable[..., Any], float]] = {
    "exp": (np.exp, 1), "log": (np.log, 1), "sin": (np.sin, 1), "cos": (np.cos, 1), "rsqrt": (_rsqrt, 1.3),
    "sqrt": (np.sqrt, 0.5), "reciprocal": (np.reciprocal, 0.5), "square": (np.square, 0.5),
    "atan": (np.arctan, 1), "floor": (np.floor, 0), "ceil": (np.ceil, 0), "trunc": (np.trunc, 0), "round": (np.rint, 0),
    "abs": (np.abs, 0), "neg": (np.negative, 0), "sign": (np.sign, 0),
}  # fmt: skip
"""NumPy's function, and how many ulp of the true value the kernel may be away."""


@FLOATS
@pytest.mark.parametrize("name", UNARY)
def test_a_function_is_numpys_within_its_error(device: Device, name: str, kind: Any) -> None:
    function, ulps = UNARY[name]
    x = np.linspace(0.03, 9, 257).astype(kind)
    x = x if name in ("log", "sqrt", "rsqrt") else np.concatenate([x, -x])
    true = function(x.astype(np.longdouble))
    got = device.run(name, x).numpy()
    assert got.dtype == kind
    assert (np.abs(got - true) <= ulps * np.spacing(np.abs(true.astype(kind)))).all()


AWKWARD = [NAN, INF, -INF, 0.0, -0.0, 1e-40, -1.0]
"""1e-40 is subnormal in fp32, and below the smallest magnitude kept."""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exp", [NAN, INF, 0, 1, 1, 1]),
        ("log", [NAN, INF, NAN, -INF, -INF, -INF, NAN]),
        ("sqrt", [NAN, INF, NAN, 0, 0, 0, NAN]),
        ("rsqrt", [NAN, 0, NAN, INF, INF, INF, NAN]),
        ("reciprocal", [NAN, 0, 0, INF, INF, INF, -1]),
        ("sin", [NAN, NAN, NAN, 0, 0, 0]),
        ("cos", [NAN, NAN, NAN, 1, 1, 1]),
        ("abs", [NAN, INF, INF, 0, 0, 0, 1]),
        ("neg", [NAN, -INF, INF, 0, 0, 0, 1]),
        ("sign", [NAN, 1, -1, 0, 0, 0, -1]),
        ("square", [NAN, INF, INF, 0, 0, 0, 1]),
        ("erf", [NAN, 1, -1, 0, 0, 0]),
        ("atan", [NAN, np.pi / 2, -np.pi / 2, 0, 0, 0, -np.pi / 4]),
        ("floor", [NAN, INF, -INF, 0, 0, 0, -1]),
        ("ceil", [NAN, INF, -INF, 0, 0, 0, -1]),
        ("trunc", [NAN, INF, -INF, 0, 0, 0, -1]),
        ("round", [NAN, INF, -INF, 0, 0, 0, -1]),
    ],
)
def test_functions_of_awkward_arguments(device: Device, name: str, expected: list[float]) -> None:
    got = device.run(name, np.array(AWKWARD[: len(expected)], np.float32)).numpy()
    assert got.tobytes() == np.array(expected, np.float32).tobytes()  # +0 for zeros, one NaN


@FLOATS
def test_powers_and_angles_are_numpys_within_an_ulp(device: Device, kind: Any) -> None:
    x, y = np.linspace(0.1, 9, 257).astype(kind), np.linspace(-7, 7, 257).astype(kind)
    for name, function, arguments in (("pow", np.power, (x, y)), ("atan2", np.arctan2, (y, x - kind(4)))):
        true = function(*(a.astype(np.longdouble) for a in arguments))
        got = device.run(name, *arguments).numpy()
        assert (np.abs(got - true) <= np.spacing(np.abs(true.astype(kind)))).all()
        assert device.run(function.__name__, *arguments).numpy().tobytes() == got.tobytes()


@FLOATS
def test_division_is_correctly_rounded_and_has_ieee_ends_without_negative_zero(device: Device, kind: Any) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 1001)).astype(kind)
    assert device.run("div", x, y).numpy().tobytes() == (x / y).tobytes()
    top = np.array([1, -1, 1, 0, INF, INF, 1, NAN], kind)
    bottom = np.array([0, 0, -0.0, 0, INF, -2, -INF, 1], kind)
    expected = np.array([INF, -INF, INF, NAN, NAN, -INF, 0, NAN], kind)
    assert device.run("div", top, bottom).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_maximum_and_minimum_choose_element_by_element_and_nan_wins(device: Device, kind: Any) -> None:
    x = np.array([1, 5, NAN, 2, -INF, -0.0], kind)
    y = np.array([3, -5, 0, NAN, INF, 0.0], kind)
    for name, expected in (("maximum", [3, 5, NAN, NAN, INF, 0]), ("minimum", [1, -5, NAN, NAN, -INF, 0])):
        assert device.run(name, x, y).numpy().tobytes() == np.array(expected, kind).tobytes()


@pytest.mark.parametrize("name", [name for name in DTYPES if name not in ("bf16", "bool")])
def test_copies_fills_and_choices_move_bits_of_every_type(device: Device, name: str) -> None:
    kind = DTYPES[name].numpy
    rng = np.random.default_rng(5)
    for n in (1, 5, 16, 48, 1003):  # whole vectors of 16 bytes, and not
        x, y = (np.frombuffer(rng.bytes(n * kind.itemsize), kind) for _ in range(2))
        condition = rng.integers(0, 2, n).astype(kind)
        assert device.run("copy", x).numpy().tobytes() == x.tobytes()
        assert device.run("fill", x, value=7).numpy().tobytes() == np.full(n, 7, kind).tobytes()
        got = device.run("where", condition, x, y).numpy()
        bits = np.dtype(f"u{kind.itemsize}")
        assert (got.view(bits) == np.where(condition, x.view(bits), y.view(bits))).all()


def test_a_condition_is_what_numpy_holds_for_true(device: Device) -> None:
    condition = np.array([0, -0.0, 1e-45, NAN, -INF, 1], np.float32)
    x, y = np.arange(6, dtype=np.float32), np.full(6, -1, np.float32)
    assert device.run("where", condition, x, y).numpy().tolist() == np.where(condition, x, y).tolist()


@pytest.mark.parametrize("value", [0.1, -0.0, NAN, INF, 1e-40, 1e300])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_fill_is_the_value_rounded_to_the_type(device: Device, kind: Any, value: float) -> None:
    with np.errstate(over="ignore"):
        expected = np.full(5, value, kind)
    assert device.run("fill", np.zeros(5, kind), value=value).numpy().tobytes() == expected.tobytes()


def test_a_fill_refuses_what_the_type_cannot_hold(device: Device) -> None:
    with pytest.raises(DTypeError, match="scalar value is 256, which is not a uint8 number"):
        device.run("fill", np.zeros(3, np.uint8), value=256)


def test_kernels_bound_by_memory_move_as_many_bytes_at_once_as_axpy() -> None:
    widest = next(iter(kernels.get("axpy").tunings.values()))
    for name in ("abs", "neg", "square", "sign", "maximum", "minimum", "copy", "fill", "where"):
        assert next(iter(kernels.get(name).tunings.values())) == widest


DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_numpys_functions_names_kernels_that_are_there() -> None:
    table = (DOCS / "kernels.md").read_text().split("## Functions of NumPy, by name")[1].split("\n\n")[1]
    names = [name for row in table.splitlines()[2:] for name in re.findall("`([^`]+)`", row.split("|")[2])]
    assert {"exp", "div", "where", "gemm_tiled"} <= set(names)
    for name in (name for name in names if "." not in name):  # functions that make kernels have dots
        assert name in (kernels.get(name).name, *kernels.get(name).aliases)


def test_the_table_of_portable_functions_is_that_of_the_include_and_its_twin() -> None:
    rows = re.findall(r"^\| (`\w+\(.*?) \| (.*?) \|", (DOCS / "add-a-kernel.md").read_text(), re.MULTILINE)
    twins = {
        shader: twin
        for left, right in rows
        for shader, twin in zip(re.findall(r"`(\w+)\(", left), re.findall(r"`([\w.]+)`", right), strict=True)
    }
    assert {f"p_{function.name}" for function in accuracy.FUNCTIONS} <= set(twins)
    text = "".join(path.read_text() for path in INCLUDES.glob("portable_f32*.glsl"))
    for shader, twin in twins.items():
        assert re.search(rf"^\w+ {shader}\(", text, re.MULTILINE), shader
        assert twin in portable.__all__ or twin == "np.isnan"
