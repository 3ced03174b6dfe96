"""The recorded blocks of a simulation: states that go to and fro between two arrays on a device, looks beside them.

Nothing is allocated and nothing is read back while a block runs; what its looks leave comes back with it, while the
next block runs already.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from dashi.core.observations.observation import Hash
from dashi.core.rollouts.fingerprint import Used
from dashi.core.rollouts.record import Record, digest_text
from dashi.core.rollouts.segments import Block, Segment
from dashi.flow.grid import Floats
from dashi.flow.observers import Camera, Look, Observer
from dashi.flow.operator import Loaded, Vorticity
from dashi.runtime.device import Device, Program, Step, Waitable

_REMEMBERED: Final = 12


@dataclass(frozen=True, eq=False)
class Harvest:
    """What came back with a block."""

    hashes: tuple[Hash, ...]
    looks: tuple[Look, ...]
    finite: bool = True
    """Whether all values of the last states are, as far as that was checked."""


class Ticket(Protocol):
    """A block under way."""

    @property
    def block(self) -> Block: ...


class Engine(Protocol):
    """What advances states: a device, or NumPy's own transforms."""

    @property
    def dispatches(self) -> int: ...

    @property
    def used(self) -> Mapping[Any, Used]: ...

    def submit(self, block: Block) -> Ticket:
        """Starts a block where the one before it ends."""
        ...

    def harvest(self, ticket: Any) -> Harvest:
        """Waits for a block and takes what it left."""
        ...

    def look(self, step: int) -> Look:
        """Measures the states as they are; nothing may be under way."""
        ...

    def fields(self) -> Mapping[str, Floats]:
        """The fields of the states as they are."""
        ...

    def states(self) -> Floats: ...

    def close(self) -> None: ...


@dataclass(frozen=True, eq=False)
class _Recorded:
    program: Program
    record: Record
    end: int


@dataclass(frozen=True, eq=False)
class _Running:
    block: Block
    recorded: _Recorded
    ticket: Waitable


class DeviceEngine:
    """States on a device, and the programs that advance and observe them."""

    def __init__(
        self, device: Device, operator: Vorticity, states: Floats, fields: Sequence[str], *, transfer: bool
    ) -> None:
        self.device, self.operator = device, operator
        self.dispatches = 0
        self.used: dict[tuple[str, str, str | None], Used] = {}
        loaded = operator.load(device)
        assert isinstance(loaded, Loaded)
        self._state = (device.array(states), device.empty(states.shape, states.dtype))
        self._at = 0
        self._singles = [operator.step(device, loaded, self._state[i], self._state[1 - i]) for i in (0, 1)]
        self._observer = Observer(operator.flow, device, loaded, transfer=transfer)
        self._camera = Camera(operator.flow, device, loaded, fields)
        self._programs: OrderedDict[tuple[Any, ...], _Recorded] = OrderedDict()
        self._side = 0

    def submit(self, block: Block) -> Ticket:
        key = (block.segments, self._at, self._side)
        if key not in self._programs:
            while len(self._programs) >= _REMEMBERED:
                self._programs.popitem(last=False)[1].program.close()
            self._programs[key] = self._record(block.segments, self._at)
        self._programs.move_to_end(key)
        recorded = self._programs[key]
        ticket = recorded.program.submit()
        self.dispatches += recorded.program.dispatches
        # Two blocks under way must not share a record.
        self._side, self._at = 1 - self._side, recorded.end
        return _Running(block, recorded, ticket)

    def harvest(self, ticket: Any) -> Harvest:
        running: _Running = ticket
        running.ticket.wait()
        if self.device.info.type == "null":
            return Harvest((), ())
        record = running.recorded.record
        values = iter(record.values(running.recorded.program.fetched(record.array)))
        hashes: list[Hash] = []
        looks: list[Look] = []
        finite = True
        for step, segment in running.block.ends():
            if segment.observe:
                looks.append(self._observer.look(step, [next(values) for _ in self._observer.slots(1)]))
            if segment.hash:
                hashes.append(Hash(step, digest_text(next(values))))
            if segment.check:
                finite = bool(np.isfinite(next(values)[:2]).all())
        return Harvest(tuple(hashes), tuple(looks), finite)

    def look(self, step: int) -> Look:
        members = self._state[0].shape[0]
        record = Record(self.device, self._observer.slots(members))
        steps = self._observer.steps(self._state[self._at], record.parts)
        with self.device.program(steps, label="look", fetch=[record.array]) as program:
            program.run()
            return self._observer.look(step, record.values(program.fetched(record.array)))

    def fields(self) -> Mapping[str, Floats]:
        return self._camera.take(self._state[self._at])

    def states(self) -> Floats:
        return self._state[self._at].numpy()

    def close(self) -> None:
        for recorded in self._programs.values():
            recorded.program.close()
        self._programs.clear()

    def _record(self, segments: Sequence[Segment], at: int) -> _Recorded:
        members = self._state[0].shape[0]
        slots: list[tuple[tuple[int, ...], Any]] = []
        for segment in segments:
            slots += self._observer.slots(members) if segment.observe else []
            slots += [((4,), np.uint32)] if segment.hash else []
            slots += [((4,), self.operator.dtype)] if segment.check else []
        record = Record(self.device, slots)
        free = iter(record.parts)
        steps: list[Step] = []
        for segment in segments:
            for _ in range(segment.steps):
                steps += self._singles[at]
                at = 1 - at
            if segment.observe:
                steps += self._observer.steps(self._state[at], [next(free) for _ in self._observer.slots(1)])
            if segment.hash:
                steps.append(self.device.bind("hash_state", self._state[at], out=next(free)))
        self.used |= {(s.kernel.name, s.call.dtype.name, s.tuning): (s.kernel, s.call) for s in steps}
        if segments[-1].check:
            # It is not among those used: no state comes of it. The least and the largest value are NaN where any is.
            steps.append(self.device.bind("reduce_statistics", self._state[at], out=next(free)))
        program = self.device.program(steps, label="flow", fetch=[record.array])
        return _Recorded(program, record, at)
