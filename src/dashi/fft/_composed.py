"""Transforms of lengths that no kernel has, composed of ones that it has: any length from 1 to 32,768.

- Lengths 2^a 3^b 5^c 7^d above 4096 are n1 x n2: transforms of the n1 rows' columns, factors exp(-2 pi i j k / n) while
  the array is turned, transforms of the columns (W. Gentleman and G. Sande, AFIPS Fall Joint Computer Conf. 1966,
  doi 10.1145/1464291.1464352).
- Other lengths are convolutions with the chirp exp(i pi j^2 / n), by transforms of m >= 2 n - 1 values (L. Bluestein,
  IEEE Trans. Audio Electroacoust. 18, 1970, doi 10.1109/TAU.1970.1162132). j^2 is taken modulo 2 n in integers, so
  that factors are roots of unity, correctly rounded; the chirp's transform is computed in float64 by the references.

All is made of portable kernels, so that it has the same bits on every device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels import fuse
from dashi.kernels.abi import Kernel, View
from dashi.kernels.expressions import arguments, where
from dashi.kernels.fft._reference import transform
from dashi.kernels.fft._roots import LONGEST, PRIMES, Floats, is_length, real_table, table, unit_roots
from dashi.kernels.portable import canon, mul
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import Shape

LONGEST_LINE: Final = 32768
"""Values of a line, at most."""


def require_line(n: int) -> None:
    """An error for lengths that there is no transform of."""
    if not 1 <= n <= LONGEST_LINE:
        raise ShapeError(
            f"there is no Fourier transform of {n} values: lines have 1 to {LONGEST_LINE}.",
            f"pad or crop to {min(max(n, 1), LONGEST_LINE)}.",
        )


def is_smooth(n: int) -> bool:
    """Whether a length is 2^a 3^b 5^c 7^d."""
    for prime in PRIMES:
        while n % prime == 0:
            n //= prime
    return n == 1


@cache
def two_factors(n: int) -> tuple[int, int]:
    """The two most equal lengths of kernels whose product a smooth length is; the larger first."""
    root = math.isqrt(n)
    small = next(d for d in range(root, 0, -1) if n % d == 0 and is_length(d) and is_length(n // d))
    return n // small, small


@cache
def padded_length(n: int) -> int:
    """The length of the transforms that a chirp of n values takes: a single kernel's, if it can be."""
    least = 2 * n - 1
    power = 1 << (least - 1).bit_length()
    if power <= LONGEST:
        return next(m for m in range(least, power + 1) if is_length(m) and (m == power or m % 16 == 0))
    return next(m for m in range(least, power + 1) if m == power or (m % 64 == 0 and is_smooth(m) and _splits(m)))


def _splits(n: int) -> bool:
    return all(is_length(part) for part in two_factors(n))


@lru_cache(maxsize=8)
def _roots(n: int, dtype: str) -> Floats:
    """Roots of unity, whose integers take a while: 0.1 s for 65,536 of them."""
    return unit_roots(n, dtype)


def chirp(n: int, dtype: Any, *, inverse: bool) -> Floats:
    """exp(-i pi j^2 / n) of j < n, or its conjugate, (n, 2)."""
    place = np.arange(n, dtype=np.int64)
    factors = np.ascontiguousarray(_roots(2 * n, np.dtype(dtype).name)[place * place % (2 * n)])
    return _conjugate(factors) if inverse else factors


@cache
def chirp_modes(n: int, dtype: str, *, inverse: bool) -> Floats:
    """The transform of the conjugate chirp round a circle of `padded_length(n)` places, over that length."""
    m = padded_length(n)
    wrapped = np.zeros((1, m, 1, 2))
    factors = chirp(n, np.float64, inverse=not inverse)
    wrapped[0, :n, 0] = factors
    wrapped[0, m - n + 1 :, 0] = factors[:0:-1]
    modes = reference_lines(wrapped)[0, :, 0]
    return canon((modes / m).astype(dtype))


def reference_lines(x: Floats) -> Floats:
    """The forward transform of smooth lines (lines, n, columns, 2) in NumPy, as the kernels have it."""
    lines, n, columns, _ = x.shape
    if is_length(n):
        return transform(x, table(n, x.dtype, "lines"), False, 1.0, use="lines")
    rows, width = two_factors(n)
    first = reference_lines(x.reshape(lines, rows, width * columns, 2)).reshape(lines, rows, width, columns, 2)
    w = turning_factors(n, x.dtype, inverse=False).reshape(1, rows, width, 1, 2)
    real = mul(w[..., 0], first[..., 0]) - mul(w[..., 1], first[..., 1])
    imaginary = mul(w[..., 0], first[..., 1]) + mul(w[..., 1], first[..., 0])
    turned = np.stack([canon(real), canon(imaginary)], axis=-1).swapaxes(1, 2)
    second = reference_lines(np.ascontiguousarray(turned).reshape(lines, width, rows * columns, 2))
    return second.reshape(lines, n, columns, 2)


