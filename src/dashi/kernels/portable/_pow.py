"""Powers within 1 ulp: 2^(y log2 x), the logarithm and its product kept in two parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dashi.kernels.portable._bits import Floats, Format
from dashi.kernels.portable._exp import scale
from dashi.kernels.portable._function_tables import function_table_of
from dashi.kernels.portable._roots import head_of, pairwise, polynomial, refine_reciprocal
from dashi.kernels.portable._tables import Table

Flags = npt.NDArray[np.bool_]


def _log2_parts(bits: npt.NDArray[Any], form: Format, table: Table) -> tuple[Floats, Floats]:
    """log2 of positive numbers as high + low, high with half a significand: x = 2^k m, compared with 1 or 3/2 by
    s = (m - c) / (m + c); log(m / c) = 2/3 s (3 + s^2 + s^4 p(s^2))."""
    more = function_table_of(form)
    word, fraction, unity, three = form.word, form.fraction_bits, form.float(1), form.float(3)
    fractions = word((1 << fraction) - 1)
    m = ((bits & fractions) | unity.view(word)).view(form.float)
    upper = m >= form.float(more.log_cuts[1])
    middle = (m >= form.float(more.log_cuts[0])) & ~upper
    m = np.where(upper, form.float(0.5) * m, m)
    k = ((bits >> word(fraction)).astype(np.int64) - form.bias + upper).astype(form.float)
    c = np.where(middle, form.float(1.5), unity)
    f, d = m - c, m + c
    d_low = m - (d - c)
    significand = ((d.view(word) & fractions) | unity.view(word)).view(form.float)
    r = refine_reciprocal(significand, table.reciprocal, table.newton_steps, form)
    r = np.where(d >= form.float(2), form.float(0.5) * r, r)
    s_high, d_high = head_of(f * r, form, table), head_of(d, form, table)
    s_low = (((f - s_high * d_high) - s_high * (d - d_high)) - s_high * d_low) * r
    s = s_high + s_low
    z, z_high = s * s, s_high * s_high
    rest = s_low * (s_high + s) + (z * z) * polynomial(z, more.log, form)
    v_high = head_of((three + z_high) + rest, form, table)
    v_low = rest - ((v_high - three) - z_high)
    u, w = s_high * v_high, s_low * v_high + v_low * s
    p_high = head_of(u + w, form, table)
    p_low = w - (p_high - u)
    upper_half, lower, whole = (form.float(v) for v in more.log2_scale)
    l_high = upper_half * p_high
    l_low = (lower * p_high + p_low * whole) + np.where(middle, form.float(more.log2_middle[1]), form.float(0))
    c_high = np.where(middle, form.float(more.log2_middle[0]), form.float(0))
    high = head_of(((l_high + l_low) + c_high) + k, form, table)
    return high, l_low - (((high - k) - c_high) - l_high)


def _exp2_parts(high: Floats, low: Floats, form: Format, table: Table) -> Floats:
    """2^(high + low), high + low within the range of exponents."""
    more = function_table_of(form)
    magic, unity, zero = form.float(table.round_magic), form.float(1), form.float(0)
    k = ((high + low) + magic) - magic
    near = high - k
    w = near + low
    none = np.abs(w) < form.float(table.negligible)
    w_high = np.where(none, zero, head_of(w, form, table))
    w_low = np.where(none, zero, low - (w_high - near))
    upper_half, lower, whole = (form.float(v) for v in more.ln2)
    main = w_high * upper_half
    small = w_low * whole + w_high * lower
    r = main + small
    tail = small - (r - main)
    total = unity + r
    lost = r - (total - unity)
    return scale(total + (lost + ((r * r) * polynomial(r, table.exp, form) + tail)), k.astype(np.int64), form)


def _integers(y: Floats, form: Format) -> tuple[Flags, Flags]:
    """Which are integers (infinities too), and which of those are odd."""
    whole = np.trunc(y) == y
    small = whole & (np.abs(y) <= form.float(2 << form.fraction_bits))
    return whole, small & (np.where(small, y, form.float(0)).astype(np.int64) % 2 != 0)


@pairwise
def pow(x: Floats, y: Floats, form: Format, table: Table) -> Floats:
    """x^y. As in IEEE 754 x^0 and 1^y are 1 also for NaN, and negative x have powers of integers only; but there is no
    -0: 0^y is infinite for every y < 0."""
    more, zero, unity, infinity = function_table_of(form), form.float(0), form.float(1), form.float(np.inf)
    size = np.abs(x)
    usable = (size > zero) & (size < infinity)
    high, low = _log2_parts(np.where(usable, size, unity).view(form.word), form, table)
    least, most = (form.float(v) for v in more.exponent_range)
    by = np.where(np.abs(y) < least, zero, np.clip(np.where(np.isnan(y), zero, y), -most, most))
    by_high = head_of(by, form, table)
    z_high, z_low = by_high * high, (by - by_high) * high + by * low
    z = z_high + z_low
    lowest, highest = (form.float(v) for v in more.power_range)
    outside = (z > highest) | (z < lowest)
    z_high, z_low = np.where(outside, np.clip(z, lowest, highest), z_high), np.where(outside, zero, z_low)
    result = _exp2_parts(z_high, z_low, form, table)
    result = np.where(usable, result, np.where((y > zero) == np.isinf(x), infinity, zero))
    whole, odd = _integers(y, form)
    result = np.where((x < zero) & odd, -result, result)
    undefined = np.isnan(x) | np.isnan(y) | ((x < zero) & usable & ~whole)
    result = np.where(undefined, form.float(np.nan), result)
    return np.where((y == zero) | (x == unity), unity, result)
