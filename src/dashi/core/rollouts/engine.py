"""The recorded blocks of a rollout: states that go to and fro between two arrays, observers beside them.

Nothing is allocated and nothing is read back while a block runs. What its observers leave behind comes back with the
block; meanwhile the next one runs. The states that a block starts from are kept until it is known to be good.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.core.observations.observation import Hash, Observation
from dashi.core.operators.operator import Operator, Way
from dashi.core.rollouts.fingerprint import Used
from dashi.core.rollouts.record import METRICS, Record, digest_text, flat, observation
from dashi.core.rollouts.segments import Block, Segment
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Step, Waitable
from dashi.types import Array as HostArray
from dashi.types import Shape

SIDES: Final = 2
"""Blocks under way at the same time."""
_REMEMBERED: Final = 24


@dataclass(frozen=True)
class Harvest:
    """What came back with a block. `failed`: a poll of a tagged kernel ran out, and nothing of it means anything."""

    hashes: tuple[Hash, ...]
    observations: tuple[Observation, ...]
    rows: tuple[tuple[int, HostArray], ...]
    failed: bool
    suspect: bool = False
    """The sum of the last states is not finite: some of them are not, or they are close to the largest there is."""


@dataclass(frozen=True, eq=False)
class Running:
    """A block that was submitted: from which of the two arrays, with which record."""

    block: Block
    start: int
    side: int
    recorded: Recorded
    ticket: Waitable
    finite: bool = True
    """Whether the last states are, where the host can look at once."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A block's program, its record, and the array that it ends in."""

    program: Program
    record: Record
    way: Way
    end: int


