"""Timestamps that a recording writes: the beginning and end of every run and, where asked for, of every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from dashi.runtime._clock import RunTimes, StepSpan, nanoseconds
from dashi.runtime._segments import RawBatch, Segment
from dashi.runtime._steps import AnyStep, HostStep
from dashi.runtime._vk_record import RawCommands, RawDispatch

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import VulkanDevice

Part = tuple[str, int]
"""Commands of one label that follow each other in a batch: the label, and how many."""


class Stamps:
    """The timestamps of one slot of a program. Each is written when all that was recorded before it has ended."""

    def __init__(self, device: VulkanDevice, parts: Sequence[Sequence[Part]] | None) -> None:
        self._parts = parts
        """The parts of each batch, where steps are timed."""
        self._raw = device.raw
        self._ns_per_tick = device.info.timestamp_ns
        self._count = 2 if parts is None else sum(1 + len(batch) for batch in parts)
        self._pool = device.raw.create_query_pool(self._count)
        self._next = 0
        device.graveyard.watch(self, partial(device.raw.destroy, "QueryPool", self._pool))

    def record(
        self, commands: RawCommands, batch: int, recorded: Sequence[RawDispatch], barriers: bytes, *, transfers: bool
    ) -> None:
        """Records a batch of commands, by its number, with its timestamps."""
        if not batch:
            commands.reset_queries(self._pool, self._count)
        if self._parts is None:
            if not batch:
                commands.timestamp(self._pool, 0)
            commands.record(recorded, barriers, transfers=transfers)
            return
        self._stamp(commands)
        start = 0
        for _, count in self._parts[batch]:
            end = start + count
            commands.record(recorded[start:end], barriers[start:end], transfers=transfers)
            self._stamp(commands)
            start = end

    def finish(self, commands: RawCommands) -> None:
        """Ends the last batch."""
        if self._parts is None:
            commands.timestamp(self._pool, 1)

    def _stamp(self, commands: RawCommands) -> None:
        commands.timestamp(self._pool, self._next)
        self._next += 1

    def read(self) -> RunTimes:
        """The times of the latest run, which is done."""
        ticks = self._raw.query_results(self._pool, self._count)
        moments = [nanoseconds(tick, self._ns_per_tick) for tick in ticks]
        return RunTimes(moments[0], moments[-1], None if self._parts is None else tuple(self._steps(moments)))

    def _steps(self, moments: Sequence[int]) -> Iterator[StepSpan]:
        assert self._parts is not None
        at = 0
        for batch in self._parts:
            edges = pairwise(moments[at : at + len(batch) + 1])
            yield from (StepSpan(label, *edge) for (label, _), edge in zip(batch, edges, strict=True))
            at += len(batch) + 1


def parts_of(segments: Sequence[Segment], steps: Sequence[AnyStep]) -> list[list[Part]]:
    """The parts of every batch of a program: what it is fed, each of its steps, what it fetches."""
    left = iter([(step.name, len(step.lowered.dispatches)) for step in steps if not isinstance(step, HostStep)])
    listed: list[list[Part]] = []
    before = "feed"
    for segment in segments:
        after = "fetch" if segment.call is None else f"{segment.call.step.name} (inputs)"
        listed += [_parts(batch, before, left, after) for batch in segment.batches]
        before = "" if segment.call is None else f"{segment.call.step.name} (outputs)"
    return listed


def _parts(batch: RawBatch, before: str, steps: Iterator[Part], after: str) -> list[Part]:
    parts: list[Part] = [(before, len(batch.before))] if batch.before else []
    missing = len(batch.steps)
    while missing:
        label, count = next(steps)
        missing -= count
        parts.append((label, count))
    if batch.after:
        parts.append((after, len(batch.after)))
    return parts
