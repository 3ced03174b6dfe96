"""Frames of a rollout: states stay on the device; what is looked at comes back, some frames at a time, while the next
ones are under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.core.rollouts.record import Record
from dashi.flow.grid import Floats
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Step, Waitable
from dashi.types import Shape

MOST_DISPATCHES: Final = 4096
"""Of one recording."""
MOST_FRAMES: Final = 64
MOST_BYTES: Final = 1 << 26
_SIDES: Final = 2

Bind = Callable[[Array, Array], Sequence[Step]]
"""Binds steps from a first array to a second one."""


@dataclass(frozen=True, eq=False)
class _Recorded:
    program: Program
    record: Record


def film(
    device: Device, state: tuple[Array, Array], step: Bind, look: Bind, shape: Shape, frames: int, steps: int
) -> Floats:
    """Looks (frames, *shape) after every `steps` steps, from the state in the first of two arrays on. The arrays are
    used in turn; `look` binds what makes an array of `shape` of a state."""
    kind = state[0].dtype.numpy
    made = np.empty((frames, *shape), kind)
    singles = [[*step(state[i], state[1 - i])] for i in (0, 1)]
    reel = _reel(frames, steps * max(1, len(singles[0])), int(np.prod(shape)) * kind.itemsize)
    recorded: dict[tuple[int, int, int], _Recorded] = {}
    pending: deque[tuple[int, int, _Recorded, Waitable]] = deque()
    at = first = side = 0

    def take() -> None:
        begin, many, one, ticket = pending.popleft()
        ticket.wait()
        for j, values in enumerate(one.record.values(one.program.fetched(one.record.array))[:many]):
            made[begin + j] = values

    try:
        while first < frames:
            many = min(reel, frames - first)
            key = (at, side, many)
            if key not in recorded:
                recorded[key] = _record(device, state, singles, look, shape, at, many, steps)
            pending.append((first, many, recorded[key], recorded[key].program.submit()))
            at, side, first = (at + many * steps) % 2, (side + 1) % _SIDES, first + many
            if len(pending) == _SIDES:
                take()
        while pending:
            take()
    finally:
        for one in recorded.values():
            one.program.close()
    return made


def _reel(frames: int, dispatches: int, size: int) -> int:
    """Frames of a recording."""
    return max(1, min(frames, MOST_FRAMES, MOST_DISPATCHES // dispatches, MOST_BYTES // max(1, size)))


def _record(
    device: Device, state: tuple[Array, Array], singles: Sequence[Sequence[Step]], look: Bind, shape: Shape,
    start: int, frames: int, steps: int,
) -> _Recorded:  # fmt: skip
    record = Record(device, [(shape, state[0].dtype.numpy)] * frames)
    made: list[Step] = []
    at = start
    for slot in record.parts:
        for _ in range(steps):
            made += singles[at]
            at = 1 - at
        made += look(state[at], slot)
    return _Recorded(device.program(made, label="film", fetch=[record.array]), record)


def copied(device: Device) -> Bind:
    """Looks at all of a state: canonical values times 1 are themselves."""

    def bind(source: Array, target: Array) -> Sequence[Step]:
        return [device.bind("scale", source, out=target, a=1.0)]

    return bind


def pair(device: Device, start: Any) -> tuple[Array, Array]:
    """Two arrays for a film, the first with its start."""
    return device.array(start), device.empty(np.shape(start), np.asarray(start).dtype)
