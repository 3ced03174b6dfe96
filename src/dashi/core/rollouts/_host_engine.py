"""The engine of operators that compute on the host by themselves: everything is done when a block is submitted.

Observers that know how to measure such states do (`Observer.measure`); for the others the states are put on the NumPy
device, where the reference kernels look at them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.core.operators.operator import HostOperator, HostStepper, Strategy
from dashi.core.rollouts._engine import BlockResult, Seen
from dashi.core.rollouts._fingerprint import Used
from dashi.core.rollouts._record import Record
from dashi.core.rollouts._segments import Block
from dashi.core.rollouts.observer import Bound, Context, Observer, Values
from dashi.runtime.array import Array
from dashi.types import HostArray


@dataclass(frozen=True, eq=False)
class HostFlight:
    """A block that is done."""

    block: Block
    result: BlockResult
    start: HostArray

    def wait(self) -> None:
        """Nothing is under way."""


class HostEngine:
    """States that an operator advances by itself."""

    def __init__(self, context: Context, states: HostArray, observers: Sequence[Observer[Any]]) -> None:
        assert isinstance(context.operator, HostOperator)
        self.device, self.dispatches = context.device, 0
        self.used: Mapping[Any, Used] = {}
        self.bound: Sequence[Bound] = [one.bind(context) for one in observers]
        self._operator, self._observers = context.operator, observers
        self._stepper: HostStepper = context.operator.stepper(states)
        self._arrays: tuple[Array, Array] | None = None

    def submit(self, block: Block, strategy: Strategy) -> HostFlight:
        seen: list[Seen] = []
        unchecked: set[int] = set()
        start = self.states()
        for step, segment in block.ends():
            compared = any(self._observers[number].compares for number in segment.due)
            self._stepper.advance(segment.steps - compared)
            before = self.states() if compared else None
            self._stepper.advance(int(compared))
            seen += [(step, number, self._measured(number, before)) for number in segment.due]
            if segment.check and not self._stepper.finite():
                unchecked.add(step)
        return HostFlight(block, BlockResult(tuple(seen), unchecked=frozenset(unchecked)), start)

    def collect(self, flight: HostFlight) -> BlockResult:
        return flight.result

    def look(self, numbers: Sequence[int]) -> Sequence[Values]:
        return [self._measured(number, None) for number in numbers]

    def restore(self, flight: HostFlight) -> None:
        self._stepper = self._operator.stepper(flight.start)

    def array(self) -> Array:
        return self._on_device(None)[1]

    def states(self) -> HostArray:
        return self._stepper.states()

    def close(self) -> None:
        """Nothing to free."""

    def _measured(self, number: int, before: HostArray | None) -> Values:
        values, bound = self._observers[number].measure(self._stepper), self.bound[number]
        if values is not None or not bound.slots:
            return values or []
        record = Record(self.device, [*bound.slots])
        steps = bound.steps(*self._on_device(before), record.parts)
        with self.device.program(steps, label="look", fetch=[record.array]) as program:
            program.run()
            return record.values(program.fetched(record.array))

    def _on_device(self, before: HostArray | None) -> tuple[Array, Array]:
        """The states before the last step, where they are needed, and those after it."""
        after = self.states()
        if self._arrays is None:
            shape, dtype = after.shape, after.dtype
            self._arrays = self.device.empty(shape, dtype), self.device.empty(shape, dtype)
        self.device.write(self._arrays[0], np.ascontiguousarray(after if before is None else before))
        self.device.write(self._arrays[1], np.ascontiguousarray(after))
        return self._arrays
