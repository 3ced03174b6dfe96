"""Random numbers that every machine makes alike, each from its own name: Philox 4x32 with ten rounds.

A counter and a key give four words, so that a number can be asked for by what it is for (a seed, a step, a mode) in any
order. J. Salmon, M. Moraes, R. Dror, D. Shaw, SC 2011, doi 10.1145/2063384.2063405. Twin of _include/philox.glsl.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[Any]
ROUNDS: Final = 10
_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_WEYL: Final = (0x9E3779B9, 0xBB67AE85)
_MASK: Final = np.uint64(0xFFFFFFFF)
_HIGH: Final = np.uint64(32)
_BLOCK: Final = 1 << 14
"""Counters that are worked on at a time: all that comes of them stays in a cache."""


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Words, Words, Words, Words]:
    """Four words (uint32) for every counter; counters and keys are taken modulo 2^32 and broadcast."""
    # Each part keeps the shape it has until it meets another: most are single numbers.
    parts = [_words(part) for part in (*counter, *key)]
    shape = np.broadcast_shapes(*(part.shape for part in parts))
    if math.prod(shape) <= _BLOCK:
        return _rounds(parts)
    a, b, c, d = (np.empty(shape, np.uint32) for _ in range(4))
    height = max(1, _BLOCK * shape[0] // math.prod(shape))
    for row in range(0, shape[0], height):
        some = slice(row, row + height)
        block = [part[some] if part.ndim == len(shape) and len(part) > 1 else part for part in parts]
        for result, words in zip((a, b, c, d), _rounds(block), strict=True):
            result[some] = words
    return a, b, c, d


def _rounds(parts: Sequence[Words]) -> tuple[Words, Words, Words, Words]:
    a, b, c, d, first, second = parts
    for _ in range(ROUNDS):
        one, two = a * np.uint64(_MULTIPLIERS[0]), c * np.uint64(_MULTIPLIERS[1])
        a, b, c, d = (two >> _HIGH) ^ b ^ first, two & _MASK, (one >> _HIGH) ^ d ^ second, one & _MASK
        first = (first + np.uint64(_WEYL[0])) & _MASK
        second = (second + np.uint64(_WEYL[1])) & _MASK
    return a.astype(np.uint32), b.astype(np.uint32), c.astype(np.uint32), d.astype(np.uint32)


def _words(value: Any) -> Words:
    return np.asarray(value).astype(np.int64).astype(np.uint64) & _MASK


def unit(words: Words, dtype: npt.DTypeLike) -> Words:
    """Numbers from 0 up to, but without, 1: the upper 24 bits of a word for float32, all 32 for float64."""
    kind: Any = np.dtype(dtype).type
    if np.dtype(dtype).itemsize == 4:
        return (words >> np.uint32(8)).astype(dtype) * kind(2.0**-24)
    return words.astype(dtype) * kind(2.0**-32)
