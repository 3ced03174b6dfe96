"""How the steps of a Vulkan program are cut: at host steps, and where a submission would grow too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from dashi.runtime._binding import Step
from dashi.runtime._hazards import Barrier, Batch, place_barriers
from dashi.runtime._steps import AnyStep, HostStep
from dashi.runtime._transfers import HostCall
from dashi.runtime._vk_record import RawDispatch
from dashi.runtime.info import Barriers

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import Lowered, VulkanDevice


@dataclass(frozen=True, eq=False)
class RawBatch:
    """One submission: commands of steps, between copies of what they take from the host and of what they leave on it,
    and what stands before each. `transfers`: some of the steps are no dispatches."""

    before: Sequence[RawDispatch]
    steps: Sequence[RawDispatch]
    after: Sequence[RawDispatch]
    barriers: bytes
    transfers: bool

    @property
    def of_steps(self) -> bytes:
        """What stands before each of the steps' commands."""
        return self.barriers[len(self.before) : len(self.before) + len(self.steps)]

    @property
    def step_barriers(self) -> int:
        """Barriers that stand before commands of steps."""
        return len(self.steps) - self.of_steps.count(0)


@dataclass(frozen=True, eq=False)
class Segment:
    """Batches that are submitted one after another, and the function of the host that is called when they are done."""

    batches: Sequence[RawBatch]
    call: HostCall | None


def segments(
    device: VulkanDevice,
    steps: Sequence[AnyStep],
    before: Sequence[RawDispatch],
    after: Sequence[RawDispatch],
    mode: Barriers,
) -> Iterator[Segment]:
    """The parts of a program, between copies that bring values from the host and leave some there: those of one slot,
    which stand for those of every slot."""
    start = 0
    # Programs of thousands of kernels are looked at as a whole.
    for i, step in enumerate(steps) if HostStep in set(map(type, steps)) else ():
        if isinstance(step, HostStep):
            call = HostCall(device, step)
            yield Segment(list(_batches(device, before, steps[start:i], call.fetches, mode)), call)
            before, start = call.feeds, i + 1
    yield Segment(list(_batches(device, before, steps[start:], after, mode)), None)


def _batches(
    device: VulkanDevice,
    before: Sequence[RawDispatch],
    steps: Sequence[AnyStep],
    after: Sequence[RawDispatch],
    mode: Barriers,
) -> Iterator[RawBatch]:
    cut = list(_cut(device, [step.lowered for step in steps]))
    transfers = set(map(type, steps)) != {Step}
    for commands in cut:
        first, last = before if commands is cut[0] else (), after if commands is cut[-1] else ()
        barriers = _placed(first, commands, last, mode)
        yield RawBatch(first, commands, last, barriers, transfers)


def _placed(
    before: Sequence[RawDispatch], steps: Sequence[RawDispatch], after: Sequence[RawDispatch], mode: Barriers
) -> bytes:
    if mode == "auto":
        return place_barriers([*before, *steps, *after])
    # Whatever is asked for between steps, values go and come back whole.
    placed = bytearray(bytes(len(before)) + place_barriers(steps, mode) + bytes(len(after)))
    for place in ({len(before)} if before else set[int]()) | ({len(before) + len(steps)} if after else set[int]()):
        if place < len(placed):
            placed[place] = Barrier.FLUSH
    return bytes(placed)


def _cut(device: VulkanDevice, ready: Sequence[Lowered]) -> Iterator[list[RawDispatch]]:
    """The commands of steps, cut where a submission would grow too long; at least one piece."""
    budget = device.work_per_submission
    if sum([lowered.work for lowered in ready]) <= budget:
        yield _commands_of(ready)
        return
    batch: list[RawDispatch] = []
    total = 0
    for lowered in ready:
        if total and total + lowered.work > budget:
            yield batch
            batch, total = [], 0
        batch += lowered.dispatches
        total += lowered.work
    yield batch


def commands_of(steps: Sequence[AnyStep]) -> list[RawDispatch]:
    """The commands of steps, in order."""
    return _commands_of([step.lowered for step in steps])


def _commands_of(ready: Sequence[Lowered]) -> list[RawDispatch]:
    return list(chain.from_iterable([lowered.dispatches for lowered in ready]))


def named(parts: Sequence[Segment], steps: Sequence[AnyStep]) -> list[Batch]:
    """The batches of all segments, with names of what was recorded."""
    names = iter([step.name for step in steps if not isinstance(step, HostStep) for _ in step.lowered.dispatches])
    batches: list[Batch] = []
    before = "feed"
    for segment in parts:
        after = "fetch" if segment.call is None else f"{segment.call.step.name} (inputs)"
        for batch in segment.batches:
            of_steps = [next(names) for _ in batch.steps]
            labels = [*[before] * len(batch.before), *of_steps, *[after] * len(batch.after)]
            batches.append(Batch([*batch.before, *batch.steps, *batch.after], batch.barriers, labels))
        before = "" if segment.call is None else f"{segment.call.step.name} (outputs)"
    return batches
