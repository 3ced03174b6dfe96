"""Coefficients, bit plane by bit plane: blocks in which none is large yet take one bit together.

Every band of coefficients has a pyramid of blocks, 2 x 2 of one level below each of the next. In a plane p the
blocks that were small so far are asked, the smallest blocks first, whether any coefficient in them is 2^p or more;
one that is gives way to its four parts, down to the coefficient, which then tells its sign. Coefficients that were
large before tell their next binary digit. (As in embedded coding by zero blocks: S.-T. Hsiang and J. W. Woods 2000,
doi:10.1109/ISCAS.2000.856205.) Encoder and decoder take the same walk; only one of them knows the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from dashi.filament.threads.blobs import Floats

_LEVELS: Final = 3
"""Levels of blocks that have contexts of their own."""
_SIGNIFICANCE: Final = _LEVELS * 5 * 3 * 2
_REFINEMENT: Final = 6
CONTEXTS: Final = _SIGNIFICANCE + _REFINEMENT + 1
MARK: Final = CONTEXTS - 1
"""The context of the marks between pieces."""
FIRST, LATER = 0.42, 0.48
"""Where in its interval a coefficient is put, after its first bit and later: small ones are the more frequent."""


class Coder(Protocol):
    """An encoder, which takes bits, or a decoder, which gives them."""

    def bit(self, context: int, bit: int = 0) -> int:
        """A bit of a context."""
        ...

    def even(self, bit: int = 0) -> int:
        """A bit that is as often one as the other."""
        ...


@dataclass
class Coefficient:
    """A coefficient that is large: where, how large in units of its plane, in which plane, and of which sign."""

    place: int
    digits: int
    plane: int
    negative: int
    first: bool = True

    @property
    def value(self) -> float:
        """The middle, or nearly, of the interval that is known."""
        size = (self.digits + (FIRST if self.first else LATER)) * 2.0**self.plane
        return -size if self.negative else size


class CoefficientBand:
    """A rectangle of coefficients and its pyramid of blocks. Rows have a margin, so that neighbours always exist."""

    def __init__(self, shape: tuple[int, int], parent: CoefficientBand | None, truth: Floats | None = None) -> None:
        self.shape = shape
        self.parent = parent
        self.shapes = [shape]
        while self.shapes[-1] != (1, 1):
            rows, columns = self.shapes[-1]
            self.shapes.append(((rows + 1) // 2, (columns + 1) // 2))
        self.strides = [columns + 2 for _, columns in self.shapes]
        self.large = [bytearray((rows + 2) * (columns + 2)) for rows, columns in self.shapes]
        self.waiting: list[list[int]] = [[] for _ in self.shapes]
        self.waiting[-1] = [self.strides[-1] + 1]
        self.blocks: list[Coefficient] = []
        self.sizes: list[memoryview] = []
        self.signs = memoryview(b"")
        if truth is not None:
            self._know(truth)

    def _know(self, truth: Floats) -> None:
        """Takes the coefficients as an encoder knows them: whole numbers of the finest plane, with signs."""
        sizes = np.abs(truth).astype(np.int64)
        self.signs = np.pad(truth < 0, 1).astype(np.uint8).ravel().data
        for rows, columns in self.shapes:
            self.sizes.append(np.pad(sizes, 1).ravel().data)
            even = np.pad(sizes, ((0, rows % 2), (0, columns % 2)))
            sizes = even.reshape(even.shape[0] // 2, 2, even.shape[1] // 2, 2).max(axis=(1, 3))

    def parts(self, level: int, place: int) -> Iterator[int]:
        """The up to four blocks, a level below, that make up a block."""
        stride = self.strides[level]
        row, column = (place // stride - 1) * 2, (place % stride - 1) * 2
        rows, columns = self.shapes[level - 1]
        below = self.strides[level - 1]
        for r in (row, row + 1):
            for c in (column, column + 1):
                if r < rows and c < columns:
                    yield (r + 1) * below + c + 1

    def context(self, level: int, place: int) -> int:
        """What is known around a block: large neighbours, the block of the coarser band, the level."""
        large, stride = self.large[level], self.strides[level]
        beside = large[place - 1] + large[place + 1] + large[place - stride] + large[place + stride]
        across = (
            large[place - stride - 1]
            + large[place - stride + 1]
            + large[place + stride - 1]
            + large[place + stride + 1]
        )
        near = 4 if beside > 2 else min(3, beside + (across > 1)) if beside else (1 if across else 0)
        above = 2
        parent = self.parent
        if parent is not None and level < len(parent.shapes):
            rows, columns = parent.shapes[level]
            if parent.shape == self.shape:
                above = parent.large[level][place]
            else:
                row, column = (place // stride - 1) // 2, (place % stride - 1) // 2
                above = parent.large[level][
                    (min(row, rows - 1) + 1) * parent.strides[level] + min(column, columns - 1) + 1
                ]
        return ((min(level, _LEVELS - 1) * 5 + near) * 3 + above) * 2


def walk(
    coder: Coder, bands: list[CoefficientBand], planes: range
) -> Iterator[tuple[CoefficientBand, Coefficient, float]]:
    """Codes plane after plane, from the largest down. Gives every coefficient as it becomes large or more exact, with
    the value that it was put at before."""
    for plane in planes:
        for band in bands:
            before = len(band.blocks)
            for level in range(len(band.shapes)):
                yield from _ask(coder, band, level, plane)
            knows = bool(band.sizes)
            for block in band.blocks[:before]:
                size = band.sizes[0][block.place] >> plane if knows else 0
                context = _SIGNIFICANCE + (3 if block.first else 0) + min(2, band.context(0, block.place) // 12)
                old = block.value
                block.digits = block.digits * 2 + coder.bit(min(context, MARK - 1), size & 1)
                block.plane, block.first = plane, False
                yield band, block, old


def _ask(
    coder: Coder, band: CoefficientBand, level: int, plane: int
) -> Iterator[tuple[CoefficientBand, Coefficient, float]]:
    """Asks all blocks of a level that were small so far."""
    asked, band.waiting[level] = band.waiting[level], []
    small: list[int] = []
    for place in asked:
        if _is_large(coder, band, level, place, plane, fresh=0):
            yield from _opened(coder, band, level, place, plane)
        else:
            small.append(place)
    band.waiting[level] = small + band.waiting[level]


def _is_large(coder: Coder, band: CoefficientBand, level: int, place: int, plane: int, fresh: int) -> bool:
    answer = int(band.sizes[level][place] >> plane > 0) if band.sizes else 0
    if not coder.bit(band.context(level, place) + fresh, answer):
        return False
    band.large[level][place] = 1
    return True


def _opened(
    coder: Coder, band: CoefficientBand, level: int, place: int, plane: int
) -> Iterator[tuple[CoefficientBand, Coefficient, float]]:
    """What is in a block that has become large: the sign of a coefficient, or the parts of a larger block."""
    if level == 0:
        negative = coder.even(band.signs[place] if band.sizes else 0)
        block = Coefficient(place, 1, plane, negative)
        band.blocks.append(block)
        yield band, block, 0.0
        return
    parts = [*band.parts(level, place)]
    none_yet = True
    for number, part in enumerate(parts):
        if none_yet and number == len(parts) - 1:
            band.large[level - 1][part] = 1  # one of them is large, and no other was
        elif not _is_large(coder, band, level - 1, part, plane, fresh=1):
            band.waiting[level - 1].append(part)
            continue
        none_yet = False
        yield from _opened(coder, band, level - 1, part, plane)
