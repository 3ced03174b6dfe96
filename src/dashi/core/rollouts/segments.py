"""A rollout cut into segments: so many steps, and what is looked at after them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from dashi.errors import InputError

MOST_SEGMENTS: Final = 16
"""In one block: each is bound to arrays of its own, which takes the host a while."""


@dataclass(frozen=True)
class Strides:
    """After how many steps each observer looks; 0 is never. Hashes and observations are made of the last step too."""

    hash: int = 0
    observe: int = 0
    sheet: int = 0
    keep: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
                raise InputError(f"the stride {field.name!r} is {value!r}.", "use 1 or more, or 0 for never.")


@dataclass(frozen=True)
class Segment:
    """Steps, and which observers look after the last of them."""

    steps: int
    hash: bool = False
    observe: bool = False
    sheet: bool = False
    keep: bool = False
    check: bool = False
    """Whether all values are finite: of the last segment of a block, where no observer tells it."""


@dataclass(frozen=True)
class Block:
    """Segments that are recorded and submitted together; the first starts after `first` steps."""

    first: int
    segments: tuple[Segment, ...]

    @property
    def steps(self) -> int:
        return sum(segment.steps for segment in self.segments)

    @property
    def last(self) -> int:
        return self.first + self.steps

    def ends(self) -> Iterator[tuple[int, Segment]]:
        """Each segment with the step that it ends at."""
        at = self.first
        for segment in self.segments:
            at += segment.steps
            yield at, segment


def _due(stride: int, at: int, end: int, *, last: bool) -> bool:
    return stride > 0 and (at % stride == 0 or (last and at == end))


def next_segment(at: int, end: int, strides: Strides, most: int) -> Segment:
    """The segment that starts after `at` steps: up to the next look, and at most so many steps."""
    looks = [stride - at % stride for stride in (strides.hash, strides.observe, strides.sheet, strides.keep) if stride]
    steps = min(end - at, most, *looks)
    after = at + steps
    return Segment(
        steps,
        _due(strides.hash, after, end, last=True),
        _due(strides.observe, after, end, last=True),
        _due(strides.sheet, after, end, last=False),
        _due(strides.keep, after, end, last=False),
    )


def next_block(at: int, end: int, strides: Strides, most: int) -> Block:
    """The block that starts after `at` steps, of at most so many. It ends where the states are to be kept."""
    segments: list[Segment] = []
    now = at
    while now < end and len(segments) < MOST_SEGMENTS:
        room = most - (now - at)
        segment = next_segment(now, end, strides, most)
        if segments and segment.steps > room:
            break
        segments.append(segment)
        now += segment.steps
        if segment.keep:
            break
    return Block(at, tuple(segments))
