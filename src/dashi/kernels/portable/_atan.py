"""atan and atan2 within 1 ulp: a quotient in two parts, moved next to 0 by one of three known angles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dashi.kernels.portable._bits import Floats, Format, format_of
from dashi.kernels.portable._function_tables import FunctionTable, function_table_of
from dashi.kernels.portable._roots import divide, head_of, pairwise, polynomial
from dashi.kernels.portable._tables import Table


def _quotient_rest(
    top: Floats, bottom: Floats, low: Floats, t: Floats, form: Format, table: Table, more: FunctionTable
) -> Floats:
    """(top - t bottom) / bottom for t = top / bottom, rounded, where bottom has the rest `low`: what t lacks."""
    a, b = head_of(t, form, table), head_of(bottom, form, table)
    c, d = t - a, bottom - b
    rest = (((top - a * b) - a * d) - c * b) - c * d
    r = (form.word(more.reciprocal_seed) - bottom.view(form.word)).view(form.float)
    return (rest - t * low) * (r + r * (form.float(1) - bottom * r))


@pairwise
def atan2(y: Floats, x: Floats, form: Format, table: Table) -> Floats:
    """The angle of the point (x, y), in (-pi, pi]: of (x, 0) it is 0 or pi (there is no -0), of (0, 0) it is 0.

    The smaller of |x| and |y| over the larger is n / d, the tangent of an angle up to pi/4; with c = 0, 1/2 or 1,
    n / d = tan(atan(c) + atan(t)) for t = (n - c d) / (d + c n).
    """
    more = function_table_of(form)
    word, fraction, zero, unity = form.word, form.fraction_bits, form.float(0), form.float(1)
    nan = np.isnan(x) | np.isnan(y)
    steep, backward = np.abs(y) > np.abs(x), x < zero
    n, d = np.where(steep, np.abs(x), np.abs(y)), np.where(steep, np.abs(y), np.abs(x))
    same = nan | np.isinf(n)  # the angle of two infinities is that of 1 and 1
    n, d = np.where(same, unity, n), np.where(same | (d == 0), unity, d)
    gap = (d.view(word) >> word(fraction)).astype(np.int64) - (n.view(word) >> word(fraction)).astype(np.int64)
    far = gap > more.far
    significand = word((1 << fraction) - 1)
    scale = (form.bias - np.where(far, 0, gap)).astype(word) << word(fraction)
    large = ((d.view(word) & significand) | unity.view(word)).view(form.float)
    small = np.where(far, unity, ((n.view(word) & significand) | scale).view(form.float))
    piece = np.where(small < form.float(0.6875) * large, 1, 2)
    piece = np.where(far | (small < form.float(0.4375) * large), 0, piece)
    c = np.array([0, 0.5, 1], form.float)[piece]
    over, share = small - c * large, c * small
    under = large + share
    low = share - (under - large)
    t = divide(np.where(far, n, over), np.where(far, d, under))
    rest = np.where(far, zero, _quotient_rest(over, under, low, np.where(far, unity, t), form, table, more))
    s = np.where(np.abs(t) < form.float(table.linear), zero, t)
    z = s * s
    tail = (rest - rest * z) - (s * z) * polynomial(z, more.atan, form)
    down = steep != backward
    t, tail = np.where(down, -t, t), np.where(down, -tail, tail)
    angles = np.array(more.angles, form.float)[4 * piece + np.where(backward, np.where(steep, 3, 2), steep)]
    result = angles[:, 0] + (t + (tail + angles[:, 1]))
    return np.where(nan, form.float(np.nan), np.where(y < zero, -result, result))


def atan(x: npt.ArrayLike) -> Floats:
    """Arc tangent; pi/2 at infinity."""
    return atan2(x, format_of(x).float(1))
