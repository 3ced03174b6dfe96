"""BLAKE3 (hash mode, no key), whole or cut to 128 bits, on the host: NumPy arithmetic on many chunks side by side.

The definition is section 2 of the BLAKE3 paper (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020). A lane is one chunk
or one parent node. The 16 words of state of all lanes are four arrays of four rows, so that one NumPy call does a
step of the mixing function for a whole quarter of the state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from dashi.kernels._work import ceil_div
from dashi.types import HostArray

Data = bytes | bytearray | memoryview | HostArray
Words = npt.NDArray[np.uint32]

CHUNK: Final = 1024
BLOCK: Final = 64
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
# The first 32 bits of the fractions of the square roots of the first eight primes, as in SHA-256.
IV: Final = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)  # fmt: skip
PERMUTATION: Final = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
ROUNDS: Final = 7
# So many lanes that calls are long beside Python's cost per call, so few that state and message stay in cache.
_LANES: Final = 8192
_SUBTREE: Final = _LANES * CHUNK


def hexdigest128(data: Data) -> str:
    """The digest as 32 lower-case hexadecimal digits."""
    return digest128(data).astype("<u4").tobytes().hex()


def hexdigest256(data: Data) -> str:
    """The whole digest as 64 lower-case hexadecimal digits, of which the first 32 are those of `hexdigest128`."""
    return _digest(data).astype("<u4").tobytes().hex()


def digest128(data: Data) -> Words:
    """The first 128 bits of the BLAKE3 digest of the bytes (an array's in C order), as four little-endian words."""
    return _digest(data)[:4]


def _digest(data: Data) -> Words:
    octets = _octets(data)
    chunks = max(1, ceil_div(octets.size, CHUNK))
    nodes = _all_chunk_values(octets, chunks)
    while nodes.shape[1] > 1:
        nodes = _parent_values(nodes)
    return nodes[:, 0].copy()


def hexdigest128_of(pieces: Iterable[Data]) -> str:
    """`hexdigest128` of all pieces one after another, of which at most one is held besides 8 MiB: each 8 MiB, a whole
    subtree, become one node as soon as it is known that more follow."""
    held, size, done = list[npt.NDArray[np.uint8]](), 0, 0
    nodes = list[Words]()
    for piece in pieces:
        octets = _octets(piece)
        while octets.size:
            if size == _SUBTREE:
                nodes.append(_subtree(held, done))
                held, size, done = [], 0, done + _LANES
            part = octets[: _SUBTREE - size]
            # A copy: whoever hands in pieces may fill the same memory again.
            held.append(part.copy())
            size, octets = size + part.size, octets[part.size :]
    if not nodes:
        return hexdigest128(np.concatenate(held) if held else b"")
    level = np.concatenate([*nodes, _subtree(held, done)], axis=1)
    while level.shape[1] > 1:
        level = _parent_values(level)
    return level[:4, 0].astype("<u4").tobytes().hex()


def _subtree(held: list[npt.NDArray[np.uint8]], first: int) -> Words:
    """The chaining value above some chunks, of which the first has a number; never that of the root."""
    level = chunk_values(np.concatenate(held), first, root=False)
    while level.shape[1] > 1:
        level = _parent_values(level, inner=True)
    return level


def _octets(data: Data) -> npt.NDArray[np.uint8]:
    if isinstance(data, np.ndarray):
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return np.frombuffer(memoryview(data).cast("B"), np.uint8)


def _all_chunk_values(octets: npt.NDArray[np.uint8], chunks: int) -> Words:
    """The chaining value of every chunk, one per column."""
    values = np.empty((8, chunks), np.uint32)
    for first in range(0, chunks, _LANES):
        part = octets[first * CHUNK : (first + _LANES) * CHUNK]
        values[:, first : first + _LANES] = chunk_values(part, first, chunks == 1)
    return values


def chunk_values(octets: npt.NDArray[np.uint8], first: int, root: bool) -> Words:
    """Chaining values of consecutive chunks, of which the last may be short."""
    lanes = max(1, ceil_div(octets.size, CHUNK))
    last = octets.size - (lanes - 1) * CHUNK
    whole = octets[: octets.size // CHUNK * CHUNK].view("<u4").reshape(-1, CHUNK // 4)
    padded = np.zeros(CHUNK, np.uint8)
    padded[:last] = octets[octets.size - last :]
    state = _State(lanes)
    counter = np.arange(first, first + lanes, dtype=np.uint64)
    last_blocks = max(1, ceil_div(last, BLOCK))
    for block in range(CHUNK // BLOCK):
        # Once the last chunk has ended, it drops out.
        active = lanes if block < last_blocks else lanes - 1
        if active == 0:
            break
        words = slice(block * BLOCK // 4, (block + 1) * BLOCK // 4)
        state.message[:, : len(whole)] = whole[:, words].T
        state.message[:, lanes - 1] = padded.view("<u4")[words]
        flags = CHUNK_START * (block == 0) | CHUNK_END * (block == CHUNK // BLOCK - 1)
        length = np.full(active, BLOCK, np.uint32)
        marks = np.full(active, flags, np.uint32)
        if active == lanes and block == last_blocks - 1:
            length[-1] = last - block * BLOCK
            marks[-1] |= np.uint32(CHUNK_END | ROOT * root)
        state.compress(active, counter[:active], length, marks)
    return state.value


def _parent_values(nodes: Words, *, inner: bool = False) -> Words:
    """The next level of the tree, or of an inner part of it: neighbours pair up, an odd last one is carried up
    unchanged."""
    count = nodes.shape[1]
    pairs = count // 2
    above = np.empty((8, count - pairs), np.uint32)
    if count % 2:
        above[:, -1] = nodes[:, -1]
    flags = np.uint32(PARENT | ROOT * (count == 2 and not inner))
    for first in range(0, pairs, _LANES):
        lanes = min(_LANES, pairs - first)
        state = _State(lanes)
        state.message[:8] = nodes[:, 2 * first : 2 * (first + lanes) : 2]
        state.message[8:] = nodes[:, 2 * first + 1 : 2 * (first + lanes) : 2]
        state.compress(lanes, np.zeros(lanes, np.uint64), np.uint32(BLOCK), flags)
        above[:, first : first + lanes] = state.value
    return above


class _State:
    """The lanes' chaining values and messages, and the room to mix them in."""

    def __init__(self, lanes: int) -> None:
        self.value = np.empty((8, lanes), np.uint32)
        self.value[:] = np.array(IV, np.uint32)[:, None]
        self.message = np.empty((16, lanes), np.uint32)
        self._spare = np.empty_like(self.message)
        # Mixing diagonals is mixing columns with b, c and d turned by 1, 2 and 3 rows. A few rows more let one array
        # hold both orders: only the rows at the seam are copied when the order changes.
        self._rows = tuple(np.empty((rows, lanes), np.uint32) for rows in (4, 5, 6, 5))
        self._scratch = np.empty((2, 4, lanes), np.uint32)

    def compress(
        self, lanes: int, counter: npt.NDArray[np.uint64], length: Words | np.uint32, flags: Words | np.uint32
    ) -> None:
        """Replaces the first lanes' chaining values by those after one more block; the message is used up."""
        value = self.value[:, :lanes]
        a, b, c, d = (rows[:, :lanes] for rows in self._rows)
        scratch = self._scratch[:, :, :lanes]
        a[:] = value[:4]
        b[:4] = value[4:]
        c[:4] = np.array(IV[:4], np.uint32)[:, None]
        d[1] = counter & 0xFFFFFFFF
        d[2] = counter >> np.uint64(32)
        d[3] = length
        d[4] = flags
        message, spare = self.message, self._spare
        for index in range(ROUNDS):
            if index:
                np.take(message, PERMUTATION, axis=0, out=spare, mode="clip")
                message, spare = spare, message
            m = message[:, :lanes]
            _mix(a, b[:4], c[:4], d[1:], m[0:8:2], m[1:8:2], scratch)
            b[4], c[4:], d[0] = b[0], c[:2], d[4]
            _mix(a, b[1:], c[2:], d[:4], m[8::2], m[9::2], scratch)
            b[0], c[:2], d[4] = b[4], c[4:], d[0]
        np.bitwise_xor(a, c[:4], out=value[:4])
        np.bitwise_xor(b[:4], d[1:], out=value[4:])


def _mix(a: Words, b: Words, c: Words, d: Words, x: Words, y: Words, scratch: Words) -> None:
    """The mixing function G on four columns at once, in place."""
    for message, first, second in ((x, 16, 12), (y, 8, 7)):
        np.add(a, b, out=a)
        np.add(a, message, out=a)
        np.bitwise_xor(d, a, out=d)
        _rotate(d, first, scratch)
        np.add(c, d, out=c)
        np.bitwise_xor(b, c, out=b)
        _rotate(b, second, scratch)


def _rotate(x: Words, right: int, scratch: Words) -> None:
    np.right_shift(x, np.uint32(right), out=scratch[0])
    np.left_shift(x, np.uint32(32 - right), out=scratch[1])
    np.bitwise_or(scratch[0], scratch[1], out=x)
