"""Ternary fields on the host: their planes and packings, in NumPy, and what their kernels share.

A field s holds -1, 0 or +1 as i8. Of each byte kernels look at two bits: bit 0 is the support, bit 1 the sign; so
every byte means something, and -1, 0 and +1 mean themselves. Shaders read and write fields four sites to a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels.abi import Fill, Scalar
from dashi.types import HostArray, Shape

LOCAL: Final = 256
SITES: Final = Scalar("n", "u32", doc="number of sites")
LENGTHS: Final = (0, 1, 3, 4, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 511, 512, 513, 4097, 16383, 16384, 16385, 70000)
"""Around words, vectors, blocks and superblocks."""

Words = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]


def sum64_trips(count: int) -> int:
    """Loop iterations of `_include/item_sum64.glsl`: every addend, every run, and the ends of runs of runs."""
    return count + 2 * (count // 64 + 1) + count // 4096 + 1


def support_of(s: HostArray) -> Flags:
    """Where a field is not zero, flat."""
    return (s.reshape(-1).view(np.uint8) & 1).astype(np.bool_)


def minus_of(s: HostArray) -> Flags:
    """Where a field is -1, flat."""
    return (s.reshape(-1).view(np.uint8) & 3) == 3


def field_of(support: Flags, minus: Flags) -> npt.NDArray[np.int8]:
    """The field of these planes."""
    return np.where(minus, -1, support).astype(np.int8)


def bits_to_words(flags: Flags, count: int) -> Words:
    """One bit per flag, the first in the lowest bit of the first word, in `count` words."""
    data = np.zeros(4 * count, np.uint8)
    packed = np.packbits(flags, bitorder="little")
    data[: packed.size] = packed
    return data.view("<u4").astype(np.uint32)


def words_to_bits(words: HostArray, count: int) -> Flags:
    """The first `count` bits of a plane."""
    data = np.ascontiguousarray(words.astype("<u4")).view(np.uint8)
    return np.unpackbits(data, count=count, bitorder="little").astype(np.bool_)


def padded(values: npt.NDArray[Any], multiple: int) -> npt.NDArray[Any]:
    """A list as rows, extended with zeros to a whole number of them."""
    return np.pad(values, (0, -values.size % multiple)).reshape(-1, multiple)


def codes_to_words(codes: npt.NDArray[Any], bits: int) -> Words:
    """Codes of so many bits, the first in the lowest bits of the first word."""
    rows = padded(codes.astype(np.uint32), 32 // bits)
    return np.bitwise_or.reduce(rows << np.arange(0, 32, bits, dtype=np.uint32), axis=1)


def words_to_codes(words: npt.NDArray[Any], bits: int) -> Words:
    """Every code of so many bits."""
    codes = (words[:, None] >> np.arange(0, 32, bits, dtype=np.uint32)) & np.uint32((1 << bits) - 1)
    return np.asarray(codes, np.uint32).reshape(-1)


def words_to_trits(words: HostArray) -> npt.NDArray[np.int8]:
    """Every trit of a field with two bits per site; a sign without support is 0."""
    return np.array([0, 1, 0, -1], np.int8)[words_to_codes(words, 2)]


def random_trits(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Each of the three values alike."""
    return rng.integers(-1, 2, shape, dtype=np.int8)


def all_zero(_: np.random.Generator, shape: Shape) -> HostArray:
    """No support at all."""
    return np.zeros(shape, np.int8)


def all_set(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Support everywhere, random signs."""
    return (2 * rng.integers(0, 2, shape, dtype=np.int8) - 1).astype(np.int8)


def one_site(rng: np.random.Generator, shape: Shape) -> HostArray:
    """One -1 somewhere."""
    sites = np.zeros(shape, np.int8)
    if sites.size:
        sites.reshape(-1)[rng.integers(sites.size)] = -1
    return sites


def any_bytes(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Bytes that are no trits too: kernels must agree on those as well."""
    return rng.integers(-128, 128, shape, dtype=np.int8)


FIELDS: Final[tuple[Fill, ...]] = (random_trits, all_zero, all_set, one_site, any_bytes)


def in_turn(lengths: Iterable[int]) -> Iterable[tuple[int, Fill]]:
    """Every length with a filled field, the kinds of fields in turn, and a long one with each kind."""
    yield from ((n, FIELDS[i % len(FIELDS)]) for i, n in enumerate(lengths))
    yield from ((40000, fill) for fill in FIELDS)


def random_words(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Any words."""
    return rng.integers(0, 1 << 32, shape, dtype=np.uint32)
