"""Calls: shapes bound to operands, dimensions unified, scalars as the device will see them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dashi.kernels
from dashi.errors import DTypeError, InputError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Kernel, Operand, Scalar
from dashi.runtime.device import Device
from dashi.types import Shape


@pytest.fixture(scope="module")
def matrix() -> Kernel:
    """A kernel's interface with named dimensions; only the interface matters here."""
    return replace(
        dashi.kernels.get("axpy"),
        name="matrix",
        inputs=(Operand("w", shape=("m", "n")), Operand("x", shape=("n",)), Operand("four", "u32", (4,))),
        outputs=(Operand("result", shape=("m",)), Operand("wide", shape=("k", 2))),
        scalars=(Scalar("k", "u32", 3), Scalar("a", default=1.0)),
    )


def test_dimensions_are_unified_and_outputs_follow(matrix: Kernel) -> None:
    call = resolve_call(matrix, "f64", [(5, 7), (7,), (4,)], {"k": 9})
    assert call.dims == {"m": 5, "n": 7, "k": 9}
    assert call.shapes == {"w": (5, 7), "x": (7,), "four": (4,), "result": (5,), "wide": (9, 2)}
    assert call.scalars == {"k": 9, "a": 1.0}
    assert call.dtype.name == "f64"
    assert call.bytes("w", "x") == (35 + 7) * 8


