"""Fourier transforms: the lengths that there are, the radices of each, and the tables of roots of unity.

A transform of n values is a Stockham sequence of radices, a function of n and of what it is used for, so that its bits
depend on nothing else. Roots of unity are computed here once, in integers, and rounded correctly, so that they are the
same on every machine: no library's sine is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from dashi.errors import ShapeError

LONGEST: Final = 4096
MOST_STAGES: Final = 7
PRIMES: Final = (2, 3, 5, 7)
_FRACTION_BITS: Final = 192
_POWERS: Final = (
    (), (2,), (4,), (8,), (16,), (8, 4), (8, 8), (16, 8), (16, 16), (8, 8, 8), (8, 16, 8), (16, 8, 16), (16, 16, 16),
)  # fmt: skip
"""Radices of the power of two in a length. Where it costs nothing the first is the last, so that an inverse transform
leaves every value where a forward one wants it."""
ALONE: Final[Mapping[int, tuple[int, ...]]] = {32: (4, 2, 4), 64: (4, 4, 4), 128: (8, 2, 8), 256: (8, 4, 8)}
"""Other radices of lengths that are this power of two and nothing else: with fewer values to a butterfly more of them,
which keep the invocations of a small workgroup busy. Where odd factors follow, a stage more would cost more than that.
"""
Use = Literal["within", "lines", "rows", "columns"]
"""What a transform is used for: within real transforms and the solver; as `fft`; as the rows or columns of `fft2`."""
FIELD_USES: Final = ("rows", "columns")
OTHERS: Final[Mapping[Use, Mapping[int, tuple[int, ...]]]] = {
    "within": {},
    "lines": {1024: (16, 8, 8)},
    "rows": {1024: (16, 16, 4)},
    "columns": {1024: (4, 16, 16)},
}
"""Other radices of transforms of complex arrays: nothing follows them that would want the first to be the last. Rows
that end as columns begin let one pass do both (`dashi.kernels.fft._plans.FftPass.fused_radix`)."""

Floats = npt.NDArray[Any]


def radices(n: int, use: Use = "within") -> tuple[int, ...]:
    """The radices of a transform of n values, first stage first; none for one value."""
    require_length(n)
    if n in OTHERS[use]:
        return OTHERS[use][n]
    if n in ALONE:
        return ALONE[n]
    twos, rest = (n & -n).bit_length() - 1, n >> ((n & -n).bit_length() - 1)
    odd: list[int] = []
    for prime in PRIMES[:0:-1]:
        while rest % prime == 0:
            odd.append(prime)
            rest //= prime
    return (*_POWERS[twos], *odd)


def is_length(n: int) -> bool:
    """Whether there is a transform of n values: 2^a 3^b 5^c 7^d, up to 4096."""
    if not 1 <= n <= LONGEST:
        return False
    for prime in PRIMES:
        while n % prime == 0:
            n //= prime
    return n == 1


def require_length(n: int) -> None:
    """An error for lengths that there is no transform of, with the nearest that there are."""
    if is_length(n):
        return
    above = next((m for m in range(max(n, 1), LONGEST + 1) if is_length(m)), None)
    below = next(m for m in range(min(max(n, 1), LONGEST), 0, -1) if is_length(m))
    near = f"{below} or {above}" if above is not None and above != below else str(below)
    raise ShapeError(
        f"there is no Fourier transform of {n} values: lengths are 2^a 3^b 5^c 7^d, from 1 to {LONGEST}.",
        f"pad or crop to {near}.",
    )


def require_modes(name: str, n: int, modes: int) -> None:
    """An error for real lines of n values that cannot be transformed, or do not have so many modes."""
    require_length(n)
    if modes != n // 2 + 1:
        raise ShapeError(
            f"kernel {name!r}: real lines of {n} values have {n // 2 + 1} modes, not {modes}.",
            f"pass modes={n // 2 + 1}, or factors for lines of {2 * (modes - 1)} values.",
        )


def table(n: int, dtype: npt.DTypeLike, use: Use = "within") -> Floats:
    """The factors of all stages of a transform of n values, (n, 2). Entry t s + k of a stage that joins transforms of
    s values by radix r is exp(-2 pi i t k / (s r)), for 0 < t < r and 0 <= k < s: stages follow each other."""
    roots = unit_roots(n, dtype)
    factors = np.zeros((n, 2), dtype)
    factors[0, 0] = 1
    size = 1
    for radix in radices(n, use):
        places = np.arange(size, size * radix)
        factors[places] = roots[places // size * (places % size) * (n // (size * radix))]
        size *= radix
    return factors


def real_table(n: int, dtype: npt.DTypeLike) -> Floats:
    """The factors of a real transform of n values, (n, 2): for even n those of the complex transform of n/2 values,
    and then exp(-2 pi i k / n) for k < n/2; for odd n those of the complex transform of n values."""
    if n % 2:
        return table(n, dtype)
    require_length(n)
    return np.concatenate([table(n // 2, dtype), unit_roots(n, dtype)[: n // 2]])


def unit_roots(n: int, dtype: npt.DTypeLike) -> Floats:
    """exp(-2 pi i m / n) for m < n as pairs (n, 2), every part correctly rounded."""
    kind = np.dtype(dtype)
    digits = {4: 24, 8: 53}[kind.itemsize]
    pairs = np.empty((n, 2), kind)
    for m, (cosine, sine) in enumerate(_roots(n)):
        pairs[m] = _rounded(cosine, digits), -_rounded(sine, digits)
    return canonical_zeros(pairs)


def canonical_zeros(values: Floats) -> Floats:
    """-0 as +0."""
    return values + values.dtype.type(0)


def _roots(n: int) -> Iterator[tuple[int, int]]:
    """cos and sin of 2 pi m / n for m < n, as fixed-point integers. Each comes from the one before by a product, whose
    error is below 4 units in the last of 192 places: 4096 of them leave more than 170 places right."""
    unity = 1 << _FRACTION_BITS
    step = _turn(n)
    now = (unity, 0)
    for m in range(n):
        quarter, rest = divmod(4 * m, n)
        if rest == 0:
            now = ((unity, 0), (0, unity), (-unity, 0), (0, -unity))[quarter]
        yield now
        (a, b), (c, d) = now, step
        now = (a * c - b * d) >> _FRACTION_BITS, (a * d + b * c) >> _FRACTION_BITS


def _turn(n: int) -> tuple[int, int]:
    """cos and sin of 2 pi / n by their series, in 192 places, worked out in 64 more."""
    bits = _FRACTION_BITS + 64
    angle = 2 * _pi(bits) // n
    square = angle * angle >> bits
    parts: list[int] = []
    for first, start in ((1 << bits, 0), (angle, 1)):
        total, term, k = 0, first, start
        while term:
            total += term
            term = -((term * square >> bits) // ((k + 1) * (k + 2)))
            k += 2
        parts.append(total >> 64)
    return parts[0], parts[1]


def _pi(bits: int) -> int:
    """Machin's formula, pi = 16 atan(1/5) - 4 atan(1/239)."""
    more = bits + 16

    def inverse_tangent(x: int) -> int:
        total, power, k = 0, (1 << more) // x, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power //= x * x
            k += 2
        return total

    return (16 * inverse_tangent(5) - 4 * inverse_tangent(239)) >> 16


