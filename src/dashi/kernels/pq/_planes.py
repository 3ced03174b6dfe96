"""The PQ carrier codec on the host: a ternary field as a support plane P, a sign plane Q and tables of ranks.

P has one bit per site. Q has one bit per supported site (1 for -1), in the order of the sites: the bit of a site is
found at its rank, the number of supported sites before it. `supers` holds the rank of the first site of every
superblock of 16,384 sites, `blocks` that of every block of 512, less the rank of its superblock. Q is as long as P, and
zero past its last bit, so that equal fields have equal planes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels._trits import Flags, Words, bits_to_words, in_turn, minus_of, support_of, words_to_bits
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Case, Fill, Operand
from dashi.types import HostArray, Shape

WORD: Final = 32
BLOCK: Final = 512
SUPER: Final = 16384
PERIOD: Final = 1 << 20
TILE_WORDS: Final = 256
"""Words of the support plane that a workgroup takes at once when it needs their ranks."""

PLANES: Final = (
    Operand("support", "u32", ("n/32",)),
    Operand("signs", "u32", ("n/32",)),
    Operand("blocks", "u32", ("n/512",)),
    Operand("supers", "u32", ("n/16384",)),
)


def pieces(n: int, size: int) -> int:
    """How many parts of that size n is cut into, the last perhaps short."""
    return ceil_div(n, size)


def rank_tables(support: Flags) -> tuple[Words, Words]:
    """(blocks, supers) of a support plane."""
    before = np.concatenate([[0], np.cumsum(support, dtype=np.int64)])[:-1]
    supers = before[::SUPER]
    starts = before[::BLOCK]
    blocks = starts - supers[np.arange(starts.size) // (SUPER // BLOCK)]
    return blocks.astype(np.uint32), supers.astype(np.uint32)


def encode(s: HostArray) -> tuple[Words, Words, Words, Words]:
    """(support, signs, blocks, supers) of a field."""
    support = support_of(s)
    words = pieces(support.size, WORD)
    return (
        bits_to_words(support, words),
        bits_to_words(minus_of(s)[support], words),
        *rank_tables(support),
    )


def encode_repeated(field: HostArray, times: int) -> tuple[Words, Words, Words, Words]:
    """The planes of a field repeated so many times, quickly: it must fill superblocks and have 32 i supported sites."""
    support, signs, blocks, supers = encode(field)
    count = int(support_of(field).sum())
    if field.size % SUPER or count % WORD:
        raise InputError(
            f"a field of {field.size} sites, {count} of them supported, does not repeat in whole words.",
            f"pass a multiple of {SUPER} sites, and of {WORD} supported ones.",
        )
    whole = np.zeros(support.size * times, np.uint32)
    whole[: times * count // WORD] = np.tile(signs[: count // WORD], times)
    starts = (np.arange(times, dtype=np.uint32)[:, None] * np.uint32(count) + supers).reshape(-1)
    return np.tile(support, times), whole, np.tile(blocks, times), starts


def ranks(support: HostArray, blocks: HostArray, supers: HostArray, n: int) -> npt.NDArray[np.int64]:
    """The rank of every site, read from the tables as kernels do: modulo 2^32, whatever they hold."""
    flags = words_to_bits(support, n)
    before = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])[:-1]
    sites = np.arange(n)
    start = sites // BLOCK * BLOCK
    table = supers.astype(np.int64)[sites // SUPER] + blocks.astype(np.int64)[sites // BLOCK]
    return (table + before - before[start]) & 0xFFFFFFFF


def signs_at(signs: HostArray, rank: npt.NDArray[np.int64]) -> Flags:
    """The bits of the sign plane at these ranks; 0 past its end."""
    bits = words_to_bits(signs, WORD * signs.size)
    inside = rank < bits.size
    found: npt.NDArray[Any] = np.zeros(rank.shape, np.bool_)
    found[inside] = bits[rank[inside]]
    return found


def plane_cases(lengths: tuple[int, ...], *, extra: dict[str, tuple[Shape, Fill]] | None = None) -> tuple[Case, ...]:
    """Cases of kernels that read planes and tables: those of fields of many lengths and kinds."""
    return tuple(plane_case(n, fill, extra=extra) for n, fill in in_turn(lengths))


def _planes(n: int, fill: Fill) -> tuple[Words, Words, Words, Words]:
    """The planes of one field: the same at every call. Long ones repeat a period."""
    rng = np.random.default_rng(n)
    if n <= PERIOD or n % PERIOD:
        return encode(fill(rng, (n,)))
    field = fill(rng, (PERIOD,))
    held = np.flatnonzero(support_of(field))
    field[held[held.size - held.size % WORD :]] = 0
    return encode_repeated(field, n // PERIOD)


def plane_case(n: int, fill: Fill, *, extra: dict[str, tuple[Shape, Fill]] | None = None) -> Case:
    """The planes of one field, made when the case is filled."""

    def part(index: int) -> Fill:
        # Each operand has a generator of its own, but all must be of one field.
        return lambda _, __: _planes(n, fill)[index]

    more = extra or {}
    shapes = {o.name: (pieces(n, int(str((o.shape or ("n/1",))[0]).split("/")[1])),) for o in PLANES}
    fills = {o.name: part(index) for index, o in enumerate(PLANES)}
    return Case(
        {**shapes, **{name: shape for name, (shape, _) in more.items()}},
        {"n": n},
        {**fills, **{name: made for name, (_, made) in more.items()}},
    )