def test_parts_of_a_dimension_are_rounded_up(matrix: Kernel) -> None:
    parts = replace(
        matrix,
        inputs=(Operand("x", shape=("n",)), Operand("plane", "u32", ("n/32",)), Operand("table", "u32", ("k/2",))),
        outputs=(Operand("result", shape=("n/5", "k/3")),),
    )
    for n, words in ((0, 0), (1, 1), (32, 1), (33, 2)):
        call = resolve_call(parts, "f32", [(n,), (words,), (2,)], {"k": 4})
        assert call.shapes["result"] == (-(-n // 5), 2)
        assert call.dims == {"n": n, "k": 4}
    with pytest.raises(ShapeError) as error:
        resolve_call(parts, "f32", [(33,), (1,), (2,)])
    assert str(error.value) == (
        "kernel 'matrix': plane has shape (1,) for (n/32), but n/32 is 2. Fix: give plane the length 2 there."
    )


def test_free_shapes_are_shared() -> None:
    call = resolve_call(dashi.kernels.get("axpy"), np.float32, [(2, 3), (2, 3)], {"a": 1})  # pyright: ignore[reportArgumentType]
    assert call.shapes["result"] == (2, 3)
    assert call.dims == {"size": 6}
    scalar = resolve_call(dashi.kernels.get("axpy"), "f32", [(), ()], {"a": 1})
    assert scalar.shapes["result"] == ()
    assert scalar.size("result") == 1


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            [(5, 7), (7,)],
            "kernel 'matrix' takes 3 arrays (w, x, four), 2 given. Fix: call it with w, x, four, in this order.",
        ),
        (
            [(5, 7), (8,), (4,)],
            "kernel 'matrix': x has shape (8,) for (n), but n is 7 in w. Fix: give x the length 7 there.",
        ),
        (
            [(5, 7, 1), (7,), (4,)],
            "kernel 'matrix': w has shape (5, 7, 1), but its 2 dimensions are (m, n). Fix: reshape w to (m, n).",
        ),
        (
            [(5, 7), (7,), (3,)],
            "kernel 'matrix': four has shape (3,) for (4), but 4 is fixed at 4. Fix: give four the length 4 there.",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_named(matrix: Kernel, shapes: list[Shape], text: str) -> None:
    with pytest.raises(ShapeError) as error:
        resolve_call(matrix, "f32", shapes)
    assert str(error.value) == text


def test_free_shapes_do_not_broadcast() -> None:
    with pytest.raises(ShapeError) as error:
        resolve_call(dashi.kernels.get("axpy"), "f32", [(2, 3), (3,)], {"a": 1})
    assert str(error.value) == (
        "kernel 'axpy': y has shape (3,), but x has shape (2, 3). "
        "Fix: pass arrays of one shape; this kernel does not broadcast."
    )


def test_more_elements_than_shaders_can_index_are_refused() -> None:
    shape = (1 << 16, 1 << 16)
    with pytest.raises(ShapeError) as error:
        resolve_call(dashi.kernels.get("axpy"), "f32", [shape, shape], {"a": 1})
    assert str(error.value) == (
        "kernel 'axpy': x of shape (65536, 65536) has 4294967296 elements; shaders index at most 2147483648. "
        "Fix: split the array into smaller calls."
    )


@pytest.mark.parametrize(
    ("scalars", "kind", "text"),
    [
        ({}, InputError, "kernel 'axpy' needs the scalar 'a'. Fix: pass a=..."),
        (
            {"a": 1, "b": 2},
            InputError,
            "kernel 'axpy' has no scalar 'b'; its scalars are a. Fix: remove or rename it.",
        ),
        (
            {"a": "two"},
            DTypeError,
            (
                "kernel 'axpy': scalar a is 'two', which is not a float32 number. "
                "Fix: pass a as a number that float32 can hold."
            ),
        ),
    ],
)
def test_scalars_that_do_not_fit_are_named(scalars: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as error:
        resolve_call(dashi.kernels.get("axpy"), "f32", [(1,), (1,)], scalars)
    assert str(error.value) == text


@pytest.mark.parametrize("value", [-1, 1 << 32, 1.5, math.inf, math.nan])
def test_an_integer_scalar_must_be_one(matrix: Kernel, value: float) -> None:
    with pytest.raises(DTypeError, match="which is not a uint32 number"):
        resolve_call(matrix, "f32", [(5, 7), (7,), (4,)], {"k": value})


def test_a_length_cannot_be_negative(matrix: Kernel) -> None:
    signed = replace(matrix, scalars=(Scalar("k", "i32", -3), Scalar("a", default=1.0)))
    with pytest.raises(ShapeError) as error:
        resolve_call(signed, "f32", [(5, 7), (7,), (4,)])
    assert str(error.value) == "kernel 'matrix': k is -3, but it is a length. Fix: pass k >= 0."


def test_a_kernel_without_scalars_says_so() -> None:
    with pytest.raises(InputError, match="kernel 'add' has no scalar 'a'; it takes none"):
        resolve_call(dashi.kernels.get("add"), "f32", [(1,), (1,)], {"a": 1})


def test_a_variant_that_is_not_there_is_named() -> None:
    with pytest.raises(DTypeError) as error:
        resolve_call(dashi.kernels.get("add"), "u32", [(1,), (1,)])
    assert str(error.value) == (
        "kernel 'add' has no variant u32; it has f32, f64, f16. Fix: convert the arrays to float32."
    )


@pytest.mark.parametrize("value", [0.1, 1e40, -1e40, 1e-50, math.nan])
def test_float_scalars_are_rounded_once_for_every_backend(value: float) -> None:
    call = resolve_call(dashi.kernels.get("axpy"), "f32", [(1,), (1,)], {"a": value})
    with np.errstate(over="ignore"):
        assert np.float64(call.scalars["a"]).tobytes() == np.float64(np.float32(value)).tobytes()


X = np.ones(3, np.float32)
ARRAYS_WANTED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "a scalar by position": (
        ("axpy", 2, X, X),
        {},
        (
            "kernel 'axpy': x is the number 2, but an array belongs there; scalars go by name. "
            "Fix: call run('axpy', x, y, a=...)."
        ),
    ),
    "a scalar behind the arrays": (
        ("scale", X, 2.0),
        {},
        (
            "kernel 'scale': argument 2 is the number 2.0, but an array belongs there; scalars go by name. "
            "Fix: call run('scale', x, a=...)."
        ),
    ),
    "a number to broadcast": (
        ("add", X, np.float64(1)),
        {},
        (
            "kernel 'add': y is the number 1.0, but an array belongs there. "
            "Fix: pass an array of one element: np.array(1.0, np.float32)."
        ),
    ),
    "a number for named dimensions": (
        ("gemv", 1, np.eye(3)),
        {},
        "kernel 'gemv': x is the number 1, but an array belongs there. Fix: pass an array of shape (k,).",
    ),
    "a number alone": (
        ("relu", 3.0),
        {},
        (
            "kernel 'relu': x is the number 3.0, but an array belongs there. "
            "Fix: pass an array of one element: np.array([3.0], np.float32)."
        ),
    ),
    "nothing": (
        ("add", X, None),
        {},
        (
            "kernel 'add': y is None, but an array belongs there. "
            "Fix: call run('add', x, y) with arrays, for instance np.zeros(5, np.float32)."
        ),
    ),
    "arrays by name": (
        ("axpy",),
        {"x": X, "y": X, "a": 2},
        "kernel 'axpy': x, y passed by name, but arrays go by position. Fix: call run('axpy', x, y, a=...).",
    ),
    "too many": (
        ("add", X, X, 1.0),
        {},
        "kernel 'add' takes 2 arrays (x, y), 3 given. Fix: call it with x, y, in this order.",
    ),
    "an array for a scalar": (
        ("scale", X),
        {"a": X},
        (
            "kernel 'scale': scalar a is an array of shape (3,), but one number belongs there. "
            "Fix: pass a as one number; arrays go by position (x)."
        ),
    ),
    "text for a scalar": (
        ("scale", X),
        {"a": "2"},
        (
            "kernel 'scale': scalar a is '2', which is not a float32 number. "
            "Fix: pass a as a number that float32 can hold."
        ),
    ),
    "a complex scalar": (
        ("scale", X),
        {"a": np.array(2 + 0j)},
        (
            "kernel 'scale': scalar a is array(2.+0.j), which is not a float32 number. "
            "Fix: pass a as a number that float32 can hold."
        ),
    ),
    "a complex array": (
        ("complex_conj", X + 1j),
        {},
        (
            "kernel 'complex_conj': x is complex64; complex numbers are pairs (re, im) here. "
            "Fix: pass x.view(np.float32).reshape(*x.shape, 2) of a C-ordered array, to a kernel of pairs."
        ),
    ),
    "truth values": (
        ("tanh", X > 0),
        {},
        (
            "kernel 'tanh': x is bool, which is no element type here. "
            "Fix: convert it to the type of the other arrays: x.astype(np.float32), for instance."
        ),
    ),
}


@pytest.mark.parametrize("case", ARRAYS_WANTED)
def test_what_is_no_array_or_no_number_is_named_with_what_goes_there(device: Device, case: str) -> None:
    positional, named, text = ARRAYS_WANTED[case]
    with pytest.raises(InputError) as error:
        device.run(*positional, **named)
    assert str(error.value) == text


def test_a_number_is_not_bound_for_an_array(device: Device) -> None:
    x = device.array(X)
    with pytest.raises(InputError, match=r"x is the number 2, .*scalars go by name\. Fix: call run\('axpy', x, y, a="):
        device.bind("axpy", 2, x, x)  # pyright: ignore[reportArgumentType]


def test_the_fixes_for_wrong_arguments_work(device: Device) -> None:
    x = device.array(X)
    assert device.run("axpy", x, x, a=2).numpy().tolist() == [3, 3, 3]
    assert device.run("add", x, np.full(x.shape, 1.0, np.float32)).numpy().tolist() == [2, 2, 2]
    assert device.run("relu", np.array([3.0], np.float32)).numpy().tolist() == [3]
    z = X + 2j * X
    pairs = device.run("complex_conj", z.view(np.float32).reshape(*z.shape, 2)).numpy()
    assert pairs.tolist() == [[1, -2]] * 3
    assert device.run("where", (X > 0).astype(np.float32), X, -X).numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("number", [2, 2.0, True + 1, np.float64(2), np.int8(2), np.array(2.0), Fraction(2)])
def test_numbers_of_any_make_are_scalars(number: Any) -> None:
    assert resolve_call(dashi.kernels.get("scale"), "f32", [(3,)], {"a": number}).scalars == {"a": 2.0}
