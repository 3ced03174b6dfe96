"""exp, log, tanh and softplus. Sums that matter are kept in two parts, so that each result is within 1 ulp."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dashi.kernels.portable._bits import Floats, Format
from dashi.kernels.portable._roots import elementwise, polynomial, refine_reciprocal
from dashi.kernels.portable._tables import Table

Ints = npt.NDArray[Any]


def _exp_parts(x: Floats, form: Format, table: Table) -> tuple[Floats, Floats, Ints]:
    """e^x = (high + low) * 2^k for x in the range of exp: x = k ln 2 + r, the reduction kept in two parts."""
    magic, unity = form.float(table.round_magic), form.float(1)
    x = np.where(np.abs(x) < form.float(table.negligible), form.float(0), x)
    shifted = x * form.float(table.log2e) + magic
    n = shifted - magic
    near = x - n * form.float(table.ln2[0])
    rest = n * form.float(table.ln2[1])
    r = near - rest
    tail = (near - r) - rest
    s = r + ((r * r) * polynomial(r, table.exp, form) + tail)
    high = unity + s
    return high, s - (high - unity), n.astype(np.int64)


def scale(value: Floats, k: Ints, form: Format) -> Floats:
    """value * 2^k for positive normal values: 0 below the threshold, infinity above the range."""
    bits = value.view(form.word)
    exponent = (bits >> form.word(form.fraction_bits)).astype(np.int64) + k
    scaled = bits + (k.astype(form.word) << form.word(form.fraction_bits))
    scaled = np.where(exponent < form.tiny_exponent + form.bias, form.word(0), scaled)
    return np.where(exponent > 2 * form.bias, form.infinity, scaled).view(form.float)


def _power_of_two(k: Ints, form: Format) -> Floats:
    return ((k + form.bias).astype(form.word) << form.word(form.fraction_bits)).view(form.float)


@elementwise
def exp(x: Floats, form: Format, table: Table) -> Floats:
    """e^x: infinity above the range, +0 below the threshold."""
    lowest, highest = (form.float(v) for v in table.exp_range)
    y = np.where(x > highest, highest, np.where(x < lowest, lowest, x))
    y = np.where(np.isnan(x), form.float(0), y)
    high, _, k = _exp_parts(y, form, table)
    return np.where(np.isnan(x), x, scale(high, k, form))


def _log_rest(f: Floats, form: Format, table: Table) -> tuple[Floats, Floats]:
    """log(1 + f) = f - (half - small) for f in [-1/4, 1/2]: (half, small) with half = f^2 / 2."""
    d = form.float(2) + f
    s = f * refine_reciprocal(d, table.reciprocal_log, table.newton_steps, form)
    z = s * s
    half = form.float(0.5) * (f * f)
    return half, s * (half + z * polynomial(z, table.log, form))


@elementwise
def log(x: Floats, form: Format, table: Table) -> Floats:
    """Natural logarithm: -infinity at 0, NaN below."""
    word, fraction = form.word, form.fraction_bits
    bits = x.view(word)
    upper = (bits >> word(fraction - 1)) & word(1)  # significands from 1.5 belong to the next power of two
    m = ((bits & word((1 << fraction) - 1)) | ((word(form.bias) - upper) << word(fraction))).view(form.float)
    exponent = (bits >> word(fraction)).astype(np.int64) - form.bias + upper.astype(np.int64)
    k = exponent.astype(form.float)
    f = m - form.float(1)
    half, small = _log_rest(f, form, table)
    rest = half - (small + k * form.float(table.ln2[1]))
    result = k * form.float(table.ln2[0]) - (rest - f)
    result = np.where(bits == form.infinity, form.float(np.inf), result)
    result = np.where(bits == 0, form.float(-np.inf), result)
    return np.where(bits > form.infinity, form.float(np.nan), result)


@elementwise
def tanh(x: Floats, form: Format, table: Table) -> Floats:
    """Hyperbolic tangent: a polynomial up to 1/2, then 1 - 2 / (e^2x + 1), then exactly 1."""
    size = np.abs(x)
    near = np.where(size < form.float(0.5), x, form.float(0))
    tiny = np.abs(near) < form.float(table.linear)
    near = np.where(tiny, form.float(0), near)
    z = near * near
    small = np.where(tiny, x, near + (near * z) * polynomial(z, table.tanh, form))
    large = _tanh_large(np.where(size < form.float(table.tanh_range), size, form.float(table.tanh_range)), form, table)
    large = np.where(x < 0, -large, large)
    result = np.where(size < form.float(0.5), small, large)
    return np.where(np.isnan(x), x, result)


def _tanh_large(y: Floats, form: Format, table: Table) -> Floats:
    """1 - q with q = 2 / (e^2y + 1): q is cut to half a significand, so that its remainder is exact."""
    unity, two = form.float(1), form.float(2)
    word, fraction = form.word, form.fraction_bits
    high, low, k = _exp_parts(two * y, form, table)
    power = _power_of_two(k, form)
    high, low = high * power, low * power
    d = high + unity
    rest = (unity - (d - high)) + low
    bits = d.view(word)
    exponent = (bits >> word(fraction)).astype(np.int64) - form.bias
    m = ((bits & word((1 << fraction) - 1)) | (word(form.bias) << word(fraction))).view(form.float)
    r = refine_reciprocal(m, table.reciprocal, table.newton_steps, form) * _power_of_two(-exponent, form)
    q = ((two * r).view(word) & word(table.head_mask)).view(form.float)
    head = (bits & word(table.head_mask)).view(form.float)
    remainder = ((two - q * head) - q * (d - head)) - q * rest
    w = unity - q
    return w + (((unity - w) - q) - remainder * r)


@elementwise
def softplus(x: Floats, form: Format, table: Table) -> Floats:
    """log(1 + e^x), as max(x, 0) + log(1 + u) with u = e^-|x|, summed in two parts."""
    zero, half, unity = form.float(0), form.float(0.5), form.float(1)
    lowest = form.float(table.exp_range[0])
    y = -np.abs(x)
    y = np.where(y > lowest, y, lowest)
    high, low, k = _exp_parts(y, form, table)
    plain = scale(high, k, form)
    base = np.where(x > zero, x, zero)
    far = plain < form.float(table.negligible)
    power = _power_of_two(np.where(far, 0, k), form)
    u, low = high * power, low * power
    upper = u >= half
    f = np.where(upper, half * (u - unity), u)
    f = np.where(far, zero, f)
    square, small = _log_rest(f, form, table)
    tail = low * ((unity - u) + half * (u * u))
    small = (small + tail) - square
    small = np.where(upper, f + (small + form.float(table.ln2[1])), small)
    big = np.where(upper, form.float(table.ln2[0]), f)
    total = base + big
    moved = total - base
    lost = (base - (total - moved)) + (big - moved)
    result = total + (lost + small)
    result = np.where(far, np.where(x > zero, x, plain), result)
    return np.where(np.isnan(x), x, result)
