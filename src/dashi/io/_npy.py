"""The header of an .npy array (NEP 1, "A Simple File Format for NumPy Arrays"), read without trust."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass
from typing import IO, Any, Final, cast

import numpy as np

from dashi.errors import FileError
from dashi.types import HostArray, Shape

_MAGIC: Final = b"\x93NUMPY"
_LONGEST: Final = 10_000
LONGEST_HEADER: Final = 12 + _LONGEST
"""Bytes before the first element, at most."""
_AXES: Final = 8
_ALIGN: Final = 64
_MOST: Final = 1 << 48
# Numbers, booleans, text. Nothing that needs pickle, and no records.
_TYPE: Final = re.compile(r"[<>|=]?(?:f[248]|[iu][1248]|b1|U[1-9]\d{0,3})")
_SAVE: Final = "save it as a plain array of numbers with numpy.savez."


@dataclass(frozen=True)
class Header:
    """What an array claims to be, and where its elements begin."""

    dtype: np.dtype[Any]
    shape: Shape
    fortran: bool
    offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def array(self, octets: HostArray) -> HostArray:
        """The array whose elements are these bytes, in C order and native byte order."""
        flat: HostArray = octets.view(self.dtype) if self.nbytes else np.empty(0, self.dtype)
        shaped = flat.reshape(self.shape[::-1]).T if self.fortran else flat.reshape(self.shape)
        native = shaped.astype(self.dtype.newbyteorder("="), copy=False)
        return np.ascontiguousarray(native).reshape(self.shape)


def read_header(file: IO[bytes], where: str) -> Header:
    """Reads up to the first element. Raises FileError for anything that NumPy would not have written."""
    start = file.read(8)
    if len(start) < 8 or start[:6] != _MAGIC or start[6] not in (1, 2, 3):
        raise FileError(f"{where} is not a NumPy array.", _SAVE)
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    text = file.read(length) if length <= _LONGEST else b""
    if len(text) < length or not text:
        raise FileError(f"{where} has a header that is cut short or too long ({length} bytes).", _SAVE)
    return _parse(text, where, 8 + width + length)


def _parse(text: bytes, where: str, offset: int) -> Header:
    try:
        header: Any = ast.literal_eval(text.decode("latin-1").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise FileError(f"{where} has a header that cannot be read.", _SAVE) from error
    fields = cast("dict[Any, Any]", header) if isinstance(header, dict) else {}
    if set(fields) != {"descr", "fortran_order", "shape"}:
        raise FileError(f"{where} has a header with other fields than NumPy writes.", _SAVE)
    kind, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        why = "it would need pickle, which can run code" if "O" in str(kind) else "only numbers and text are read"
        raise FileError(f"{where} has elements of type {str(kind)[:40]}: {why}.", _SAVE)
    if not isinstance(fortran, bool) or not _is_shape(shape):
        raise FileError(f"{where} has a header with a shape that is none: {str(shape)[:80]}.", _SAVE)
    return Header(np.dtype(kind), shape, fortran, offset)


def _is_shape(shape: Any) -> bool:
    if not isinstance(shape, tuple):
        return False
    axes = cast("tuple[Any, ...]", shape)
    # Also an array without elements must have a shape that NumPy can count.
    return (
        len(axes) <= _AXES
        and all(type(n) is int and n >= 0 for n in axes)
        and math.prod(max(1, n) for n in axes) < _MOST
    )


def write_header(file: IO[bytes], values: HostArray) -> None:
    """The header of an array in C order; its length keeps the elements aligned, as NumPy does."""
    text = repr({"descr": values.dtype.str, "fortran_order": False, "shape": values.shape})
    length = -(-(10 + len(text) + 1) // _ALIGN) * _ALIGN - 10
    file.write(_MAGIC + b"\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n")
