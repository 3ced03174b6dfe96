"""NumPy twin of the Fourier transforms in the shaders: the same operations in the same order, over many lines at once.

Arrays here are pairs of real arrays (real part, imaginary part) whose first axis is the one transformed and whose
last runs over lines, so that every operation works on long contiguous rows. They are worked through in blocks that
fit a processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels.fft._roots import Use, constants, radices
from dashi.kernels.portable import canon, mul

Floats = npt.NDArray[Any]
Pair = tuple[Floats, Floats]
_BLOCK: Final = 1 << 15
"""Values of a block."""


@dataclass(frozen=True)
class Products:
    """Products within a transform: flushed, where `careful`, and with the constants of the butterflies."""

    constants: Mapping[str, Any]
    tiny: Any
    careful: bool

    def __getitem__(self, name: str) -> Any:
        return self.constants[name]

    def product(self, a: Floats, b: Any) -> Floats:
        """Product of two real numbers, flushed."""
        return self.flushed(a * b)

    def flushed(self, values: Floats) -> Floats:
        """Values that count as 0, as 0. They are rare, so it is done where there is one."""
        if self.careful:
            small = np.abs(values) < self.tiny
            if small.any():
                values[small] = 0
        return values

    def times(self, z: Pair, w: tuple[Any, Any]) -> Pair:
        """Product of two complex numbers, flushed."""
        (a, b), (c, d) = z, w
        return self.flushed(a * c - b * d), self.flushed(a * d + b * c)

    def scaled(self, z: Pair, factor: Any) -> Pair:
        """Product of a complex number with a real one, flushed."""
        return self.product(z[0], factor), self.product(z[1], factor)

    def eighth(self, z: Pair) -> Pair:
        """Product of a complex number with exp(-i pi / 4), flushed."""
        return self.product(z[0] + z[1], self["COS_8"]), self.product(z[1] - z[0], self["COS_8"])


@cache
def products(dtype: np.dtype[Any], careful: bool = True) -> Products:
    """The products of a precision."""
    tiny = dtype.type(2.0**-95 if dtype == np.float32 else 2.0**-959)
    return Products(constants(dtype), tiny, careful)


def needs_care(z: Pair) -> bool:
    """Whether a stage must flush: some value is not 0, but below 2^-44 (fp64: 2^-860). Otherwise nothing in it can be
    below 2^-95, for fp32: factors, of at least 2^-11.4, make of its values multiples of 2^-79, and so are all sums of
    those. A real constant of a butterfly, of at least 2^-2.2, leaves at least 2^-82 of such a sum. A complex one leaves
    a c - b s: if that is below 2^-95, both products are below 2^-71 (else it is a multiple of 2^-95), so a and b are
    less than 2^10 times 2^-79, and since c / s is near 1 + sqrt 2, which fractions so short are no nearer to than
    2^-22, a c - b s is above 2^-92, and its products are rounded by less than 2^-95 together."""
    word, safe = (np.uint32, 83 << 24) if z[0].dtype == np.float32 else (np.uint64, 163 << 53)
    for part in z:
        sizes = (part.view(word) << word(1)) - word(1)
        if sizes.size and sizes.min() < word(safe - 1):
            return True
    return False


def turned(z: Pair) -> Pair:
    """The product with -i."""
    return z[1], -z[0]


def add(a: Pair, b: Pair) -> Pair:
    """The sum."""
    return a[0] + b[0], a[1] + b[1]


def sub(a: Pair, b: Pair) -> Pair:
    """The difference."""
    return a[0] - b[0], a[1] - b[1]


def _fft_2(v: list[Pair], c: Products) -> list[Pair]:
    return [add(v[0], v[1]), sub(v[0], v[1])]


def _fft_3(v: list[Pair], c: Products) -> list[Pair]:
    total = add(v[1], v[2])
    across = turned(c.scaled(sub(v[1], v[2]), c["SIN_3"]))
    middle = sub(v[0], c.scaled(total, v[0][0].dtype.type(0.5)))
    return [add(v[0], total), add(middle, across), sub(middle, across)]


def _fft_4(v: list[Pair], c: Products) -> list[Pair]:
    even, even_less = add(v[0], v[2]), sub(v[0], v[2])
    odd, odd_less = add(v[1], v[3]), turned(sub(v[1], v[3]))
    return [
        add(even, odd),
        add(even_less, odd_less),
        sub(even, odd),
        sub(even_less, odd_less),
    ]


def _odd(v: list[Pair], c: Products, n: int, signs: tuple[tuple[int, ...], ...]) -> list[Pair]:
    """A prime number n of values: sums and differences of opposite ones, each with its own cosine and sine. `signs`
    are 1-based numbers of the sines, negative where a sine is subtracted."""
    half = n // 2
    cosines = [c[f"COS_{n}" + (f"_{m}" if m > 1 else "")] for m in range(1, half + 1)]
    sines = [c[f"SIN_{n}" + (f"_{m}" if m > 1 else "")] for m in range(1, half + 1)]
    sums = [add(v[m], v[n - m]) for m in range(1, half + 1)]
    less = [sub(v[m], v[n - m]) for m in range(1, half + 1)]
    total = v[0]
    for one in sums:
        total = add(total, one)
    upper: list[Pair] = []
    lower: list[Pair] = []
    for k in range(1, half + 1):
        middle, across = v[0], c.scaled(less[0], sines[signs[k - 1][0] - 1])
        for m in range(1, half + 1):
            index = k * m % n
            middle = add(middle, c.scaled(sums[m - 1], cosines[min(index, n - index) - 1]))
        for m in range(2, half + 1):
            sine = signs[k - 1][m - 1]
            join = add if sine > 0 else sub
            across = join(across, c.scaled(less[m - 1], sines[abs(sine) - 1]))
        across = turned(across)
        upper.append(add(middle, across))
        lower.append(sub(middle, across))
    return [total, *upper, *lower[::-1]]


def _fft_5(v: list[Pair], c: Products) -> list[Pair]:
    return _odd(v, c, 5, ((1, 2), (2, -1)))


def _fft_7(v: list[Pair], c: Products) -> list[Pair]:
    return _odd(v, c, 7, ((1, 2, 3), (2, -3, -1), (3, -1, 2)))


def _fft_8(v: list[Pair], c: Products) -> list[Pair]:
    even, odd = _fft_4(v[0::2], c), _fft_4(v[1::2], c)
    odd[1], odd[2], odd[3] = c.eighth(odd[1]), turned(odd[2]), turned(c.eighth(odd[3]))
    return [add(e, o) for e, o in zip(even, odd, strict=True)] + [sub(e, o) for e, o in zip(even, odd, strict=True)]


def _fft_16(v: list[Pair], c: Products) -> list[Pair]:
    columns = [_fft_4(v[t::4], c) for t in range(4)]
    cos, sin = c["COS_16"], c["SIN_16"]
    columns[1][1] = c.times(columns[1][1], (cos, -sin))
    columns[2][1] = c.eighth(columns[2][1])
    columns[3][1] = c.times(columns[3][1], (sin, -cos))
    columns[1][2] = c.eighth(columns[1][2])
    columns[2][2] = turned(columns[2][2])
    columns[3][2] = turned(c.eighth(columns[3][2]))
    columns[1][3] = c.times(columns[1][3], (sin, -cos))
    columns[2][3] = turned(c.eighth(columns[2][3]))
    columns[3][3] = c.times(columns[3][3], (-cos, sin))
    rows = [_fft_4([columns[t][k] for t in range(4)], c) for k in range(4)]
    return [rows[k % 4][k // 4] for k in range(16)]


_BUTTERFLIES: Final[dict[int, Callable[[list[Pair], Products], list[Pair]]]] = {
    2: _fft_2, 3: _fft_3, 4: _fft_4, 5: _fft_5, 7: _fft_7, 8: _fft_8, 16: _fft_16,
}  # fmt: skip


def stages(z: Pair, twiddles: Floats, use: Use = "within") -> Pair:
    """The forward transform along the first axis of arrays (n, lines)."""
    n, lines = z[0].shape
    kind = z[0].dtype
    size = 1
    for radix in radices(n, use):
        c = products(kind, needs_care(z))
        lanes = [part.reshape(radix, n // (radix * size), size, lines) for part in z]
        v = [(lanes[0][t], lanes[1][t]) for t in range(radix)]
        if size > 1:
            w = twiddles[size : size * radix].reshape(radix - 1, 1, size, 1, 2)
            v[1:] = [c.times(v[t], (w[t - 1, ..., 0], w[t - 1, ..., 1])) for t in range(1, radix)]
        joined = [np.empty((n // (radix * size), radix, size, lines), kind) for _ in range(2)]
        for t, (real, imaginary) in enumerate(_BUTTERFLIES[radix](v, c)):
            joined[0][:, t], joined[1][:, t] = real, imaginary
        z = joined[0].reshape(n, lines), joined[1].reshape(n, lines)
        size *= radix
    return z


def _lines(x: Floats) -> Floats:
    """The lines (first axis) of a real or complex array as its last, in one piece."""
    return np.ascontiguousarray(np.moveaxis(x, 0, -1))


def _loaded(x: Floats, raw: int) -> Floats:
    return x.copy() if raw & 1 else products(x.dtype).flushed(x.copy())


def _stored(x: Floats, factor: Any, raw: int) -> Floats:
    result = x if factor == 1 else mul(x, factor)
    return result if raw & 2 else canon(result)


def _blocks(lines: int, n: int) -> list[slice]:
    each = max(1, _BLOCK // n)
    return [slice(start, start + each) for start in range(0, lines, each)]


def transform(x: Floats, twiddles: Floats, inverse: bool, scale: Any, raw: int = 0, use: Use = "within") -> Floats:
    """Complex transforms along the middle axis of an array (outer, n, inner, 2). `raw`: see
    `dashi.kernels.fft._plans.FftPass`."""
    outer, n, inner, _ = x.shape
    factor = x.dtype.type(scale)
    first, second = (1, 0) if inverse else (0, 1)
    result = np.empty_like(x)
    if inner == 1:
        sources, targets = (
            x.reshape(outer, n, 2).transpose(1, 0, 2),
            result.reshape(outer, n, 2).transpose(1, 0, 2),
        )
        pieces = [(sources[:, part], targets[:, part]) for part in _blocks(outer, n)]
    else:
        pieces = [(x[o, :, part], result[o, :, part]) for o in range(outer) for part in _blocks(inner, n)]
    for sources, targets in pieces:
        z = stages((_loaded(sources[..., first], raw), _loaded(sources[..., second], raw)), twiddles, use)
        targets[..., first], targets[..., second] = (
            _stored(z[0], factor, raw),
            _stored(z[1], factor, raw),
        )
    return result


def forward_real(x: Floats, twiddles: Floats, scale: Any, raw: int = 0) -> Floats:
    """The modes (lines, n / 2 + 1, 2) of real lines (lines, n)."""
    lines, n = x.shape
    result = np.empty((lines, n // 2 + 1, 2), x.dtype)
    factor = x.dtype.type(scale) * x.dtype.type(1 if n % 2 else 0.5)
    for part in _blocks(lines, n):
        block = _lines(_loaded(x[part], raw))
        if n % 2:
            z = stages((block, np.zeros_like(block)), twiddles)
            modes = z[0][: n // 2 + 1], z[1][: n // 2 + 1]
        else:
            z = stages((block[0::2].copy(), block[1::2].copy()), twiddles[: n // 2])
            modes = _taken_apart(z, twiddles[n // 2 :])
        for axis in range(2):
            result[part, :, axis] = _stored(modes[axis], factor, raw).T
    return result


def _taken_apart(z: Pair, twiddles: Floats) -> Pair:
    """Twice the modes 0 ... n of 2 n real values from the transform of their n pairs of neighbours."""
    n = len(z[0])
    k = np.arange(n // 2 + 1)
    (a, b), (c, d) = ((part[k] for part in z), (part[-k % n] for part in z))
    even = a + c, b - d
    odd = products(even[0].dtype).times((b + d, c - a), (twiddles[k, 0, None], twiddles[k, 1, None]))
    low, high = add(even, odd), sub(even, odd)
    mirrored = slice((n - 1) // 2, None, -1)  # of the middle mode, there is one
    return np.concatenate([low[0], high[0][mirrored]]), np.concatenate([low[1], -high[1][mirrored]])


def inverse_real(x: Floats, twiddles: Floats, n: int, scale: Any, raw: int = 0) -> Floats:
    """Real lines (lines, n) from their modes (lines, n / 2 + 1, 2); imaginary parts of modes that are real for every
    real line are not looked at."""
    lines = len(x)
    factor = x.dtype.type(scale)
    result = np.empty((lines, n), x.dtype)
    for part in _blocks(lines, n):
        real, imaginary = (_lines(_loaded(x[part, :, axis], raw)) for axis in range(2))
        imaginary[0] = 0
        if n % 2:
            full = (
                np.concatenate([real, real[:0:-1]]),
                np.concatenate([imaginary, -imaginary[:0:-1]]),
            )
            z = stages((full[1], full[0]), twiddles)
            result[part] = _stored(z[1], factor, raw).T
        else:
            imaginary[n // 2] = 0
            full = _put_together((real, imaginary), twiddles[n // 2 :])
            z = stages((full[1], full[0]), twiddles[: n // 2])
            result[part, 0::2], result[part, 1::2] = (_stored(z[axis], factor, raw).T for axis in (1, 0))
    return result


def _put_together(x: Pair, twiddles: Floats) -> Pair:
    """What the complex inverse transform of n values makes pairs of neighbours of, from the modes 0 ... n."""
    n = len(x[0]) - 1
    (a, b), (c, d) = (tuple(part[:n] for part in x), tuple(part[n:0:-1] for part in x))
    odd = products(a.dtype).times((a - c, b + d), (twiddles[:, 0, None], -twiddles[:, 1, None]))
    return a + c - odd[1], b - d + odd[0]
