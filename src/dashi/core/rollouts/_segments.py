"""A rollout cut into segments: so many steps, and who looks at the states after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashi.core.rollouts.observer import Bound, Observer

MOST_SEGMENTS: Final = 16
"""In one block: each is bound to arrays of its own, which takes the host a while."""
MOST_BYTES: Final = 1 << 25
"""That come back with one block, unless a single step leaves more."""


@dataclass(frozen=True)
class StepSegment:
    """Steps, and which observers look after the last of them, by their numbers."""

    steps: int
    due: tuple[int, ...] = ()
    check: bool = False
    """Whether all values are finite after it."""


@dataclass(frozen=True)
class StepBlock:
    """Segments that are recorded and submitted together; the first starts after `first` steps."""

    first: int
    segments: tuple[StepSegment, ...]

    @property
    def steps(self) -> int:
        return sum(segment.steps for segment in self.segments)

    @property
    def last(self) -> int:
        return self.first + self.steps

    def ends(self) -> Iterator[tuple[int, StepSegment]]:
        """Each segment with the step that it ends at."""
        at = self.first
        for segment in self.segments:
            at += segment.steps
            yield at, segment


class SegmentSchedule:
    """Cuts a run of `end` steps where its observers look."""

    def __init__(
        self, observers: Sequence[Observer[Any]], bound: Sequence[Bound], end: int, *,
        most_segments: int = MOST_SEGMENTS, piece: int = 0,
    ) -> None:  # fmt: skip
        self._observers, self._end, self._most_segments = observers, end, most_segments
        self._sizes = [one.nbytes for one in bound]
        self._strides = sorted({one.every for one in observers if one.every} | ({piece} if piece else set()))

    def block(self, at: int, most: int) -> StepBlock:
        """The block that starts after `at` steps, of at most so many."""
        segments: list[StepSegment] = []
        now = size = 0
        while at + now < self._end and len(segments) < self._most_segments:
            steps = self._steps(at + now, most)
            if segments and now + steps > most:
                break
            segment = self._segment(at + now, steps)
            size += sum(self._sizes[number] for number in segment.due)
            if segments and size > MOST_BYTES:
                break
            segments.append(segment)
            now += steps
        return StepBlock(at, tuple(segments))

    def _steps(self, at: int, most: int) -> int:
        """Up to the next look, and at most so many."""
        return min(self._end - at, most, *(stride - at % stride for stride in self._strides))

    def _segment(self, at: int, steps: int) -> StepSegment:
        due = (number for number, one in enumerate(self._observers) if one.due(at + steps, self._end))
        return StepSegment(steps, tuple(due))
