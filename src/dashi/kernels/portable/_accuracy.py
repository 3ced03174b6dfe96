"""Measured errors of the portable maths in ulp: `rows()` measures, `markdown(rows)` is the table of the docs.

Each function is evaluated on many arguments: random bit patterns, ranges where it does its work, and hard ones (the
ends of its pieces, the thresholds, the floats nearest to multiples of pi/2). A wide NumPy type ranks them; the worst
and all hard ones are then measured against mpmath, so every number reported is exact.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels import portable
from dashi.kernels.portable._bits import F32, F64, Floats, Format
from dashi.kernels.portable._tables import TWO_OVER_PI

_CONFIRMED: Final = 200
"""How many of the worst arguments, as ranked by the wide type, are measured with mpmath."""

_WIDE: Final = np.longdouble
_SHORT: Final = 1 << 13
"""Elements whose temporaries stay in the cache."""


@dataclass(frozen=True)
class AccuracyRow:
    """The largest error found for one function and precision, with the argument that shows it."""

    function: str
    dtype: str
    ulp: float
    at: tuple[float, ...]
    samples: int


@dataclass(frozen=True)
class Measured:
    """A function of the twin, its wide reference, and the ranges where it does its work."""

    name: str
    wide: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...]
    arguments: int = 1
    second: tuple[tuple[float, float], ...] = ()
    """The ranges of a second argument, where they are not those of the first."""


def _wide_rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _wide_softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _wide_erf(x: Any) -> Any:
    parts = max(1, x.size // _SHORT)
    return np.concatenate([_short_erf(part) for part in np.array_split(x, parts)])


def _short_erf(x: Any) -> Any:
    """A series of terms of one sign, so that nothing cancels; 1 in the wide type from 7."""
    size = np.minimum(np.abs(x), _WIDE(7))
    square = 2 * size * size
    total = term = size
    for n in range(1, 170):
        term = term * square / (2 * n + 1)
        total = total + term
    return np.sign(x) * np.exp(-size * size) * total * 2 / np.sqrt(4 * np.arctan(_WIDE(1)))


FUNCTIONS: Final = (
    Measured("divide", np.divide, ((1, 2), (0.001, 1000)), 2),
    Measured("reciprocal", np.reciprocal, ((1, 2), (-10, 10))),
    Measured("sqrt", np.sqrt, ((1, 4), (0, 1000))),
    Measured("rsqrt", _wide_rsqrt, ((1, 4), (0, 1000))),
    Measured("exp", np.exp, ((-1, 1), (-70, 88), (-671, 709))),
    Measured("log", np.log, ((0.3, 3), (0.99, 1.01), (0, 1e6))),
    Measured("sin", np.sin, ((-4, 4), (-1000, 1000), (-1e9, 1e9))),
    Measured("cos", np.cos, ((-4, 4), (-1000, 1000), (-1e9, 1e9))),
    Measured("tanh", np.tanh, ((-1, 1), (-10, 10), (-20, 20))),
    Measured("softplus", _wide_softplus, ((-1, 1), (-20, 20), (-700, 700))),
    Measured("erf", _wide_erf, ((-1, 1), (0.9, 2), (-6, 6))),
    Measured("pow", np.power, ((0, 20), (0.5, 2), (0.99, 1.01)), 2, ((-20, 20), (-700, 1000), (-60000, 60000))),
    Measured("atan", np.arctan, ((-1, 1), (-3, 3), (-1000, 1000))),
    Measured("atan2", np.arctan2, ((-1, 1), (-1000, 1000)), 2),
    Measured("floor", np.floor, ((-10, 10), (-1e8, 1e8))),
    Measured("ceil", np.ceil, ((-10, 10), (-1e8, 1e8))),
    Measured("trunc", np.trunc, ((-10, 10), (-1e8, 1e8))),
    Measured("round", np.rint, ((-10, 10), (-1e8, 1e8))),
)


def rows(samples: int = 1 << 19, seed: int = 0) -> list[AccuracyRow]:
    """Measure every function in both precisions; `samples` random arguments each, besides the hard ones."""
    return [measure(f, form, samples, seed) for f in FUNCTIONS for form in (F32, F64)]


def measure(function: Measured, form: Format, samples: int, seed: int) -> AccuracyRow:
    """Measure one function in one precision."""
    rng = np.random.default_rng(seed)
    spans = (function.ranges, function.second or function.ranges)[: function.arguments]
    random = [portable.canon(_random(ranges, form, samples, rng)) for ranges in spans]
    hard = portable.canon(hard_arguments(form))
    fixed = [hard] + [rng.permutation(hard) for _ in range(function.arguments - 1)]
    with np.errstate(all="ignore"):
        got = getattr(portable, function.name)(*random)
        wanted = function.wide(*(x.astype(_WIDE) for x in random))
        errors = np.where(_counts(wanted, form), np.abs(got.astype(_WIDE) - wanted) / _ulp(wanted, form), -1)
    worst = np.argsort(errors)[-_CONFIRMED:]
    arguments = [np.concatenate([a[worst], b]) for a, b in zip(random, fixed, strict=True)]
    ulp, at = max(_confirm(function, form, arguments))
    return AccuracyRow(function.name, np.dtype(form.float).name, ulp, at, samples + hard.size)


def markdown(measured: Sequence[AccuracyRow]) -> str:
    """The rows as a table, one line per function."""
    lines = ["| function | fp32 max error (ulp) | fp64 max error (ulp) |", "|---|---|---|"]
    for name in dict.fromkeys(r.function for r in measured):
        cells = {r.dtype: f"{r.ulp:.3f}{_remark(r.ulp)}" for r in measured if r.function == name}
        lines.append(f"| {name} | {cells.get('float32', '-')} | {cells.get('float64', '-')} |")
    return "\n".join(lines) + "\n"


def _remark(ulp: float) -> str:
    return " (exact)" if ulp == 0 else " (correctly rounded)" if ulp <= 0.5 else ""


def _counts(exact: Any, form: Format) -> npt.NDArray[np.bool_]:
    """Results away from the ends of the range: at the threshold a rounding decides between +0 and a number."""
    info = np.finfo(form.float)
    size = np.abs(exact)
    return (size > 2.0**form.tiny_exponent * (1 + 4 * info.eps)) & (size < info.max * (1 - 4 * info.eps))


def _ulp(wanted: Any, form: Format) -> Any:
    _, exponent = np.frexp(wanted)
    return np.ldexp(_WIDE(1), exponent - 1 - form.fraction_bits)


def _random(ranges: tuple[tuple[float, float], ...], form: Format, samples: int, rng: np.random.Generator) -> Floats:
    share = samples // (len(ranges) + 1)
    parts = [rng.integers(0, np.iinfo(form.word).max, share, form.word).view(form.float)]
    parts += [rng.uniform(low, high, share).astype(form.float) for low, high in ranges]
    return np.concatenate(parts)


def hard_arguments(form: Format) -> Floats:
    """The neighbourhood of every point where a formula changes, and the floats nearest to multiples of pi/2."""
    tiny = 2.0**form.tiny_exponent
    points = [tiny, 1, 2, 4, 0.5, 0.75, 1.5, np.pi / 4, np.pi / 2, np.log(2) / 2, np.log(2), 9.01, 19.06, 88.0, 709.0]
    points += [2.0**-13, 2.0**-26, 2.0**-28, 2.0**-55, -np.log(tiny), float(np.finfo(form.float).max)]
    bits = np.array(points, form.float).view(form.word)
    steps = np.arange(9, dtype=form.word)
    near = np.concatenate([(bits[:, None] - steps).ravel(), (bits[:, None] + steps).ravel()]).view(form.float)
    both = np.concatenate([near, -near, np.array(list(_near_quarter_turns(form)), form.float)])
    return both[np.isfinite(both)]


def _near_quarter_turns(form: Format) -> Iterator[float]:
    """For each exponent, the significands whose multiple of 2/pi is nearest to an integer: denominators of the
    convergents of its continued fraction."""
    bits = 32 * len(TWO_OVER_PI)
    number = int.from_bytes(b"".join(w.to_bytes(4, "big") for w in TWO_OVER_PI), "big")
    for exponent in range(-form.fraction_bits, form.bias - form.fraction_bits + 1):
        shifted = number << exponent if exponent >= 0 else number >> -exponent
        a, b = 1 << bits, shifted % (1 << bits)
        before, q = 0, 1
        while b and q < 2 << form.fraction_bits:
            if q >= 1 << form.fraction_bits:
                yield float(q) * 2.0**exponent
            whole, rest = divmod(a, b)
            a, b = b, rest
            before, q = q, whole * q + before


def _confirm(function: Measured, form: Format, arguments: list[Floats]) -> Iterator[tuple[float, tuple[float, ...]]]:
    """Errors against mpmath, each with its arguments."""
    mp: Any = importlib.import_module("mpmath")  # only measuring needs it
    yield 0.0, ()
    with np.errstate(all="ignore"):
        got = getattr(portable, function.name)(*arguments)
    with mp.workprec(256):
        for y, *point in zip(got.tolist(), *(x.tolist() for x in arguments), strict=True):
            if not np.isfinite(y) or not all(np.isfinite(point)) or y == 0:
                continue
            exact = _exact(mp, function.name, *(mp.mpf(x) for x in point))
            if not bool(_counts(float(exact), form)):
                continue
            ulp = mp.mpf(2) ** (mp.frexp(exact)[1] - 1 - form.fraction_bits)
            yield float(abs(mp.mpf(y) - exact) / ulp), tuple(point)


def _exact(mp: Any, name: str, *x: Any) -> Any:
    match name:
        case "divide":
            return x[0] / x[1]
        case "reciprocal":
            return 1 / x[0]
        case "rsqrt":
            return 1 / mp.sqrt(x[0])
        case "softplus":
            return max(x[0], 0) + mp.log1p(mp.exp(-abs(x[0])))
        case "pow":
            return mp.power(*x)
        case "trunc":
            return mp.floor(x[0]) if x[0] > 0 else mp.ceil(x[0])
        case "round":
            return mp.nint(x[0])
        case _:
            return getattr(mp, name)(*x)
