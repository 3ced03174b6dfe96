"""Packed weights in the order in which lanes read them: `repack`, and its inverse `unpack`.

A tile is the weights of one row that a run of 64 takes (two blocks of 32), or a K block of 256. Its words are scales,
then high bits of codes, then low bits. The first `words % 4` of them are its heads, the others vectors of four. In an
array of shape (tiles, words, n) lie first all vectors, (tiles, words // 4, n, 4) in C order, then all heads,
(tiles, words % 4, n): neighbouring lanes have neighbouring rows, and read 16 bytes at a time. Only bits move: a row's
last tile is filled up with zeros, and Q6_K has 16 unused bits in 1696.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels._work import RUN, ceil_div
from dashi.kernels.packed._block_format import BlockFormat, Bytes
from dashi.kernels.packed._formats import FORMATS, block_format, byte_rows
from dashi.types import Shape

Words = npt.NDArray[np.uint32]
UNUSED: Final = -1
_TILES_AT_ONCE: Final = 1 << 14
"""Tiles that are repacked at a time: a bit takes a byte meanwhile."""


def tile_length(form: BlockFormat) -> int:
    """Weights of a tile."""
    return max(RUN, form.length)


def tile_words(form: BlockFormat) -> int:
    """Words of a tile."""
    if form.name not in FORMATS:
        raise InputError(
            f"there are no tiles of {form.name}: no kernel reads it.",
            f"widen it by `dequantize`, or use one of {', '.join(FORMATS)}.",
        )
    return len(_sources(form.name)) // 32


def head_place(form: BlockFormat, k: int, n: int) -> int:
    """At which word of an array of tiles the heads of n rows of k weights begin."""
    words = tile_words(form)
    return ceil_div(k, tile_length(form)) * (words - words % 4) * n


def tile_shape(form: BlockFormat, k: int, n: int) -> Shape:
    """The shape of the array of tiles of n rows of k weights."""
    form.row_bytes(k)
    return (ceil_div(k, tile_length(form)), tile_words(form), n)


def repack(name: str, data: npt.ArrayLike) -> Words:
    """The bytes (n, row_bytes) of a file as tiles (tiles of a row, words of a tile, n)."""
    form = block_format(name)
    rows = byte_rows(form, data)
    blocks, per_tile = rows.shape[1] // form.size, tile_length(form) // form.length
    tiles, words = ceil_div(blocks, per_tile), tile_words(form)
    sources = _sources(form.name)
    result = np.zeros((tiles, words, len(rows)), np.uint32)
    vectors, heads = _parts(result)
    step = max(1, _TILES_AT_ONCE // max(1, tiles))
    for top in range(0, len(rows) if tiles else 0, step):
        part = rows[top : top + step]
        padded = np.pad(part, ((0, 0), (0, tiles * per_tile * form.size - rows.shape[1])))
        bits = np.unpackbits(padded.reshape(-1, per_tile * form.size), axis=-1, bitorder="little")
        moved = np.where(sources == UNUSED, np.uint8(0), bits[:, sources])
        packed = np.ascontiguousarray(np.packbits(moved, axis=-1, bitorder="little")).view("<u4")
        packed = packed.reshape(len(part), tiles, words)
        heads[:, :, top : top + step] = packed[:, :, : words % 4].transpose(1, 2, 0)
        fours = packed[:, :, words % 4 :].reshape(len(part), tiles, words // 4, 4)
        vectors[:, :, top : top + step] = fours.transpose(1, 2, 0, 3)
    return result


def unpack(name: str, tiles: npt.ArrayLike, k: int) -> Bytes:
    """The bytes (n, row_bytes) of rows of k weights that `repack` made tiles of."""
    form = block_format(name)
    words = np.asarray(tiles)
    size = form.row_bytes(k)
    expected = tile_shape(form, k, 0)[:2]
    if words.dtype != np.uint32 or words.ndim != 3 or words.shape[:2] != expected:
        raise InputError(
            f"tiles of {form.name} for rows of {k} are not {words.dtype} of shape {words.shape}.",
            f"pass what `repack` gave: uint32 of shape ({expected[0]}, {expected[1]}, n).",
        )
    sources = _sources(form.name)
    n, used = words.shape[2], sources != UNUSED
    result = np.zeros((n, size), np.uint8)
    vectors, heads = _parts(words)
    step = max(1, _TILES_AT_ONCE // max(1, expected[0]))
    for top in range(0, n, step):
        few = heads[:, :, top : top + step].transpose(2, 0, 1)
        fours = (
            vectors[:, :, top : top + step].transpose(2, 0, 1, 3).reshape(len(few), expected[0], expected[1] // 4 * 4)
        )
        part = np.ascontiguousarray(np.concatenate([few, fours], axis=-1), "<u4")
        moved = np.unpackbits(part.view(np.uint8), axis=-1, bitorder="little")
        bits = np.empty((part.shape[0], part.shape[1], int(used.sum())), np.uint8)
        bits[:, :, sources[used]] = moved[:, :, used]
        whole = np.packbits(bits, axis=-1, bitorder="little").reshape(len(part), expected[0] * int(used.sum()) // 8)
        result[top : top + step] = whole[:, :size]
    return result


def _parts(tiles: Words) -> tuple[Words, Words]:
    """The vectors (tiles, words // 4, n, 4) and the heads (tiles, words % 4, n) of an array (tiles, words, n)."""
    count, words, n = tiles.shape
    flat, cut = tiles.reshape(-1), 4 * count * (words // 4) * n
    return flat[:cut].reshape(count, words // 4, n, 4), flat[cut:].reshape(count, words % 4, n)


@cache
def _sources(name: str) -> npt.NDArray[Any]:
    """For each bit of a tile's words the bit of its blocks that goes there, or UNUSED."""
    return np.array([bit for field in _fields(name) for bit in field])


def _fields(name: str) -> Iterable[Iterable[int]]:
    if name in ("F16", "BF16"):
        return (range(16 * RUN),)
    if name in ("Q4_K", "Q5_K"):
        return (*_parts_of_k(), *_fifths_of_k(name), *_nibbles_of_k(name))
    if name == "Q6_K":
        return _q6_k()
    return _pair_of_blocks(name)


def _pair_of_blocks(name: str) -> Iterable[Iterable[int]]:
    size = block_format(name).size
    starts = (0, 8 * size)
    head = 32 if name.endswith("_1") else 16
    yield from (range(start, start + head) for start in starts)
    if name == "Q8_0":
        yield from (range(start + head, start + 8 * size) for start in starts)
        return
    if name.startswith("Q5"):
        yield from (_beside_nibbles([[start + head + i] for i in range(32)]) for start in starts)
        head += 32
    for start in starts:
        for high in (0, 4):
            yield from (_bits_of(start + head + 8 * byte + high, 4) for byte in range(16))


def _bits_of(first: int, count: int) -> range:
    return range(first, first + count)


def _beside_nibbles(codes: Sequence[Sequence[int]]) -> list[int]:
    """A word of upper bits of codes, 1 or 2 of each: four bits apart are those of neighbours, whose lower bits lie four
    bits apart too; then come those of the next eight."""
    return [bit for j in range(8) for i in range(j, len(codes), 8) for bit in codes[i]]


def _parts_of_k() -> Iterable[Iterable[int]]:
    """Four words: two scales and two minima of 6 bits for each 64 weights, then a byte of the two fp16 numbers."""
    for quarter in range(4):
        for first in (32, 64):
            yield from (_six_bits(first, 2 * quarter + h) for h in range(2))
        yield _bits_of(8 * quarter, 8)


def _six_bits(first: int, i: int) -> Iterable[int]:
    """Scale (`first` is 32) or minimum (64) i of a K block, as `_formats` puts it together of 12 bytes."""
    if i < 4:
        return _bits_of(first + 8 * i, 6)
    mixed = 96 + 8 * (i - 4) + (4 if first == 64 else 0)
    return (*_bits_of(mixed, 4), *_bits_of(first + 8 * (i - 4) + 6, 2))


def _fifths_of_k(name: str) -> Iterable[Iterable[int]]:
    if name == "Q5_K":
        yield from (_beside_nibbles([[8 * (16 + byte) + bit] for byte in range(32)]) for bit in range(8))


def _nibbles_of_k(name: str) -> Iterable[Iterable[int]]:
    first = 48 if name == "Q5_K" else 16
    for quarter in range(4):
        for high in (0, 4):
            yield from (_bits_of(8 * (first + 32 * quarter + byte) + high, 4) for byte in range(32))


def _q6_k() -> Iterable[Iterable[int]]:
    yield from (range(8 * 208, 8 * 210), [UNUSED] * 16, range(8 * 192, 8 * 208))
    for half in (0, 32):
        for shift in (0, 2, 4, 6):
            pairs = [_bits_of(8 * (128 + half + byte) + shift, 2) for byte in range(32)]
            yield from (_beside_nibbles(pairs[:16]), _beside_nibbles(pairs[16:]))
    for half in (0, 64):
        for high in (0, 4):
            yield from (_bits_of(8 * (half + byte) + high, 4) for byte in range(64))
