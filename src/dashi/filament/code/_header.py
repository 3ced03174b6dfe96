"""The header of an embedded code: what a decoder must know before the first bit, bounded before memory is taken."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Final

from dashi.errors import FileError
from dashi.filament.code._residuals import BASES

_MAGIC: Final = b"dF"
VERSION: Final = 1
LARGEST: Final = 2048
"""Points along a side of a field."""
_MOST_PLANES: Final = 64
_MOST_ATOMS: Final = 1024
_MOST_MARKS: Final = 1 << 32
_EXPONENTS: Final = 1 << 11
_AGAIN: Final = "get it again from where it was packed, or pack the field again."


@dataclass(frozen=True, kw_only=True)
class CodeHeader:
    """Points along a side; the basis of the residual, the exponent of its finest plane and how many planes there are;
    how many atoms, and the exponent of their amplitudes; marks up to which the code is meant to be read."""

    n: int
    basis: str
    finest: int
    planes: int
    atoms: int
    marks: int
    amplitude: int = 0
    checksum: int = 0

    def with_marks(self, marks: int) -> CodeHeader:
        """The header of a code that ends at this mark."""
        return replace(self, marks=marks)

    def with_body(self, body: bytes) -> bytes:
        """CodeHeader and body."""
        return self._fields() + zlib.crc32(body).to_bytes(4, "little") + body

    def is_sound(self, body: bytes) -> bool:
        """Whether this is the body that was packed."""
        return zlib.crc32(body) == self.checksum

    def size(self, marks: int) -> int:
        """Bytes of the header of a code that ends at this mark."""
        return len(self.with_marks(marks)._fields()) + 4

    def _fields(self) -> bytes:
        first = _MAGIC + bytes([VERSION << 4 | BASES.index(self.basis)])
        numbers = [self.n, _folded(self.finest), self.planes, self.atoms, self.marks]
        numbers += [_folded(self.amplitude)] if self.atoms else []
        return first + b"".join(map(_variable, numbers))


def read_header(data: bytes) -> tuple[CodeHeader, bytes]:
    """The header of a code, and what follows. Raises FileError."""
    if len(data) < 3 or not data.startswith(_MAGIC):
        if _MAGIC.startswith(data[:2]) and len(data) < 3:
            raise _cut_short(len(data))
        raise FileError("this is no packed field: it does not begin as one.", "pass what `dashi filament pack` wrote.")
    version, basis = data[2] >> 4, data[2] & 15
    if version != VERSION or basis >= len(BASES):
        raise FileError(f"the code is of version {version}.{basis}, which is not read here.", _AGAIN)
    numbers: list[int] = []
    at = 3
    for _ in range(5):
        number, at = _read_variable(data, at)
        numbers.append(number)
    n, finest, planes, atoms, marks = numbers
    amplitude = 0
    if atoms:
        amplitude, at = _read_variable(data, at)
    if len(data) < at + 4:
        raise _cut_short(len(data))
    header = CodeHeader(
        n=n, basis=BASES[basis], finest=_unfolded(finest), planes=planes, atoms=atoms, marks=marks,
        amplitude=_unfolded(amplitude), checksum=int.from_bytes(data[at : at + 4], "little"),
    )  # fmt: skip
    _require_possible(header)
    return header, data[at + 4 :]


def _require_possible(header: CodeHeader) -> None:
    possible = (
        4 <= header.n <= LARGEST
        and header.planes <= _MOST_PLANES
        and header.atoms <= _MOST_ATOMS
        and header.marks < _MOST_MARKS
        and abs(header.finest) < _EXPONENTS // 4 * 2
        and abs(header.amplitude) < _EXPONENTS // 4 * 2
        and header.finest + header.planes < _EXPONENTS // 2 - 24
    )
    if not possible:
        raise FileError(
            f"the header claims a field of {header.n} x {header.n}, {header.planes} planes, {header.atoms} atoms and "
            f"{header.marks} marks, which cannot be.",
            _AGAIN,
        )


def _cut_short(size: int) -> FileError:
    return FileError(f"the code is cut short in its header, after {size} bytes.", "pass 32 bytes of it, or more.")


def _variable(number: int) -> bytes:
    """A number from 0 on in bytes of seven bits, the last one with the high bit clear."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _read_variable(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data):
            raise _cut_short(len(data))
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return number, at
        if shift > 63:
            raise FileError("the header of the code holds a number without an end.", _AGAIN)


def _folded(number: int) -> int:
    """A whole number as one from 0 on."""
    return 2 * number if number >= 0 else -2 * number - 1


def _unfolded(number: int) -> int:
    return -(number + 1) // 2 if number & 1 else number // 2
