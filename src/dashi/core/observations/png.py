"""Pictures as PNG files and short films as animated PNG, with nothing but zlib.

PNG and its animation chunks are simple enough to write by hand, and every browser plays them: the core needs no image
library. The format is that of W3C, Portable Network Graphics (PNG) Specification, third edition, 2025.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import IO, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import ShapeError

Pixels = npt.NDArray[np.uint8]
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_UP: Final = 2
"""The filter that stores what differs from the row above: rows of our pictures repeat."""


def write_png(file: IO[bytes], picture: Pixels) -> None:
    """One picture of bytes (h, w, 3): red, green, blue."""
    h, w = _size(picture)
    file.write(_SIGNATURE)
    _chunk(file, b"IHDR", _header(h, w))
    _chunk(file, b"IDAT", _packed(picture))
    _chunk(file, b"IEND", b"")


def write_apng(file: IO[bytes], pictures: Iterable[Pixels], count: int, milliseconds: int) -> None:
    """A film of `count` pictures of one size, each shown so long, repeated for ever. Viewers that know no animation
    show the first."""
    size, frames, number = (0, 0), 0, 0
    for picture in pictures:
        h, w = _size(picture)
        if frames == 0:
            size = (h, w)
            file.write(_SIGNATURE)
            _chunk(file, b"IHDR", _header(h, w))
            _chunk(file, b"acTL", struct.pack(">II", count, 0))
        if (h, w) != size:
            raise ShapeError(f"picture {frames} of a film has size {(h, w)}, the first {size}.", "pass one size.")
        _chunk(file, b"fcTL", struct.pack(">IIIIIHHBB", number, w, h, 0, 0, milliseconds, 1000, 0, 0))
        if frames == 0:
            _chunk(file, b"IDAT", _packed(picture))
        else:
            number += 1
            _chunk(file, b"fdAT", struct.pack(">I", number) + _packed(picture))
        number += 1
        frames += 1
    if frames != count or not frames:
        raise ShapeError(f"a film of {count} pictures was given {frames}.", "pass as many as there are, at least one.")
    _chunk(file, b"IEND", b"")


def _size(picture: Pixels) -> tuple[int, int]:
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise ShapeError(
            f"a picture is bytes of shape (h, w, 3), not {picture.dtype} of shape {picture.shape}.",
            "pass red, green and blue as uint8.",
        )
    return picture.shape[0], picture.shape[1]


def _header(h: int, w: int) -> bytes:
    """Eight bits a channel, three channels, not interlaced."""
    return struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)


def _packed(picture: Pixels) -> bytes:
    rows = picture.reshape(picture.shape[0], -1)
    above = np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
    filtered = np.full((rows.shape[0], rows.shape[1] + 1), _UP, np.uint8)
    filtered[:, 1:] = rows - above  # bytes wrap round, as the filter wants
    return zlib.compress(filtered.tobytes(), 6)


def _chunk(file: IO[bytes], kind: bytes, data: bytes) -> None:
    file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind))))