def turning_factors(n: int, dtype: Any, *, inverse: bool) -> Floats:
    """exp(-2 pi i j k / n) of a length n1 x n2, k < n1 and j < n2, or the conjugates, (n, 2)."""
    rows, width = two_factors(n)
    places = np.arange(rows, dtype=np.int64)[:, None] * np.arange(width, dtype=np.int64)[None, :] % n
    factors = np.ascontiguousarray(_roots(n, np.dtype(dtype).name)[places.reshape(-1)])
    return _conjugate(factors) if inverse else factors


def _conjugate(pairs: Floats) -> Floats:
    return pairs * np.array([1, -1], pairs.dtype) + pairs.dtype.type(0)


@dataclass(frozen=True, eq=False)
class LineTransforms:
    """Binds complex and real transforms of lines of any length; tables are made once for each."""

    device: Device
    dtype: np.dtype[Any]
    tables: dict[tuple[str, int, bool], Array]

    def _table(self, name: str, n: int, inverse: bool = False) -> Array:
        key = (name, n, inverse)
        if key not in self.tables:
            makers: dict[str, Callable[[], Floats]] = {
                "lines": lambda: table(n, self.dtype, "lines"),
                "real": lambda: real_table(n, self.dtype),
                "chirp": lambda: chirp(n, self.dtype, inverse=inverse),
                "cropping": lambda: _padded(chirp(n, self.dtype, inverse=inverse), padded_length(n)),
                "modes": lambda: chirp_modes(n, self.dtype.name, inverse=inverse),
                "turning": lambda: turning_factors(n, self.dtype, inverse=inverse),
            }
            self.tables[key] = self.device.array(makers[name]())
        return self.tables[key]

    def prepare(self, n: int, *, inverse: bool) -> None:
        """Makes the tables that complex transforms of n values take."""
        if is_length(n):
            self._table("lines", n)
        elif is_smooth(n):
            for part in two_factors(n):
                self.prepare(part, inverse=inverse)
            self._table("turning", n, inverse)
        else:
            self.prepare(padded_length(n), inverse=False)
            self.prepare(padded_length(n), inverse=True)
            self._table("chirp", n, inverse)
            self._table("modes", n, inverse)
            self._table("cropping", n, inverse)

    def complex_steps(self, x: Array, out: Array, *, inverse: bool, scale: float) -> list[Step]:
        """The steps that transform (lines, n, columns, 2) along n."""
        n = x.shape[1]
        if is_length(n):
            factors = self._table("lines", n)
            return [self.device.bind("fft", x, factors, out=out, inverse=int(inverse), scale=scale)]
        return self._turned(x, out, inverse, scale) if is_smooth(n) else self._chirped(x, out, inverse, scale)

    def _turned(self, x: Array, out: Array, inverse: bool, scale: float) -> list[Step]:
        lines, n, columns, _ = x.shape
        rows, width = two_factors(n)
        first, second = self._empty(lines, rows, width * columns), self._empty(lines, n, columns)
        factors = self._table("turning", n, inverse)
        return [
            *self.complex_steps(self._shaped(x, first.shape), first, inverse=inverse, scale=1.0),
            self.device.bind("fft_modulate", self._shaped(first, x.shape), factors, out=second, m=n, rows=rows),
            *self.complex_steps(
                self._shaped(second, (lines, width, rows * columns, 2)),
                self._shaped(out, (lines, width, rows * columns, 2)), inverse=inverse, scale=scale,
            ),
        ]  # fmt: skip

    def _chirped(self, x: Array, out: Array, inverse: bool, scale: float) -> list[Step]:
        lines, n, columns, _ = x.shape
        m = padded_length(n)
        padded, spread = self._empty(lines, m, columns), self._empty(lines, m, columns)
        factors, modes, cropping = (self._table(name, n, inverse) for name in ("chirp", "modes", "cropping"))
        return [
            self.device.bind("fft_modulate", x, factors, out=padded, m=m),
            *self.complex_steps(padded, spread, inverse=False, scale=1.0),
            self.device.bind("fft_modulate", spread, modes, out=padded, m=m),
            *self.complex_steps(padded, spread, inverse=True, scale=1.0),
            self.device.bind("fft_modulate", spread, cropping, out=out, m=n, scale=scale),
        ]

    def forward_real_steps(self, x: Array, out: Array, *, scale: float) -> list[Step]:
        """The steps that make modes (lines, n/2 + 1, 2) of real lines (lines, n)."""
        (lines, n), modes = x.shape, out.shape[1]
        if is_length(n):
            return [self.device.bind("rfft", x, self._table("real", n), out=out, modes=modes, scale=scale)]
        pairs, full = self._empty(lines, n, 1), self._empty(lines, n, 1)
        parts = self.device.array(np.array([1, 0], self.dtype))
        return [
            self.device.bind(_as_pairs(lines, n), x, parts, out=self._shaped(pairs, (lines, n, 2))),
            *self.complex_steps(pairs, full, inverse=False, scale=scale),
            self.device.bind(_copied((lines, modes, 2), (2 * n, 2, 1)), full, out=out),
        ]

    def inverse_real_steps(self, x: Array, out: Array, *, scale: float) -> list[Step]:
        """The steps that make real lines (lines, n) of modes (lines, n/2 + 1, 2)."""
        lines, n = out.shape
        if is_length(n):
            return [self.device.bind("irfft", x, self._table("real", n), out=out, scale=scale)]
        modes, full = self._empty(lines, n, 1), self._empty(lines, n, 1)
        return [
            self.device.bind("fft_hermitian", x, out=self._shaped(modes, (lines, n, 2)), n=n),
            *self.complex_steps(modes, full, inverse=True, scale=scale),
            self.device.bind(_copied((lines, n), (2 * n, 2)), full, out=out),
        ]

    def prepare_real(self, n: int, *, inverse: bool) -> None:
        """Makes the tables that real transforms of n values take."""
        if is_length(n):
            self._table("real", n)
        else:
            self.prepare(n, inverse=inverse)

    def _empty(self, lines: int, n: int, columns: int) -> Array:
        return self.device.empty((lines, n, columns, 2), self.dtype)

    def _shaped(self, array: Array, shape: Sequence[int]) -> Array:
        return self.device.part(array, 0, shape)


