"""What advances the states of a run, block by block, and brings back what its observers saw.

`Engine` is the protocol; `DeviceEngine` records an operator's kernels on a device. States go to and fro between two
arrays, observers look beside them. Nothing is allocated and nothing is read back while a block runs. What its observers
leave comes back with the block; meanwhile the next one runs. The states that a block starts from are kept until it is
known to be good.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from dashi.core.operators.operator import Strategy
from dashi.core.rollouts._fingerprint import Used
from dashi.core.rollouts._guard import FiniteCheck
from dashi.core.rollouts._record import SlotBuffer
from dashi.core.rollouts._segments import MOST_SEGMENTS, StepBlock, StepSegment
from dashi.core.rollouts.observer import Bound, Context, Observer, Slot, Values
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device, Program, Step, Waitable
from dashi.types import HostArray

SIDES: Final = 2
"""Blocks under way at the same time."""
_REMEMBERED: Final = 24
_REMEMBERED_BYTES: Final = 1 << 29
"""Bytes that the slots of recorded programs may take together."""

_LABELS: Final[Mapping[Strategy, str]] = {
    "stepwise": "steps one by one",
    "workgroup": "many steps in a workgroup",
    "tagged": "many steps over workgroups",
}
"""What traces call the programs of a block."""

Look = tuple[int, int, Values]
"""A step, the number of the observer that looked after it, and what it left."""


@dataclass(frozen=True, eq=False)
class BlockResult:
    """What came back with a block. `failed`: a poll of a tagged kernel ran out, and nothing of it means anything."""

    looks: tuple[Look, ...] = ()
    failed: bool = False
    unchecked: frozenset[int] = frozenset()
    """Steps whose states did not pass the check that they are finite."""
    ended: int | None = None
    """The last step whose states are finite, where the engine itself stopped there."""


class InFlight(Protocol):
    """A block that was submitted."""

    @property
    def block(self) -> StepBlock: ...

    def wait(self) -> None:
        """Until it is done."""
        ...


class Engine(Protocol):
    """States, an operator, and what looks at them."""

    @property
    def most_under_way(self) -> int:
        """Blocks that may be under way at the same time."""
        ...

    @property
    def most_segments(self) -> int:
        """Segments of a block."""
        ...

    @property
    def piece(self) -> int:
        """A run stops after a multiple of so many steps; 0: after any."""
        ...

    @property
    def device(self) -> Device: ...

    @property
    def bound(self) -> Sequence[Bound]: ...

    @property
    def dispatches(self) -> int: ...

    @property
    def used(self) -> Mapping[Any, Used]: ...

    def submit(self, block: StepBlock, strategy: Strategy) -> Any:
        """Starts a block where the one before it ends."""
        ...

    def collect(self, flight: Any) -> BlockResult:
        """Waits for a block and takes what it left."""
        ...

    def look(self, numbers: Sequence[int]) -> Sequence[Values | None]:
        """What these observers see of the states as they are; nothing may be under way."""
        ...

    def restore(self, flight: Any) -> None:
        """Puts the states back that a block started from. Everything submitted after it must have been waited for."""
        ...

    def states(self) -> HostArray:
        """The states, read back."""
        ...

    def states_after(self, step: int) -> HostArray | None:
        """The states after that step, where they are at hand whatever was under way when a second Ctrl-C came."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """A block's program, its record, and the array that it ends in."""

    program: Program
    record: SlotBuffer
    strategy: Strategy
    end: int


@dataclass(frozen=True, eq=False)
class DeviceFlight:
    """A block on a device: from which of the two arrays it started, with which record."""

    block: StepBlock
    start: int
    side: int
    recorded: BlockProgram
    ticket: Waitable
    finite: bool = True
    """Whether the last states are, where the host can look at once."""

    def wait(self) -> None:
        self.ticket.wait()


