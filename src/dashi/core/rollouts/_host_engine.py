"""The engine of operators that compute on the host by themselves: everything is done when a block is submitted.

Observers that know how to measure such states do (`Observer.measure`); for the others the states are put on the
device of the run, where kernels look at them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.core.operators.operator import HostOperator, HostStepper, Strategy
from dashi.core.rollouts._engine import BlockResult, Look
from dashi.core.rollouts._fingerprint import Used
from dashi.core.rollouts._record import SlotBuffer
from dashi.core.rollouts._segments import StepBlock
from dashi.core.rollouts.observer import Bound, Context, Observer, Values
from dashi.kernels.portable import canon
from dashi.runtime.array import Array
from dashi.runtime.device import Program
from dashi.types import HostArray


@dataclass(frozen=True, eq=False)
class HostFlight:
    """A block that is done."""

    block: StepBlock
    result: BlockResult
    start: HostArray

    def wait(self) -> None:
        """Nothing is under way."""


@dataclass(frozen=True, eq=False)
class _Look:
    """The program of an observer, from the states on the device to its slots."""

    program: Program
    record: SlotBuffer


class HostEngine:
    """States that an operator advances by itself."""

    most_under_way, most_segments = 1, 1  # nothing is recorded, and each look is handed out before the next

    def __init__(self, context: Context, states: HostArray, observers: Sequence[Observer[Any]]) -> None:
        assert isinstance(context.operator, HostOperator)
        self.device, self.piece = context.device, context.operator.piece
        self.used: Mapping[Any, Used] = {}
        self.bound: Sequence[Bound] = [one.bind(context) for one in observers]
        self._operator, self._observers = context.operator, observers
        self._stepper: HostStepper = context.operator.stepper(states)
        self._arrays: tuple[Array, Array] | None = None
        self._looks: dict[int, _Look] = {}
        self._earlier_dispatches = 0
        self._start: tuple[int, HostArray] | None = None
        """The step that the last block starts from, and the states there."""
        self._at: int | None = None
        """The step of the states as they are; None before the first block, and within one."""

    @property
    def dispatches(self) -> int:
        return self._earlier_dispatches + self._stepper.dispatches

    def submit(self, block: StepBlock, strategy: Strategy) -> HostFlight:
        looks: list[Look] = []
        unchecked: set[int] = set()
        ended: int | None = None
        self._start = (block.first, self.states())
        self._at = None
        for step, segment in block.ends():
            compared = any(self._observers[number].compares for number in segment.due)
            done = self._stepper.advance(segment.steps - compared)
            before = self.states() if compared else None
            done += self._stepper.advance(int(compared))
            if done < segment.steps:
                ended = step - segment.steps + done
                break
            looks += [(step, number, self._measured(number, before)) for number in segment.due]
            if segment.check and not self._stepper.finite():
                unchecked.add(step)
        self._at = block.last if ended is None else ended
        result = BlockResult(tuple(looks), unchecked=frozenset(unchecked), ended=ended)
        return HostFlight(block, result, self._start[1])

    def collect(self, flight: HostFlight) -> BlockResult:
        return flight.result

    def look(self, numbers: Sequence[int]) -> Sequence[Values]:
        return [self._measured(number, None) for number in numbers]

    def restore(self, flight: HostFlight) -> None:
        self._earlier_dispatches += self._stepper.dispatches
        self._stepper = self._operator.stepper(flight.start)

    def states(self) -> HostArray:
        return self._stepper.states()

    def states_after(self, step: int) -> HostArray | None:
        if step == self._at:
            return self.states()
        return self._start[1] if self._start and step == self._start[0] else None

    def close(self) -> None:
        for look in self._looks.values():
            look.program.close()
        self._looks.clear()

    def _measured(self, number: int, before: HostArray | None) -> Values:
        values = self._observers[number].measure(self._stepper)
        if values is not None:
            return values
        self._write(before)
        look = self._look(number)
        if look is None:
            return []
        look.program.run()
        return look.record.values(look.program.fetched(look.record.array))

    def _look(self, number: int) -> _Look | None:
        """What an observer recorded; None where it has nothing to do on the device."""
        if number not in self._looks:
            bound = self.bound[number]
            record = SlotBuffer(self.device, [*bound.slots])
            steps = bound.steps(*self._on_device(), record.parts)
            if not steps:
                return None
            self._looks[number] = _Look(self.device.program(steps, label="look", fetch=[record.array]), record)
        return self._looks[number]

    def _on_device(self) -> tuple[Array, Array]:
        """Arrays for the states before the last step, and for those after it."""
        if self._arrays is None:
            states = self.states()
            before, after = (self.device.empty(states.shape, states.dtype) for _ in range(2))
            self._arrays = before, after
        return self._arrays

    def _write(self, before: HostArray | None) -> None:
        after = self.states()
        for array, states in zip(self._on_device(), (after if before is None else before, after), strict=True):
            self.device.write(array, canon(np.ascontiguousarray(states)))
