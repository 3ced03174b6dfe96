"""Quadratic interactions of modes: reference, operands and cases of galerkin_stage* and galerkin_rollout.

A state z holds K modes as pairs, re and im in turn. Mode k has a list of entries; entry e adds weights[e] w_p w_q.
words[e] = p + 2^14 q + 2^28 s + 2^29 t names the modes p and q, the first conjugate where s is 1, the second where t
is 1. Real and imaginary parts are summed apart, each in the order of the list, tree64; products of two parts are
rounded before their sum or difference, and that before its product with the weight. A list of more than `longest`
entries, one that leaves them, and a mode past the end give NaN. The tendency N is the sum plus a steady force.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError, ShapeError
from dashi.kernels._interleaved_lists import interleave
from dashi.kernels._lists import Lists, prepare_sums
from dashi.kernels._triads import spread
from dashi.kernels.abi import Case, Number
from dashi.kernels.portable import canon, mul
from dashi.kernels.portable._bits import Floats
from dashi.types import HostArray, Shape

BITS: Final = 14
MOST_MODES: Final = 1 << BITS
TERMS: Final = 5
"""Terms of a stage at most: the state, and the tendencies of up to four stages."""


def pack_words(p: Any, q: Any, s: Any, t: Any) -> npt.NDArray[np.uint32]:
    """The words of entries: modes p and q, conjugate where s and t are 1."""
    numbers = [np.asarray(values, np.int64) for values in (p, q, s, t)]
    if any(values.size and (values.min() < 0 or values.max() >= MOST_MODES) for values in numbers):
        raise InputError(f"a list of modes reaches past {MOST_MODES}.", "use fewer modes.")
    first, second, one, two = numbers
    return (first + (second << BITS) + (one << 2 * BITS) + (two << 2 * BITS + 1)).astype(np.uint32)


class ModeForm:
    """The quadratic form on the host, its lists prepared once."""

    def __init__(self, weights: HostArray, words: HostArray, lists: Lists, modes: int) -> None:
        self._sums = prepare_sums(lists)
        numbers = words.astype(np.int64)[lists.order]
        p, q = numbers & (MOST_MODES - 1), numbers >> BITS & (MOST_MODES - 1)
        self._outside = (p >= modes) | (q >= modes)
        self._p, self._q = np.where(self._outside, 0, p), np.where(self._outside, 0, q)
        one, other = numbers >> 2 * BITS & 1, numbers >> 2 * BITS + 1 & 1
        self._s, self._t = (np.where(sign, -1, 1).astype(weights.dtype) for sign in (one, other))
        self._weights = canon(weights)[lists.order]

    def __call__(self, state: Floats) -> Floats:
        """The form of canonical states (m, 2 K)."""
        if state.shape[1] == 0:
            return state
        nan = np.asarray(np.nan, state.dtype)
        a, c = state[:, 0::2][:, self._p], state[:, 0::2][:, self._q]
        b, d = state[:, 1::2][:, self._p] * self._s, state[:, 1::2][:, self._q] * self._t
        parts = (mul(a, c) - mul(b, d), mul(a, d) + mul(b, c))
        made = [self._sums(np.where(self._outside, nan, mul(self._weights, part))) for part in parts]
        return canon(np.stack(made, axis=-1).reshape(state.shape))


def weighted(known: Sequence[Floats], rows: Sequence[Floats]) -> Floats:
    """States and tendencies (m, 2 K), each times a number for each mode, added in order."""
    sums = mul(known[0], np.repeat(canon(rows[0]), 2))
    for x, row in zip(known[1:], rows[1:], strict=True):
        sums = sums + mul(x, np.repeat(canon(row), 2))
    return canon(sums)


def require_pairs(kernel: str, width: int) -> int:
    """The number of modes of a state."""
    if width % 2 or width // 2 > MOST_MODES:
        raise ShapeError(
            f"kernel {kernel!r}: a state of {width} numbers is no list of up to {MOST_MODES} modes.",
            "pass real and imaginary parts in turn.",
        )
    return width // 2


def case(
    m: int, modes: int, each: int, tables: dict[str, Shape], scalars: dict[str, Number], *, hot: int = 0,
    reach: int = 0, short: int = 0, slabs: bool = False,
) -> Case:  # fmt: skip
    """About `each` entries for every mode, one mode with `hot` more; modes up to `reach`; lists declared `short`er."""
    counts = spread(modes, each, hot)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    size = int(counts.sum())
    if slabs:
        ends, (moved,) = interleave(ends, np.zeros(size, np.uint8))
        size = len(moved)
    name = "heads" if slabs else "ends"

    def words(rng: np.random.Generator, shape: Shape) -> HostArray:
        p, q = (rng.integers(0, reach or max(1, modes), shape) for _ in range(2))
        return pack_words(p, q, rng.integers(0, 2, shape), rng.integers(0, 2, shape))

    def fill_ends(rng: np.random.Generator, shape: Shape) -> HostArray:
        return ends

    shapes: dict[str, Shape] = {"z": (m, 2 * modes), "weights": (size,), "words": (size,), name: ends.shape}
    longest = max(0, int(counts.max(initial=0)) - short)
    return Case({**shapes, **tables}, {**scalars, "longest": longest}, {"words": words, name: fill_ends})