class DeviceEngine:
    """States on a device, and the programs that advance and observe them."""

    most_under_way, most_segments, piece = SIDES, MOST_SEGMENTS, 0

    def __init__(
        self,
        context: Context,
        states: HostArray,
        observers: Sequence[Observer[Any]],
        check: FiniteCheck,
        *,
        repeats: bool,
    ) -> None:
        self.device = device = context.device
        self.operator = context.operator
        self.constants = context.constants
        self.bound: Sequence[Bound] = [observer.bind(context) for observer in observers]
        self.state = (device.array(states), device.empty(states.shape, states.dtype))
        self.at = 0
        """Which of the two arrays holds the states, once all blocks are done."""
        self.dispatches = 0
        self.used: dict[tuple[str, str, str | None], Used] = {}
        """What was recorded: one call of each kernel, element type and tuning."""
        self._observers, self._check, self._repeats = observers, check, repeats
        self._compares = {number for number, observer in enumerate(observers) if observer.compares}
        self._saved = tuple(device.empty(states.shape, states.dtype) for _ in range(SIDES))
        self._no_flag = device.empty(4, np.uint32)
        self._singles = [self.operator.step(device, self.constants, self.state[i], self.state[1 - i]) for i in (0, 1)]
        self._on_host = device.info.type == "reference"
        self._null = device.info.type == "null"
        self._side = 0
        self._programs: OrderedDict[tuple[Any, ...], BlockProgram] = OrderedDict()
        self._busy: set[int] = set()
        """Programs of blocks that were submitted and not collected, by their identity."""

    def submit(self, block: StepBlock, strategy: Strategy) -> DeviceFlight:
        side, start = self._side, self.at
        recorded = self._recorded(block.segments, strategy, start, side)
        ticket = recorded.program.submit()
        self._busy.add(id(recorded))
        self.dispatches += recorded.program.dispatches
        self._side, self.at = (side + 1) % SIDES, recorded.end
        # NumPy is done already, and looks faster than the reference of a kernel does.
        looks = self._on_host and block.segments[-1].check
        finite = bool(np.isfinite(self.states()).all()) if looks else True
        return DeviceFlight(block, start, side, recorded, ticket, finite)

    def collect(self, flight: DeviceFlight) -> BlockResult:
        flight.ticket.wait()
        recorded = flight.recorded
        self._busy.discard(id(recorded))
        if self._null:
            return BlockResult()
        values = iter(recorded.record.values(recorded.program.fetched(recorded.record.array)))
        looks: list[Look] = []
        unchecked: set[int] = set()
        failed = False
        for at, segment in flight.block.ends():
            if recorded.strategy == "tagged" and self._alone(segment):
                failed |= bool(next(values)[0])
            looks += [(at, number, [next(values) for _ in self.bound[number].slots]) for number in segment.due]
            if self._checks(segment, flight.block.segments) and not self._check.passes(next(values)):
                unchecked.add(at)
        if not flight.finite:
            unchecked.add(flight.block.last)
        return BlockResult(tuple(looks), failed, frozenset(unchecked))

    def look(self, numbers: Sequence[int]) -> Sequence[Values | None]:
        chosen = [self.bound[number] for number in numbers]
        record = SlotBuffer(self.device, [slot for bound in chosen for slot in bound.slots])
        slots, states, steps = iter(record.parts), self.state[self.at], list[AnyStep]()
        for bound in chosen:
            steps += bound.steps(states, states, [next(slots) for _ in bound.slots])
        if not steps or self._null:
            return [None for _ in chosen]
        with self.device.program(steps, label="look", fetch=[record.array]) as program:
            program.run()
            values = iter(record.values(program.fetched(record.array)))
            return [[next(values) for _ in bound.slots] for bound in chosen]

    def restore(self, flight: DeviceFlight) -> None:
        self.device.copy(self._saved[flight.side], self.state[flight.start]).wait()
        self.at = flight.start

    def states(self) -> HostArray:
        return self.state[self.at].numpy()

    def states_after(self, step: int) -> HostArray | None:
        return None

    def close(self) -> None:
        for recorded in self._programs.values():
            recorded.program.close()
        self._programs.clear()

    def _recorded(self, segments: tuple[StepSegment, ...], strategy: Strategy, start: int, side: int) -> BlockProgram:
        key = (segments, strategy, start, side)
        if key not in self._programs:
            self._forget()
            self._programs[key] = self._record(segments, strategy, start, side)
        self._programs.move_to_end(key)
        return self._programs[key]

    def _forget(self) -> None:
        """Closes programs that were not used for longest, until there is room for another."""
        for key, recorded in [*self._programs.items()]:
            size = sum(one.record.array.nbytes for one in self._programs.values())
            if len(self._programs) < _REMEMBERED and size < _REMEMBERED_BYTES:
                return
            if id(recorded) not in self._busy:
                self._programs.pop(key).program.close()

    def _record(self, segments: tuple[StepSegment, ...], strategy: Strategy, start: int, side: int) -> BlockProgram:
        record = SlotBuffer(
            self.device, [slot for segment in segments for slot in self._slots(segment, segments, strategy)]
        )
        # Multiplying canonical values by 1 copies them.
        saving = self.device.bind("scale", self.state[start], out=self._saved[side], a=1.0)
        steps: list[AnyStep] = [saving]
        named: list[AnyStep] = [saving] if self._repeats else []
        slots, at = iter(record.parts), start
        deferred: list[AnyStep] = []
        for segment in segments:
            own: list[Step] = []
            count = self._alone(segment)
            if count and strategy != "stepwise":
                flag = next(slots) if strategy == "tagged" else self._no_flag
                source, target = self.state[at], self.state[1 - at]
                own.append(self.operator.step_many(self.device, self.constants, source, target, flag, count, strategy))
                at, count = 1 - at, 0
            steps += own
            # Looks at the states that these steps start from: recorded here they run beside them, not before them.
            steps += deferred
            singles: list[Step] = []
            for _ in range(count + self._compared(segment)):
                singles += self._singles[at]
                at = 1 - at
            steps += singles
            compared, deferred, certified = self._looks(segment, at, slots)
            steps += compared
            named += [*own, *singles, *certified]
            if self._checks(segment, segments):
                # It is not among those used: no state and no observation comes of it.
                deferred.append(self._check.step(self.device, self.state[at], next(slots)))
        steps += deferred
        kernels = [step for step in named if isinstance(step, Step)]
        self.used |= {(s.kernel.name, s.call.dtype.name, s.tuning): (s.kernel, s.call) for s in kernels}
        program = self.device.program(steps, label=_LABELS[strategy], fetch=[record.array])
        return BlockProgram(program, record, strategy, at)

    def _looks(
        self, segment: StepSegment, at: int, slots: Iterator[Array]
    ) -> tuple[list[AnyStep], list[AnyStep], list[AnyStep]]:
        """The steps of observers that compare, which follow a segment's last step at once; those of the others, which
        read the states that it ends with and nothing else; and those of both that certificates name."""
        compared, deferred, certified = list[AnyStep](), list[AnyStep](), list[AnyStep]()
        for number in segment.due:
            observer, bound = self._observers[number], self.bound[number]
            steps = bound.steps(self.state[1 - at], self.state[at], [next(slots) for _ in bound.slots])
            (compared if observer.compares else deferred).extend(steps)
            certified += steps if observer.certified else ()
        return compared, deferred, certified

    def _slots(self, segment: StepSegment, segments: Sequence[StepSegment], strategy: Strategy) -> Iterator[Slot]:
        """What a segment leaves behind, in the order in which it is bound and read."""
        if strategy == "tagged" and self._alone(segment):
            yield (4,), np.uint32
        for number in segment.due:
            yield from self.bound[number].slots
        if self._checks(segment, segments):
            yield self._check.slot(self.operator.dtype)

    def _checks(self, segment: StepSegment, segments: Sequence[StepSegment]) -> bool:
        """Whether a kernel checks the states after a segment; NumPy looks at the last ones itself."""
        return segment.check and not (self._on_host and segment is segments[-1])

    def _compared(self, segment: StepSegment) -> int:
        return int(not self._compares.isdisjoint(segment.due))

    def _alone(self, segment: StepSegment) -> int:
        """Steps of a segment that nobody looks at: some observers compare the states before and after the last one."""
        return segment.steps - self._compared(segment)
