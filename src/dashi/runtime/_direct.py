"""Arrays of a program that kernels read and write in the slot of a run, instead of by copies before and after it.

A copy, with the barrier beside it, costs a run more than the values that it moves, while those are few. A program that
is `direct` has its kernels bound to the slot's own memory, wherever nothing but kernels uses an array in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dashi.errors import OutOfMemoryError
from dashi.runtime._binding import Step
from dashi.runtime._buffer import Buffer
from dashi.runtime._memory import suits
from dashi.runtime._program import Recording
from dashi.runtime._steps import AnyStep, HostStep
from dashi.runtime._transfers import copy_command
from dashi.runtime._vk_record import RawDispatch
from dashi.runtime.array import Array

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import Lowered, VulkanDevice

DIRECT_BYTES: Final = 1 << 20
"""The largest array that kernels use in a slot. The device's memory that the host can fill may be a small part of it,
and the host's, which results are written to, is the slower the more kernels write there."""


@dataclass(frozen=True)
class DirectUse:
    """How each array that a program is fed with, or that it fetches, goes: empty where kernels use the slot itself,
    else why it is copied."""

    feeds: tuple[str, ...]
    fetches: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether kernels use a slot itself."""
        return "" in self.feeds or "" in self.fetches


@dataclass(frozen=True)
class SlotMemory:
    """The memory of one slot, and the program's steps bound to it; `feeds` and `fetches` are the copies between it and
    arrays, before and after the steps."""

    uploads: Sequence[Buffer]
    landing: Sequence[Buffer]
    steps: Sequence[AnyStep]
    feeds: Sequence[RawDispatch]
    fetches: Sequence[RawDispatch]


def direct_use(device: VulkanDevice, steps: Sequence[AnyStep], options: Recording) -> DirectUse:
    """Which arrays the kernels of a program may use in the slot itself."""
    arrays = (*options.feed, *options.fetch)
    if not arrays:
        return DirectUse((), ())
    kinds = set(map(type, steps))
    reason = ""
    if not options.direct:
        reason = "the program is not direct"
    elif options.barriers != "auto":
        reason = "its barriers are not placed automatically"
    elif HostStep in kinds:
        reason = "a step of the host cuts the program"
    elif sum([step.lowered.work for step in steps]) > device.work_per_submission:
        reason = "the program is submitted in several parts"
    if reason:
        return DirectUse((reason,) * len(options.feed), (reason,) * len(options.fetch))
    uses = _Uses(steps, device.part_alignment)
    reasons = [_general_reason(array, [a for a in arrays if a is not array]) for array in arrays]
    types, fed = device.info.memory_types, len(options.feed)
    mapped, cached = suits(types, "feed"), suits(types, "readback")
    for i, array in enumerate(arrays):
        if not reasons[i] and i < fed:
            reasons[i] = "the device has no memory of its own that the host can fill" if not mapped else ""
            reasons[i] = reasons[i] or uses.reason_against_feed(array.storage)
        elif not reasons[i]:
            reasons[i] = "the device writes no memory that the host caches" if not cached else ""
            reasons[i] = reasons[i] or uses.reason_against_fetch(array.storage)
    return DirectUse(tuple(reasons[:fed]), tuple(reasons[fed:]))


def _general_reason(array: Array, others: Sequence[Array]) -> str:
    if not array.nbytes:
        return "it is empty"
    if array.nbytes > DIRECT_BYTES:
        return f"it has more than {DIRECT_BYTES >> 20} MiB"
    if any(array.overlaps(other) for other in others):
        return "others that go to or from the host share its memory"
    return ""


class _Uses:
    """Who uses memory in a program: each different step once, with how often it is there."""

    def __init__(self, steps: Sequence[AnyStep], alignment: int) -> None:
        self._alignment = alignment
        self._counts: dict[int, int] = {}
        for step in steps:
            self._counts[id(step)] = self._counts.get(id(step), 0) + 1
        self._steps = list({id(step): step for step in steps}.values())

    def reason_against_feed(self, buffer: Buffer) -> str:
        """Why kernels may not read the slot itself: they must do nothing else with any byte of the array."""
        used = False
        for step in self._steps:
            for bound, _, writes in _touching(step, buffer):
                if bound is None or writes:
                    return f"{step.name} {'writes' if writes else 'copies'} it"
                within = buffer.offset <= bound.offset and bound.offset + bound.nbytes <= buffer.offset + buffer.nbytes
                if not within or (bound.offset - buffer.offset) % self._alignment:
                    return f"{step.name} reads more than it"
                used = True
        return "" if used else "no kernel reads it"

    def reason_against_fetch(self, buffer: Buffer) -> str:
        """Why a kernel may not write the slot itself: it must write all of the array, once, and nobody else may touch
        any byte of it."""
        writer = ""
        for step in self._steps:
            for bound, reads, writes in _touching(step, buffer):
                if bound is None:
                    return f"{step.name} {'writes' if writes else 'copies'} it"
                if reads:
                    return f"{step.name} reads it"
                if writer or self._counts[id(step)] > 1:
                    return f"{writer or step.name} and {step.name} write it"
                if (bound.offset, bound.nbytes) != (buffer.offset, buffer.nbytes):
                    return f"{step.name} writes a part of it, or more"
                writer = step.name
        return "" if writer else "no kernel writes it"


def _touching(step: AnyStep, buffer: Buffer) -> list[tuple[Buffer | None, bool, bool]]:
    """What a step binds that shares bytes with a buffer, and whether it reads and writes that; None for a command
    that is no dispatch of a kernel."""
    key, start, end = buffer.bytes
    touching: list[tuple[Buffer | None, bool, bool]] = []
    lowered: Lowered = step.lowered
    if not isinstance(step, Step):
        for command in lowered.dispatches:
            reads, writes = (
                any(k == key and first < end and start < last for k, first, last in ranges)
                for ranges in (command.reads, command.writes)
            )
            if reads or writes:
                touching.append((None, reads, writes))
        return touching
    for ready in lowered.prepared:
        for i, name in enumerate(ready.buffers):
            bound = lowered.storage[name]
            bound_key, first, last = bound.bytes
            if bound_key == key and first < end and start < last:
                touching.append((bound, i in ready.reads, i in ready.writes))
    return touching


def slot_memory(
    device: VulkanDevice, steps: Sequence[AnyStep], use: DirectUse, targets: Sequence[Buffer], sources: Sequence[Buffer]
) -> SlotMemory:
    """Memory for one slot of a program that is fed to `targets` and fetched from `sources`, and what uses it."""
    uploads = [
        device.upload_memory(target.nbytes) if why else _feed_memory(device, target.nbytes)
        for target, why in zip(targets, use.feeds, strict=True)
    ]
    landing = [device.landing_memory(source.nbytes) for source in sources]
    into, back = list(zip(targets, uploads, strict=True)), list(zip(sources, landing, strict=True))
    pairs = [*zip(into, use.feeds, strict=True), *zip(back, use.fetches, strict=True)]
    return SlotMemory(
        uploads,
        landing,
        _rebound(device, steps, [pair for pair, why in pairs if not why]) if use.any else steps,
        [copy_command(upload, target) for (target, upload), why in zip(into, use.feeds, strict=True) if why],
        [copy_command(*pair) for pair, why in zip(back, use.fetches, strict=True) if why],
    )


def _feed_memory(device: VulkanDevice, nbytes: int) -> Buffer:
    try:
        return device.feed_memory(nbytes)
    except OutOfMemoryError:
        return device.upload_memory(nbytes)  # the part of the device's memory that is mapped may be small, and full


def _rebound(
    device: VulkanDevice, steps: Sequence[AnyStep], pairs: Sequence[tuple[Buffer, Buffer]]
) -> Sequence[AnyStep]:
    """The steps, with other memory in the place of some."""
    known: dict[int, AnyStep] = {}
    for step in steps:
        if id(step) not in known:
            known[id(step)] = _rebound_step(device, step, pairs) if isinstance(step, Step) else step
    return [known[id(step)] for step in steps]


def _rebound_step(device: VulkanDevice, step: Step, pairs: Sequence[tuple[Buffer, Buffer]]) -> Step:
    lowered: Lowered = step.lowered
    changed: dict[str, Buffer] = {}
    for name, bound in lowered.storage.items():
        key, start, end = bound.bytes
        for old, new in pairs:
            old_key, first, last = old.bytes
            if key == old_key and first < end and start < last:
                inside = bound.nbytes == old.nbytes
                changed[name] = new if inside else new.part(bound.offset - old.offset, bound.nbytes)
    if not changed:
        return step
    storage: Mapping[str, Buffer] = {**lowered.storage, **changed}
    return replace(step, lowered=device.lower_prepared(lowered.prepared, storage))
