"""An adaptive binary range coder in whole numbers, of which any prefix decodes as far as it is certain.

A model counts the zeros and ones that it has seen, and shares the range out accordingly (G. N. N. Martin 1979; the
counts as R. E. Krichevsky and V. K. Trofimov 1981, doi:10.1109/TIT.1981.1056331). What a decoder does not know of the
code number, since the bytes end, it takes for anything: a bit is decoded only if it is the same whatever would follow.
"""

from __future__ import annotations

from typing import Final

_TOP: Final = 1 << 32
_LEAST: Final = 1 << 24
"""The range stays above this, so that a share of 2^-16 of it is never nothing."""
_SHARES: Final = 16
_RAREST: Final = 1 << (_SHARES - 7)
"""No bit is thought less likely than 1/128: bytes say at most so many bits, also those of a hostile file."""
_MEMORY: Final = 1024
"""Counts are halved from here on: models forget."""


class UncertainError(Exception):
    """The bytes end before the next bit is certain."""


class Models:
    """Counts of zeros and ones for every context."""

    __slots__ = ("ones", "zeros")

    def __init__(self, contexts: int) -> None:
        self.zeros = [1] * contexts
        self.ones = [1] * contexts

    def share(self, context: int) -> int:
        """How likely a zero is, in 2^-16."""
        zeros, ones = self.zeros[context], self.ones[context]
        share = (zeros << _SHARES) // (zeros + ones)
        return min(max(share, _RAREST), (1 << _SHARES) - _RAREST)

    def count(self, context: int, bit: int) -> None:
        """Enters a bit: two for one, so that what is certain is learned early."""
        counts = self.ones if bit else self.zeros
        counts[context] += 2
        if counts[context] > _MEMORY:
            self.zeros[context] = (self.zeros[context] + 1) >> 1
            self.ones[context] = (self.ones[context] + 1) >> 1


class RangeEncoder:
    """Bits in, bytes out."""

    def __init__(self, contexts: int) -> None:
        self.models = Models(contexts)
        self._low = 0
        self._range = _TOP - 1
        self._bytes = bytearray()

    def bit(self, context: int, bit: int) -> int:
        """Encodes a bit; gives it back."""
        models = self.models
        zero = (self._range >> _SHARES) * models.share(context)
        models.count(context, bit)
        self._take(zero, bit)
        return bit

    def even(self, bit: int) -> int:
        """Encodes a bit that is as often one as the other."""
        self._take(self._range >> 1, bit)
        return bit

    def _take(self, zero: int, bit: int) -> None:
        if bit:
            self._low += zero
            self._range -= zero
        else:
            self._range = zero
        while self._range < _LEAST:
            self._shift()
            self._range <<= 8

    def _shift(self) -> None:
        if self._low >= _TOP:
            _carry(self._bytes)
            self._low -= _TOP
        self._bytes.append(self._low >> 24)
        self._low = (self._low << 8) & (_TOP - 1)

    def __len__(self) -> int:
        """Bytes that are there, without the last."""
        return len(self._bytes)

    def finished(self) -> bytes:
        """The fewest bytes from which all bits so far are certain. Encoding may go on."""
        low, high = self._low, self._low + self._range
        for size in (3, 2, 1, 0):
            unit = 1 << (8 * size)
            first = -(-low // unit) * unit
            if first + unit <= high:
                data = bytearray(self._bytes)
                if first >= _TOP:
                    _carry(data)
                    first -= _TOP
                return bytes(data + first.to_bytes(4, "big")[: 4 - size])
        raise AssertionError("a range is never empty")


def _carry(data: bytearray) -> None:
    """Adds one to the number that the bytes are."""
    at = len(data) - 1
    while data[at] == 0xFF:
        data[at] = 0
        at -= 1
    data[at] += 1


class RangeDecoder:
    """Bytes in, bits out, as long as they are certain."""

    def __init__(self, contexts: int, data: bytes) -> None:
        self.models = Models(contexts)
        self._data = data
        self._next = 0
        self._range = _TOP - 1
        self._code = 0
        self._unknown = 0
        for _ in range(4):
            self._read()

    def _read(self) -> None:
        known = self._next < len(self._data)
        self._code = (self._code << 8) | (self._data[self._next] if known else 0)
        self._unknown = (self._unknown << 8) | (0 if known else 0xFF)
        self._next += 1

    def bit(self, context: int, bit: int = 0) -> int:
        """The next bit of a context. `bit` means nothing: encoders take it. Raises UncertainError."""
        models = self.models
        bit = self._give((self._range >> _SHARES) * models.share(context))
        models.count(context, bit)
        return bit

    def even(self, bit: int = 0) -> int:
        """The next bit that is as often one as the other."""
        return self._give(self._range >> 1)

    def _give(self, zero: int) -> int:
        if self._code >= zero:
            self._code -= zero
            self._range -= zero
            bit = 1
        elif min(self._code + self._unknown, self._range - 1) < zero:
            self._range = zero
            bit = 0
        else:
            raise UncertainError
        while self._range < _LEAST:
            self._read()
            self._range <<= 8
        return bit
