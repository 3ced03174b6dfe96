"""sin and cos for every finite argument: the quarter turns are counted exactly, in integers (Payne and Hanek's
reduction, doi:10.1145/1057600.1057602), for large and moderate arguments alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dashi.kernels.portable._bits import Floats, Format
from dashi.kernels.portable._roots import elementwise, elementwise_pair, polynomial
from dashi.kernels.portable._tables import TWO_OVER_PI, Table

Words = npt.NDArray[np.uint64]
"""32-bit words of a long integer, in 64-bit lanes."""


def _turns(significand: Words, exponent: npt.NDArray[np.int64], limbs: int, lead: int) -> list[Words]:
    """significand * 2^(exponent - fraction bits) in quarter turns, modulo 4, as `limbs` 32-bit words, highest first.

    The first two bits are the quadrant. `lead` zero words stand before the bits of 2/pi, so that the window that
    matters for an exponent starts at a bit position that is never negative.
    """
    mask, shift32 = np.uint64(0xFFFFFFFF), np.uint64(32)
    padded = np.array([0] * lead + list(TWO_OVER_PI), np.uint64)
    start = exponent + (7 if limbs == 3 else 10)
    first, offset = start >> 5, (start & 31).astype(np.uint64)
    window: list[Words] = []
    for i in range(limbs):
        pair = (padded[first + i] << shift32) | padded[first + i + 1]
        window.append((pair >> (shift32 - offset)) & mask)
    words = [np.zeros_like(significand) for _ in range(limbs)]
    for part, places in ((significand & mask, 0), (significand >> shift32, 1)):
        carry = np.zeros_like(significand)
        for i in range(limbs - 1 - places, -1, -1):
            total = part * window[i + places] + words[i] + carry
            words[i] = total & mask
            carry = total >> shift32
    return words


def _reduce(x: Floats, form: Format, table: Table) -> tuple[Floats, Floats, npt.NDArray[Any]]:
    """|x| = quadrant * pi/2 + (r + low), |r| <= pi/4; r is a float and low its rest."""
    word, fraction = form.word, form.fraction_bits
    size = x.view(word) & form.magnitude
    inside = size < form.float(np.pi / 4).view(word)
    usable = ~inside & (size < form.infinity)
    bits = np.where(usable, size, form.float(1).view(word))
    significand = ((bits & word((1 << fraction) - 1)) | word(1 << fraction)).astype(np.uint64)
    exponent = (bits >> word(fraction)).astype(np.int64) - form.bias
    limbs, lead = (3, 1) if fraction == 23 else (6, 2)
    words = _turns(significand, exponent, limbs, lead)
    mask, two, thirty = np.uint64(0xFFFFFFFF), np.uint64(2), np.uint64(30)
    quadrant = words[0] >> thirty
    fractions = [((a << two) | (b >> thirty)) & mask for a, b in zip(words, [*words[1:], words[-1] * 0], strict=True)]
    negative = (fractions[0] >> np.uint64(31)) != 0
    quadrant = (quadrant + negative) & np.uint64(3)
    fractions = [np.where(negative, w ^ mask, w) for w in fractions]
    r, low = _radians(fractions, form, table)
    r, low = np.where(negative, -r, r), np.where(negative, -low, low)
    r = np.where(inside, np.abs(x), r)
    return r, np.where(inside, form.float(0), low), np.where(inside, np.uint64(0), quadrant)


def _pieces(fractions: list[Words], form: Format) -> list[Floats]:
    """Three exact floats whose sum is the fraction (of a quarter turn) to 66 or 144 bits."""
    a, b, c = fractions[0], fractions[1], fractions[2]
    if form.fraction_bits == 23:
        cuts = [a >> np.uint64(10), ((a & np.uint64(0x3FF)) << np.uint64(12)) | (b >> np.uint64(20))]
        cuts.append(((b & np.uint64(0xFFFFF)) << np.uint64(2)) | (c >> np.uint64(30)))
        width = 22
    else:
        d, e = fractions[3], fractions[4]
        low16, sixteen = np.uint64(0xFFFF), np.uint64(16)
        cuts = [(a << sixteen) | (b >> sixteen), ((b & low16) << np.uint64(32)) | c, (d << sixteen) | (e >> sixteen)]
        width = 48
    return [cut.astype(form.float) * form.float(2.0 ** (-width * (i + 1))) for i, cut in enumerate(cuts)]


def _radians(fractions: list[Words], form: Format, table: Table) -> tuple[Floats, Floats]:
    """The fraction of a quarter turn times pi/2, in two parts."""
    a, b, c = _pieces(fractions, form)
    t = b + c
    s = a + t
    rest = (t - (s - a)) + (c - (t - b))
    high, low = form.float(table.half_pi[0]), form.float(table.half_pi[1])
    head = (s.view(form.word) & form.word(table.head_mask)).view(form.float)
    main = head * high
    small = (s - head) * high + (s * low + rest * high)
    r = main + small
    tail = small - (r - main)
    return r, np.where(np.abs(tail) < form.float(2.0**-70), form.float(0), tail) if form.fraction_bits == 23 else tail


def _sine(r: Floats, low: Floats, form: Format, table: Table) -> Floats:
    z = r * r
    return r + ((r * z) * polynomial(z, table.sin, form) + low * (form.float(1) - form.float(0.5) * z))


def _cosine(r: Floats, low: Floats, form: Format, table: Table) -> Floats:
    unity = form.float(1)
    z = r * r
    half = form.float(0.5) * z
    w = unity - half
    return w + (((unity - w) - half) + ((z * z) * polynomial(z, table.cos, form) - r * low))


def _waves(x: Floats, form: Format, table: Table) -> tuple[Floats, Floats]:
    """sin and cos of |x|: the quadrant chooses the polynomial and the sign."""
    tiny = np.abs(x) < form.float(table.linear)
    r, low, quadrant = _reduce(np.where(tiny, form.float(0), x), form, table)
    sine, cosine = _sine(r, low, form, table), _cosine(r, low, form, table)
    first, second = (_in_quadrant(quadrant + np.uint64(turns), sine, cosine) for turns in (0, 1))
    return first, second


def _in_quadrant(quadrant: npt.NDArray[Any], sine: Floats, cosine: Floats) -> Floats:
    result = np.where((quadrant & np.uint64(1)) != 0, cosine, sine)
    return np.where((quadrant & np.uint64(2)) != 0, -result, result)


def _signed_sine(wave: Floats, x: Floats, form: Format, table: Table) -> Floats:
    result = np.where(x < form.float(0), -wave, wave)
    result = np.where(np.abs(x) < form.float(table.linear), x, result)
    return np.where(np.isfinite(x), result, form.float(np.nan))


@elementwise
def sin(x: Floats, form: Format, table: Table) -> Floats:
    """Sine in radians; NaN at the infinities."""
    return _signed_sine(_waves(x, form, table)[0], x, form, table)


@elementwise
def cos(x: Floats, form: Format, table: Table) -> Floats:
    """Cosine in radians; NaN at the infinities."""
    return np.where(np.isfinite(x), _waves(x, form, table)[1], form.float(np.nan))


@elementwise_pair
def sincos(x: Floats, form: Format, table: Table) -> tuple[Floats, Floats]:
    """Sine and cosine, with the bits of `sin` and `cos`, for less than the price of two."""
    sine, cosine = _waves(x, form, table)
    return _signed_sine(sine, x, form, table), np.where(np.isfinite(x), cosine, form.float(np.nan))
