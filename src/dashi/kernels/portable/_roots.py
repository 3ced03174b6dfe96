"""Divide and square root, correctly rounded; the fast reciprocal square root; what the other functions share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import DTypeError
from dashi.kernels.portable._bits import Floats, Format, canon, format_of
from dashi.kernels.portable._tables import Coefficients, Table, table_of

_CHUNK: Final = 1 << 16
"""Elements worked on at a time: temporaries stay in the cache."""

Body = Callable[[Floats, Format, Table], Floats]
PairBody = Callable[[Floats, Floats, Format, Table], Floats]


def elementwise(body: Body) -> Callable[[npt.ArrayLike], Floats]:
    """A function of any array from one that maps a short list of canonical values to results."""

    @wraps(body)
    def apply(x: npt.ArrayLike) -> Floats:
        values = np.asarray(x)
        form = format_of(values)
        flat = values.reshape(-1)
        out = np.empty(flat.shape, form.float)
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, _CHUNK):
                part = slice(start, start + _CHUNK)
                out[part] = canon(body(canon(flat[part]), form, table_of(form)))
        return out.reshape(values.shape)

    return apply


def pairwise(body: PairBody) -> Callable[[npt.ArrayLike, npt.ArrayLike], Floats]:
    """A function of two arrays, which broadcast, from one that maps two short lists of canonical values to results."""

    @wraps(body)
    def apply(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
        left, right = np.broadcast_arrays(np.asarray(a), np.asarray(b))
        form = format_of(left)
        if left.dtype != right.dtype:
            raise DTypeError(f"portable maths cannot mix {left.dtype} with {right.dtype}.", "convert one of them.")
        shape, left, right = left.shape, left.reshape(-1), right.reshape(-1)
        out = np.empty(left.shape, form.float)
        with np.errstate(all="ignore"):
            for start in range(0, left.size, _CHUNK):
                part = slice(start, start + _CHUNK)
                out[part] = canon(body(canon(left[part]), canon(right[part]), form, table_of(form)))
        return out.reshape(shape)

    return apply


def elementwise_pair(
    body: Callable[[Floats, Format, Table], tuple[Floats, Floats]],
) -> Callable[[npt.ArrayLike], tuple[Floats, Floats]]:
    """A function of any array with two results from one that maps a short list of canonical values to both."""

    @wraps(body)
    def apply(x: npt.ArrayLike) -> tuple[Floats, Floats]:
        values = np.asarray(x)
        form = format_of(values)
        flat = values.reshape(-1)
        out = np.empty((2, *flat.shape), form.float)
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, _CHUNK):
                part = slice(start, start + _CHUNK)
                for row, result in zip(out, body(canon(flat[part]), form, table_of(form)), strict=True):
                    row[part] = canon(result)
        return out[0].reshape(values.shape), out[1].reshape(values.shape)

    return apply


def head_of(x: Floats, form: Format, table: Table) -> Floats:
    """The upper half of each significand: products of two such are exact."""
    return (x.view(form.word) & form.word(table.head_mask)).view(form.float)


def polynomial(x: Floats, coefficients: Coefficients, form: Format) -> Floats:
    """Horner's rule, from the highest coefficient down."""
    total: Any = form.float(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + form.float(c)
    return total


def refine_reciprocal(d: Floats, seed: Coefficients, steps: int, form: Format) -> Floats:
    """About 1/d: a quadratic seed, then Newton steps that each double the correct bits."""
    unity = form.float(1)
    r = polynomial(d, seed, form)
    for _ in range(steps):
        r = r + r * (unity - d * r)
    return r


def divide(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """a / b, correctly rounded, then canonical. The shader corrects a Newton quotient by its exact integer remainder;
    NumPy's division is correctly rounded, so the bits are the same."""
    with np.errstate(all="ignore"):
        return canon(np.divide(canon(a), canon(b)))


def reciprocal(x: npt.ArrayLike) -> Floats:
    """1 / x, correctly rounded."""
    return divide(format_of(x).float(1), x)


def sqrt(x: npt.ArrayLike) -> Floats:
    """Square root, correctly rounded; NaN below zero. The shader finds the same bits from an integer remainder."""
    with np.errstate(all="ignore"):
        return canon(np.sqrt(canon(x)))


@elementwise
def rsqrt(x: Floats, form: Format, table: Table) -> Floats:
    """1 / sqrt(x) within 1.3 ulp: Newton from an integer seed on the significand scaled into [1, 4)."""
    word, fraction = form.word, form.fraction_bits
    bits = x.view(word)
    exponent = bits >> word(fraction)
    even = form.bias + 1 - (exponent & word(1)).astype(np.int64)
    m = ((bits & word((1 << fraction) - 1)) | (even.astype(word) << word(fraction))).view(form.float)
    y = newton_rsqrt(m, form, table)
    half = (exponent.astype(np.int64) - even) >> 1
    result = (y.view(word) - (half.astype(word) << word(fraction))).view(form.float)
    result = np.where(bits == form.infinity, form.float(0), result)
    result = np.where(bits == 0, form.float(np.inf), result)
    return np.where(bits > form.infinity, form.float(np.nan), result)


def newton_rsqrt(m: Floats, form: Format, table: Table) -> Floats:
    """About 1/sqrt(m) for m in [1, 4)."""
    half = form.float(0.5)
    y = (form.word(table.rsqrt_seed) - (m.view(form.word) >> form.word(1))).view(form.float)
    h = half * m
    for _ in range(table.newton_steps + 1):
        y = y + y * (half - (h * y) * y)
    return y
