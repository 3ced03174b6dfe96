"""The order of keys: what sorting means, in NumPy.

Whole numbers are ordered by value. Floating-point numbers too, subnormals among them; -0 and +0 are equal, and stay in
the order in which they came. Every NaN comes last, whichever way is sorted, and leaves as the canonical one: NaNs
are equal. The order is stable both ways: equal keys stay in the order in which they came.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels.abi import Number, Scalar
from dashi.kernels.portable._bits import format_of
from dashi.types import HostArray

KEYS: Final = ("u32", "f32", "i32", "u64", "f64", "i64")
"""Types that can be sorted. Their bits alone are looked at, so those of 64 bits need no feature of a device."""
DESCENDING: Final = Scalar("descending", "u32", 0, "1: the largest first, NaN still last; 0: the smallest")


def require_direction(name: str, descending: Number, scalar: str = DESCENDING.name) -> bool:
    """Whether to sort the largest first, as that scalar says; an error for anything but 0 and 1."""
    if descending not in (0, 1):
        raise InputError(f"kernel {name!r}: {scalar} is {descending}.", "pass 0 (smallest first) or 1.")
    return bool(descending)


def order_words(keys: HostArray, descending: bool) -> npt.NDArray[Any]:
    """Unsigned integers whose order is that in which the keys are sorted."""
    word = np.dtype(f"u{keys.dtype.itemsize}").type
    bits = np.ascontiguousarray(keys).view(word)
    sign, top = word(1 << (8 * keys.dtype.itemsize - 1)), word(~word(0))
    if keys.dtype.kind == "u":
        return ~bits if descending else bits
    if keys.dtype.kind == "i":
        return ~(bits ^ sign) if descending else bits ^ sign
    bits = np.where(keys == 0, word(0), bits)
    rising = np.where((bits & sign) != 0, ~bits, bits | sign)
    return np.where(np.isnan(keys), top, ~rising if descending else rising)


def sorted_places(keys: HostArray, descending: bool) -> npt.NDArray[np.uint32]:
    """The places of the keys in their order: keys[sorted_places(keys)] is sorted."""
    return np.argsort(order_words(keys, descending), kind="stable").astype(np.uint32)


def one_nan(keys: HostArray) -> HostArray:
    """The keys bit for bit, but every NaN the canonical one."""
    if keys.dtype.kind != "f":
        return keys
    form = format_of(keys)
    bits = np.ascontiguousarray(keys).view(form.word)
    return np.where((bits & form.magnitude) > form.infinity, form.nan, bits).view(keys.dtype)


def sorted_keys(keys: HostArray, places: npt.NDArray[np.uint32]) -> HostArray:
    """The keys at those places, every NaN the canonical one. Moved as words: NumPy leaves NaNs as they are."""
    words = one_nan(keys).view(np.dtype(f"u{keys.dtype.itemsize}"))
    return words[places].view(keys.dtype)
