"""Canonical values: the bit patterns that a portable kernel may read, make or store, and their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import DTypeError

Floats = npt.NDArray[Any]
"""float32 or float64; every function keeps the type it is given."""


@dataclass(frozen=True)
class Format:
    """The numbers that describe one precision. `tiny` is the smallest canonical magnitude, 2^tiny_exponent."""

    float: type[np.floating[Any]]
    word: type[np.unsignedinteger[Any]]
    fraction_bits: int
    bias: int
    tiny_exponent: int

    @property
    def sign(self) -> Any:
        return self.word(1 << (8 * np.dtype(self.word).itemsize - 1))

    @property
    def magnitude(self) -> Any:
        return self.word(int(self.sign) - 1)

    @property
    def tiny(self) -> Any:
        return self.word((self.tiny_exponent + self.bias) << self.fraction_bits)

    @property
    def infinity(self) -> Any:
        return self.word((2 * self.bias + 1) << self.fraction_bits)

    @property
    def nan(self) -> Any:
        return self.word(int(self.infinity) | 1 << (self.fraction_bits - 1))


F32: Final = Format(np.float32, np.uint32, 23, 127, -102)
F64: Final = Format(np.float64, np.uint64, 52, 1023, -969)


def format_of(x: npt.ArrayLike) -> Format:
    """The precision of an array; only float32 and float64 have a portable meaning."""
    kind = np.asarray(x).dtype
    if kind == np.float32:
        return F32
    if kind == np.float64:
        return F64
    raise DTypeError(f"portable maths has no {kind} version.", "convert with .astype(np.float32) or np.float64.")


def bits_of(x: npt.ArrayLike) -> npt.NDArray[Any]:
    """The bits of each value as unsigned integers (a view where the layout allows it)."""
    values = np.asarray(x)
    return values.view(format_of(values).word)


def canon(x: npt.ArrayLike) -> Floats:
    """Magnitudes below the threshold (-0 too) become +0, every NaN becomes the one NaN, all else stays."""
    values = np.asarray(x)
    form = format_of(values)
    bits = values.view(form.word)
    size = bits & form.magnitude
    bits = np.where(size < form.tiny, form.word(0), bits)
    return np.asarray(np.where(size > form.infinity, form.nan, bits)).view(form.float)


def mul(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """The product of canonical values; a magnitude below the threshold becomes +0. NaNs are canonical only after
    `canon`, as in the shaders."""
    with np.errstate(all="ignore"):
        product = np.multiply(a, b)
    form = format_of(product)
    bits = np.asarray(product).view(form.word)
    return np.asarray(np.where((bits & form.magnitude) < form.tiny, form.word(0), bits)).view(form.float)


def order_key(x: npt.ArrayLike) -> npt.NDArray[Any]:
    """Unsigned integers with the order of the values; every NaN has the same, highest key."""
    form = format_of(x)
    bits = canon(x).view(form.word)
    return np.where((bits & form.sign) != 0, ~bits, bits | form.sign)


def order_value(key: npt.NDArray[Any]) -> Floats:
    """The canonical value that has this key."""
    form = F32 if key.dtype == np.uint32 else F64
    return np.asarray(np.where((key & form.sign) != 0, key & form.magnitude, ~key)).view(form.float)