@dataclass(frozen=True, eq=False)
class Composition:
    """A transform of several axes, or of lengths that no kernel has, as one of lines after another: real lines first
    and complex ones after them, or the other way round where it is inverse."""

    lines: LineTransforms
    shape: Shape
    axes: tuple[int, ...]
    inverse: bool
    real: bool
    scale: float

    def prepare(self) -> None:
        """Makes the tables."""
        for axis in self.axes[:-1] if self.real else self.axes:
            self.lines.prepare(self.shape[axis], inverse=self.inverse)
        if self.real:
            self.lines.prepare_real(self.shape[-1], inverse=self.inverse)

    @property
    def space_bytes(self) -> int:
        """Bytes of a complex array of the shape, as source, target or in between."""
        return 2 * math.prod(self.shape) * self.lines.dtype.itemsize

    @property
    def bytes(self) -> int:
        """Bytes that it takes on the device, tables left out: source, target, and what lies between its steps."""
        most = max(_places(self.shape[axis]) / max(self.shape[axis], 1) for axis in self.axes)
        turns = 2 * len(self.axes)
        return int(self.space_bytes * (2 + turns * most))

    def steps(self, source: Array, target: Array) -> list[Step]:
        """The transform bound to arrays."""
        lines, device = self.lines, self.lines.device
        axes = [*self.axes[:-1]] if self.real else [*self.axes]
        axes = axes if self.inverse else axes[::-1]
        steps, now = list[Step](), source
        if self.real and not self.inverse:
            now = target if not axes else device.empty(target.shape, lines.dtype)
            scale = 1.0 if axes else self.scale
            steps += lines.forward_real_steps(self._flat(source, 1), self._flat(now, 2), scale=scale)
        for number, axis in enumerate(axes):
            last = number == len(axes) - 1 and not (self.real and self.inverse)
            after = target if last else device.empty(now.shape, lines.dtype)
            folded = (math.prod(now.shape[:axis]), now.shape[axis], math.prod(now.shape[axis + 1 : -1]), 2)
            steps += lines.complex_steps(
                device.part(now, 0, folded), device.part(after, 0, folded), inverse=self.inverse,
                scale=self.scale if last else 1.0,
            )  # fmt: skip
            now = after
        if self.real and self.inverse:
            steps += lines.inverse_real_steps(self._flat(now, 2), self._flat(target, 1), scale=self.scale)
        return steps

    def _flat(self, array: Array, last: int) -> Array:
        """The array as lines: the last axis, or the last two where numbers are pairs, and one before them."""
        shape = array.shape
        return self.lines.device.part(array, 0, (math.prod(shape[:-last]), *shape[-last:]))


def _places(n: int) -> int:
    """Places of the arrays between the steps of a line of n values."""
    return 0 if is_length(n) else n if is_smooth(n) else 2 * padded_length(n)


def _padded(values: Floats, n: int) -> Floats:
    return np.concatenate([values, np.zeros((n - len(values), 2), values.dtype)])


@cache
def _as_pairs(lines: int, n: int) -> Kernel:
    """Real lines (lines, n) as complex ones (lines, n, 2): `chosen` is 1 for real parts, 0 for imaginary ones."""
    x, chosen = arguments("x chosen")
    views = {"x": View((lines, n, 2), (n, 1, 0)), "chosen": View((lines, n, 2), (0, 0, 1))}
    return fuse(where(chosen > 0, x, 0.0), inputs="x chosen", views=views)


@cache
def _copied(shape: Shape, strides: tuple[int, ...]) -> Kernel:
    """Some elements of an array, one after the other."""
    (x,) = arguments("x")
    return fuse(x * 1.0, views={"x": View(shape, strides)})
