"""Tables that fit a width: columns break between words, and those that do not fit side by side follow below.

Each block of columns repeats the key columns on its left, as statistics programs print wide tables. A word is broken
only where it is longer than the whole line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

_GAP: Final = 2
_COMFORTABLE: Final = 20
"""A column with more text than this may be as narrow, and breaks between words; one with less is kept whole."""
_NARROWEST: Final = 20
"""The width of lines that is assumed at least."""


@dataclass(frozen=True)
class TextTable:
    """Headings and rows of text; the first `keys` columns name a row."""

    headings: tuple[str, ...]
    keys: int = 1
    rows: list[tuple[Text, ...]] = field(default_factory=list[tuple[Text, ...]])

    def add_row(self, *cells: str | Text) -> None:
        """One cell for each heading; text in brackets is markup, unless it is a Text."""
        if len(cells) != len(self.headings):
            raise ValueError(f"{len(cells)} cells for {len(self.headings)} headings")
        self.rows.append(tuple(cell if isinstance(cell, Text) else Text.from_markup(cell) for cell in cells))


def print_fitted(table: TextTable, console: Console) -> None:
    """Prints a table within the width of a console, without spaces at the ends of lines."""
    for number, (columns, widths) in enumerate(layout(table, console.width)):
        if number:
            console.print()
        console.print(_block(table, columns, widths))


def layout(table: TextTable, width: int) -> list[tuple[list[int], list[int]]]:
    """Blocks of columns that fit: the positions of their columns, and how wide each is."""
    width = max(width, _NARROWEST)
    natural = [max(map(_longest_line, texts), default=0) for texts in _texts(table)]
    narrow = [max(map(_longest_word, texts), default=0) for texts in _texts(table)]
    # Names are not broken, as long as they leave half of the line to what they name.
    for key in range(table.keys):
        narrow[key] = natural[key] if natural[key] <= width // (2 * table.keys) else min(narrow[key], width // 2)
    needed = [max(least, min(whole, _COMFORTABLE)) for least, whole in zip(narrow, natural, strict=True)]
    keys, rest = list(range(table.keys)), list(range(table.keys, len(table.headings)))
    if not rest:
        return [(keys, _shared(keys, natural, narrow, width))]
    blocks: list[list[int]] = []
    for column in rest:
        if blocks and _total([*keys, *blocks[-1], column], needed) <= width:
            blocks[-1].append(column)
        else:
            blocks.append([column])
    return [([*keys, *block], _shared([*keys, *block], natural, narrow, width)) for block in blocks]


def _texts(table: TextTable) -> list[list[str]]:
    return [[heading, *(row[at].plain for row in table.rows)] for at, heading in enumerate(table.headings)]


def _longest_line(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _total(columns: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[column] for column in columns) + _GAP * (len(columns) - 1)


def _shared(columns: Sequence[int], natural: Sequence[int], narrow: Sequence[int], width: int) -> list[int]:
    """The width of each column: its whole text, or less of the widest ones until all fit, and no word is broken that
    need not be."""
    widths = [natural[column] for column in columns]
    least = [narrow[column] for column in columns]
    excess = sum(widths) + _GAP * (len(columns) - 1) - width
    while excess > 0:
        loose = [at for at, given in enumerate(widths) if given > least[at]]
        # The last column is broken where even words do not fit.
        widest = max(loose, key=lambda at: widths[at], default=len(widths) - 1)
        if widths[widest] <= 1:
            break
        widths[widest] -= 1
        excess -= 1
    return widths


def _block(table: TextTable, columns: Sequence[int], widths: Sequence[int]) -> RichTable:
    block = RichTable(box=None, pad_edge=False, header_style="bold", show_header=any(table.headings))
    for column, width in zip(columns, widths, strict=True):
        block.add_column(table.headings[column], overflow="fold", width=width)
    for row in table.rows:
        block.add_row(*(row[column] for column in columns))
    return block
