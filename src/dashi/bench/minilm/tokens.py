"""Text to tokens, as BERT's uncased models do: words in lower case, without accents, in the longest known pieces."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.types import HostArray

_LONGEST_WORD: Final = 100
_IDEOGRAPHS: Final = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))


@dataclass(frozen=True)
class Tokeniser:
    """WordPiece over a vocabulary: pieces inside a word begin with ##."""

    vocabulary: Sequence[str]
    numbers: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", {word: number for number, word in enumerate(self.vocabulary)})
        if missing := [word for word in ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if word not in self.numbers]:
            raise InputError(f"the vocabulary lacks {missing}.", "use vocab.txt of the model.")

    def encode(self, text: str, most: int) -> list[int]:
        """Token numbers between [CLS] and [SEP], at most so many in all; what is longer is cut off."""
        pieces = [number for word in split_words(text) for number in self._pieces(word)]
        return [self.numbers["[CLS]"], *pieces[: most - 2], self.numbers["[SEP]"]]

    def batch(self, texts: Sequence[str], tokens: int) -> tuple[HostArray, HostArray]:
        """Numbers (uint32) and which of them count (bool), each of shape (texts, tokens)."""
        if tokens < 2:
            raise InputError(f"{tokens} tokens hold no text.", "use 2 or more.")
        ids = np.full((len(texts), tokens), self.numbers["[PAD]"], np.uint32)
        counts = np.zeros(ids.shape, np.bool_)
        for row, text in enumerate(texts):
            encoded = self.encode(text, tokens)
            ids[row, : len(encoded)] = encoded
            counts[row, : len(encoded)] = True
        return ids, counts

    def _pieces(self, word: str) -> list[int]:
        numbers: list[int] = []
        start = 0
        while start < len(word) and len(word) <= _LONGEST_WORD:
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self.numbers), None)
            if end is None:
                break
            numbers.append(self.numbers[prefix + word[start:end]])
            start = end
        return numbers if start == len(word) else [self.numbers["[UNK]"]]


def split_words(text: str) -> list[str]:
    """Words and single marks, in lower case, without accents."""
    plain = unicodedata.normalize("NFD", "".join(_cleaned(text)).lower())
    words: list[str] = []
    for part in "".join(c for c in plain if unicodedata.category(c) != "Mn").split():
        start = 0
        for place, letter in enumerate(part):
            if _is_mark(letter):
                words += [part[start:place], letter]
                start = place + 1
        words.append(part[start:])
    return [word for word in words if word]


def _cleaned(text: str) -> Iterator[str]:
    for letter in text:
        if letter.isspace():
            yield " "
        elif ord(letter) in (0, 0xFFFD) or unicodedata.category(letter) in ("Cc", "Cf"):
            continue
        else:
            alone = any(first <= ord(letter) <= last for first, last in _IDEOGRAPHS)
            yield f" {letter} " if alone else letter


def _is_mark(letter: str) -> bool:
    ascii_mark = letter.isascii() and not letter.isalnum() and letter.isprintable() and letter != " "
    return ascii_mark or unicodedata.category(letter).startswith("P")