class Engine:
    """States on a device, an operator, and the programs that advance and observe them."""

    def __init__(self, device: Device, operator: Operator, z0: HostArray, edges: HostArray | None) -> None:
        self.device = device
        self.operator = operator
        self.constants = operator.load(device)
        self.state = (device.array(z0), device.empty(z0.shape, z0.dtype))
        self.at = 0
        """Which of the two arrays holds the states, once all blocks are done."""
        self.dispatches = 0
        self.used: dict[tuple[str, str, str | None], Used] = {}
        """What was recorded: one call of each kernel, element type and tuning."""
        self._saved = tuple(device.empty(z0.shape, z0.dtype) for _ in range(SIDES))
        self._no_flag = device.empty(4, np.uint32)
        self._singles = [operator.step(device, self.constants, self.state[i], self.state[1 - i]) for i in (0, 1)]
        # The state of E-space is band energies already: they are added up over nodes and states.
        self._edges = None if edges is None else device.array(edges.astype(np.uint32))
        self._ones = device.array(np.ones(z0.size // max(1, z0.shape[-1]), z0.dtype))
        self._row: Shape = (z0.shape[-1],) if edges is None else (z0.shape[0], len(edges) - 1)
        self._on_host = device.info.type == "reference"
        self._side = 0
        self._programs: OrderedDict[tuple[Any, ...], Recorded] = OrderedDict()

    def submit(self, block: Block, way: Way) -> Running:
        """Starts a block where the one before it ends."""
        side, start = self._side, self.at
        recorded = self._recorded(block.segments, way, start, side)
        ticket = recorded.program.submit()
        self.dispatches += recorded.program.dispatches
        self._side, self.at = (side + 1) % SIDES, recorded.end
        # NumPy is done already, and looks faster than the reference of a kernel adds up.
        looks = self._on_host and block.segments[-1].check
        finite = bool(np.isfinite(self.states()).all()) if looks else True
        return Running(block, start, side, recorded, ticket, finite)

    def harvest(self, running: Running) -> Harvest:
        """Waits for a block and takes what it left."""
        running.ticket.wait()
        recorded = running.recorded
        if self.device.info.type == "null":
            return Harvest((), (), (), failed=False)
        values = iter(recorded.record.values(recorded.program.fetched(recorded.record.array)))
        hashes: list[Hash] = []
        seen: list[Observation] = []
        rows: list[tuple[int, HostArray]] = []
        failed, suspect = False, not running.finite
        for at, segment in running.block.ends():
            if recorded.way == "tagged" and _alone(segment):
                failed |= bool(next(values)[0])
            if segment.observe:
                seen.append(observation(at, next(values), next(values)))
            if segment.hash:
                hashes.append(Hash(at, digest_text(next(values))))
            if segment.sheet:
                rows.append((at, next(values)))
                if self._edges is not None:
                    next(values)  # norms and entropy, which the sheet has no use for
            if segment.check and not self._on_host:
                suspect = not np.isfinite(next(values)).all()
        return Harvest(tuple(hashes), tuple(seen), tuple(rows), failed, suspect)

    def restore(self, running: Running) -> None:
        """Puts the states back that a block started from. Everything submitted after it must have been waited for."""
        self.device.copy(self._saved[running.side], self.state[running.start]).wait()
        self.at = running.start

    def states(self) -> HostArray:
        """The states, read back."""
        return self.state[self.at].numpy()

    def close(self) -> None:
        for recorded in self._programs.values():
            recorded.program.close()
        self._programs.clear()

    def _recorded(self, segments: tuple[Segment, ...], way: Way, start: int, side: int) -> Recorded:
        key = (segments, way, start, side)
        if key not in self._programs:
            while len(self._programs) >= _REMEMBERED:
                self._programs.popitem(last=False)[1].program.close()
            self._programs[key] = self._record(segments, way, start, side)
        self._programs.move_to_end(key)
        return self._programs[key]

    def _record(self, segments: tuple[Segment, ...], way: Way, start: int, side: int) -> Recorded:
        record = Record(self.device, [slot for segment in segments for slot in self._slots(segment, way)])
        # Multiplying canonical values by 1 copies them.
        steps: list[Step] = [self.device.bind("scale", self.state[start], out=self._saved[side], a=1.0)]
        slots, at = iter(record.parts), start
        late: list[Step] = []
        for segment in segments:
            count = _alone(segment)
            if count and way != "stepwise":
                flag = next(slots) if way == "tagged" else self._no_flag
                source, target = self.state[at], self.state[1 - at]
                steps.append(self.operator.many(self.device, self.constants, source, target, flag, count, way))
                at, count = 1 - at, 0
            # Looks at the states that these steps start from: recorded here they run beside them, not before them.
            steps += late
            for _ in range(count + int(segment.observe)):
                steps += self._singles[at]
                at = 1 - at
            steps += self._compared(segment, at, slots)
            late = [*self._looks(segment, at, slots)]
        steps += late
        self.used |= {(s.kernel.name, s.call.dtype.name, s.tuning): (s.kernel, s.call) for s in steps}
        if segments[-1].check and not self._on_host:
            # It is not among those used: no state and no observation comes of it.
            steps.append(self.device.bind("reduce_sum", self.state[at], out=next(slots)))
        program = self.device.program(steps, label=f"rollout {way}", fetch=[record.array])
        return Recorded(program, record, way, at)

    def _slots(self, segment: Segment, way: Way) -> Iterator[tuple[Shape, Any]]:
        """What a segment leaves behind, in the order in which it is bound and read."""
        if way == "tagged" and _alone(segment):
            yield (4,), np.uint32
        if segment.observe:
            yield (METRICS,), self.operator.dtype
            yield (4,), np.uint32
        if segment.hash:
            yield (4,), np.uint32
        if segment.sheet:
            yield self._row, self.operator.dtype
            if self._edges is not None:
                yield (self._row[0], 4), self.operator.dtype
        if segment.check and not self._on_host:
            yield (1,), self.operator.dtype

    def _compared(self, segment: Segment, at: int, slots: Iterator[Array]) -> Iterator[Step]:
        """What a segment that ends in one of the two arrays did in its last step: the other holds the states before."""
        if segment.observe:
            before, after = (flat(self.device, self.state[i]) for i in (1 - at, at))
            yield self.device.bind("state_metrics", before, after, out=(next(slots), next(slots)))

    def _looks(self, segment: Segment, at: int, slots: Iterator[Array]) -> Iterator[Step]:
        """The other observers of a segment: they read the states that it ends with, and nothing else."""
        device, after = self.device, self.state[at]
        if segment.hash:
            yield device.bind("hash_state", after, out=next(slots))
        if segment.sheet and self._edges is not None:
            out, bands = (next(slots), next(slots)), self._row[-1]
            yield device.bind("qfeat", flat(device, after), self._edges, out=out, bands=bands)
        elif segment.sheet:
            energies = device.part(after, 0, (self._ones.size, after.shape[-1]))
            yield device.bind("gemv", self._ones, energies, out=next(slots))


def _alone(segment: Segment) -> int:
    """Steps of a segment that nobody looks at: an observation compares the states before and after the last one."""
    return segment.steps - int(segment.observe)