def _rounded(value: int, digits: int) -> float:
    """A fixed-point integer rounded to so many binary digits. What the integer leaves out could matter only within
    2^-40 of the middle between two results, where no root that is asked for lies (this is checked)."""
    size = abs(value)
    spare = size.bit_length() - digits
    if spare <= 0:
        return value / (1 << _FRACTION_BITS)
    rest = size & ((1 << spare) - 1)
    middle = 1 << (spare - 1)
    if rest and abs(rest - middle) >> max(spare - 40, 0) == 0:
        raise AssertionError("a root of unity too near the middle between two numbers")
    whole = ((size >> spare) + int(rest > middle)) << spare
    return float(np.copysign(whole / (1 << _FRACTION_BITS), value))


def constants(dtype: npt.DTypeLike) -> dict[str, Any]:
    """What the butterflies multiply with, by the names that the shaders use."""
    values: dict[str, Any] = {}
    for name, n, m, part in _CONSTANTS:
        root = unit_roots(n, dtype)[m]
        values[name] = root[0] if part == "cos" else -root[1]
    return values


_CONSTANTS: Final = (
    ("COS_8", 8, 1, "cos"), ("COS_16", 16, 1, "cos"), ("SIN_16", 16, 1, "sin"), ("SIN_3", 3, 1, "sin"),
    ("COS_5", 5, 1, "cos"), ("COS_5_2", 5, 2, "cos"), ("SIN_5", 5, 1, "sin"), ("SIN_5_2", 5, 2, "sin"),
    ("COS_7", 7, 1, "cos"), ("COS_7_2", 7, 2, "cos"), ("COS_7_3", 7, 3, "cos"), ("SIN_7", 7, 1, "sin"),
    ("SIN_7_2", 7, 2, "sin"), ("SIN_7_3", 7, 3, "sin"),
)  # fmt: skip
