"""The loop of a run: blocks are cut, submitted and collected in order, repeated where that is needed.

Two blocks are under way at the same time. What observers left of the older one is taken in while the device computes
the newer one, so that frames, diagnostics and checkpoints do not hold it up.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dashi.core.observations.observation import Observation
from dashi.core.operators.operator import Strategy
from dashi.core.rollouts._engine import BlockResult, Engine, InFlight
from dashi.core.rollouts._guard import Guard
from dashi.core.rollouts._interrupt import deferred_interrupt
from dashi.core.rollouts._observers import StateCopies
from dashi.core.rollouts._record import observation
from dashi.core.rollouts._segments import SegmentSchedule, StepBlock, StepSegment
from dashi.core.rollouts.observer import Fault, Observer, Values
from dashi.core.rollouts.run import Run
from dashi.errors import Interrupted, NonFiniteError
from dashi.types import HostArray

MOST_RECORDED: Final = 256
"""Steps of a block that are recorded one by one."""
MOST_RERUNS: Final = 3
"""Failed blocks after which a rollout goes on step by step."""
_METRICS: Final = 0
"""The number of the observer that counts values which are not finite."""


class Loop:
    """One run under way. The first observer is `StateMetrics`, asked for or not."""

    def __init__(
        self, engine: Engine, observers: Sequence[Observer[Any]], so_far: Run, end: int, *, strategy: Strategy,
        most: int, stop: bool, guard: Guard | None,
    ) -> None:  # fmt: skip
        self.engine, self.observers, self.so_far, self.end = engine, observers, so_far, end
        self._way: Strategy = strategy
        self._most, self._stop, self._guard = most, stop, guard
        self._schedule = SegmentSchedule(
            observers, engine.bound, end, most_segments=engine.most_segments, piece=engine.piece
        )
        self._records = {one.name: [*so_far.records.get(one.name, ())] for one in observers}
        self._done = self._submitted = self._good = so_far.steps
        self._reruns = so_far.reruns
        self._pending: deque[InFlight] = deque()
        self._began = time.perf_counter()
        self._exact = observers[_METRICS].every > 0
        """Whether the check at the end of a block counts values, or adds them up, which costs least."""
        self._null = engine.device.info.type == "null"

    def go(self, progress: Callable[[int], None]) -> Run:
        """Runs to the end, or until Ctrl-C comes."""
        if self._done == 0:
            self._look_at_start()
        self._began = time.perf_counter()
        try:
            with deferred_interrupt() as interrupt:
                while self._done < self.end and not (interrupt.asked and self._may_stop()):
                    before = self._done
                    self._advance()
                    progress(self._done - before)
                while self._pending:
                    self._take(self._pending.popleft())
        except KeyboardInterrupt:
            # A second Ctrl-C. What was taken in is whole where the states after it are at hand.
            state = self.engine.states_after(self._done)
            if state is None:
                raise
            raise Interrupted(self._result(stopped=True, state=state)) from None
        result = self._result(stopped=self._done < self.end)
        if interrupt.asked:
            raise Interrupted(result)
        return result

    def _look_at_start(self) -> None:
        numbers = [number for number, one in enumerate(self.observers) if one.at_start]
        values = self.engine.look(numbers)
        self._book_step(0, [*zip(numbers, values, strict=True)], None)

    def _advance(self) -> None:
        """Keeps blocks under way, and takes in the oldest."""
        while self._submitted < self.end and len(self._pending) < self.engine.most_under_way:
            block = self._watched(self._schedule.block(self._submitted, self._most))
            self._pending.append(self.engine.submit(block, self._way))
            self._submitted = block.last
        self._take(self._pending.popleft())

    def _may_stop(self) -> bool:
        """Whether a run that goes on from here has the bits of one that never stopped."""
        return not self.engine.piece or self._done % self.engine.piece == 0

    def _watched(self, block: StepBlock) -> StepBlock:
        """The block, with a look at its end: then a fault is in the block in which it is seen, or in none before; and
        with one wherever an observer needs states that are finite."""
        if not self._stop:
            return block
        if self._guard is None:
            *others, last = block.segments
            looked = [self._checked(part) if self._needs_finite(part) else part for part in others]
            return replace(block, segments=(*looked, self._checked(last)))
        marked: list[StepSegment] = []
        for number, segment in enumerate(block.segments, start=1):
            looking = [self.observers[due].name for due in segment.due]
            checks = self._guard.checks(last=number == len(block.segments), seen=looking)
            marked.append(replace(segment, check=checks))
        return replace(block, segments=tuple(marked))

    def _needs_finite(self, segment: StepSegment) -> bool:
        return any(self.observers[number].needs_finite for number in segment.due)

    def _checked(self, segment: StepSegment) -> StepSegment:
        """The segment, with a look at its last states where faults are to be found."""
        if not self._stop or _METRICS in segment.due:
            return segment
        return _counted(segment) if self._exact else replace(segment, check=True)

    def _take(self, flight: InFlight) -> None:
        result = self.engine.collect(flight)
        if result.failed:
            self._repeat(flight)
        else:
            self._accept(flight, result)

    def _accept(self, flight: InFlight, result: BlockResult) -> None:
        """Books what a block left; one that is not finite, or may not be, is gone through again."""
        if self._stop and self._guard is None and (result.unchecked or _first_bad(result)):
            self._locate(flight, result)
        else:
            self._book(flight, result)

    def _book(self, flight: InFlight, result: BlockResult) -> None:
        """Takes in what was seen, in the order of steps."""
        values = {(step, number): left for step, number, left in result.looks}
        for at, segment in flight.block.ends():
            if result.ended is not None and at > result.ended:
                self._done = result.ended
                raise self._fault(f"after step {result.ended + 1} its states are not finite", None)
            if at in result.unchecked and self._guard is not None:
                what = f"after step {at} its states are not finite, after step {self._good} they were"
                raise self._fault(what, flight)
            self._book_step(at, [(number, values.get((at, number))) for number in segment.due], flight)
            self._done = at
            if segment.check or at == flight.block.last:
                self._good = at

    def _book_step(self, step: int, looks: Sequence[tuple[int, Values | None]], flight: InFlight | None) -> None:
        """Takes in what the observers of one step left, by their numbers: nothing, where one of them finds a fault."""
        taken: list[tuple[Observer[Any], Any]] = []
        try:
            for number, values in looks:
                record = None if values is None else self.engine.bound[number].take(step, values)
                taken.append((self.observers[number], record))
        except Fault as fault:
            raise self._fault(str(fault), flight) from None
        for observer, record in taken:
            if record is None:
                continue
            if isinstance(observer, StateCopies):
                observer.keep(self._result(stopped=False, steps=step, state=record, over=False))
            # A run that goes on from its start has been looked at there.
            elif observer.due(step, self.end) if step else not self._records[observer.name]:
                self._records[observer.name].append(record)

    def _wait_for_all(self) -> None:
        while self._pending:
            self._pending.popleft().wait()

    def _repeat(self, flight: InFlight) -> None:
        """Runs a failed block again, step by step, from the states that it started from."""
        self._wait_for_all()
        self.engine.restore(flight)
        self._reruns += 1
        at = flight.block.first
        for segment in flight.block.segments:
            for piece in _pieces(segment):
                again = self.engine.submit(StepBlock(at, (self._checked(piece),)), "stepwise")
                self._accept(again, self.engine.collect(again))
                at = again.block.last
        self._submitted = self._done
        if self._reruns >= MOST_RERUNS:
            self._way = "stepwise"
            self._most = min(self._most, MOST_RECORDED)

    def _locate(self, flight: InFlight, result: BlockResult) -> None:
        """Finds the step at which the states ceased to be finite, keeps what came before, and raises. Where they are
        finite after all, and only their sum is not, the block has been done again."""
        bad = _first_bad(result)
        counted = [step for step, number, _ in result.looks if number == _METRICS]
        good = max((step for step in counted if bad is None or step < bad.step), default=flight.block.first)
        self._wait_for_all()
        self.engine.restore(flight)
        for at, segment in flight.block.ends():
            first = at - segment.steps
            if at <= good:
                again = self.engine.submit(StepBlock(first, (segment,)), self._way)
                self._book(again, self.engine.collect(again))
                continue
            self._search(first, at, segment)
        if bad is not None:
            raise self._nonfinite(bad)
        self._submitted, self._exact = self._done, True

    def _search(self, first: int, at: int, segment: StepSegment) -> None:
        """Does a segment in pieces, ever smaller ones where a piece went wrong, and raises at the step that did."""
        step, stride = first, at - first
        while step < at:
            count = min(max(1, stride // 16), MOST_RECORDED, at - step)
            due = segment.due if step + count == at else ()
            flight = self.engine.submit(StepBlock(step, (_counted(StepSegment(count, due)),)), "stepwise")
            result = self.engine.collect(flight)
            bad = _first_bad(result)
            if bad is None:
                self._book(flight, result)
                step += count
            elif count == 1:
                raise self._nonfinite(bad)
            else:
                self.engine.restore(flight)
                stride = count

    def _nonfinite(self, observation: Observation) -> NonFiniteError:
        error = NonFiniteError(
            f"{observation.nonfinite} values of the state are not finite after step {observation.step}, "
            f"the first at index {observation.first_nonfinite}.",
            "look at the operator's spectral radius, or let it go on: stop_on_nonfinite=False.",
        )
        error.observation = observation
        error.rollout = self._result(stopped=True, steps=observation.step)
        return error

    def _fault(self, what: str, flight: InFlight | None) -> NonFiniteError:
        """The error for what was seen, once nothing is under way any more; its `rollout` has the states before the
        block in which that happened."""
        self._wait_for_all()
        if flight is not None:
            self.engine.restore(flight)
            self._done = flight.block.first
        run = self._result(stopped=True)
        error = (
            self._guard.error(what, run)
            if self._guard
            else NonFiniteError(f"{what}.", "look at the operator, or let it go on: stop_on_nonfinite=False.")
        )
        error.rollout = run
        return error

    def _take_late(self) -> None:
        """Takes in the records that observers left for later."""
        for observer, bound in zip(self.observers, self.engine.bound, strict=True):
            self._records[observer.name] += bound.late()

    def _result(
        self, *, stopped: bool, steps: int | None = None, state: HostArray | None = None, over: bool = True
    ) -> Run:
        """The run so far; its states are read back, unless they are at hand. Where it is `over`, all is taken in."""
        if over:
            self._take_late()
        seconds = self.so_far.seconds + time.perf_counter() - self._began
        if state is None:
            state = self.so_far.state if self._null else self.engine.states()
        records: Mapping[str, tuple[Any, ...]] = {name: tuple(rows) for name, rows in self._records.items() if rows}
        return replace(
            self.so_far,
            steps=self._done if steps is None else steps,
            state=state,
            records={**self.so_far.records, **records},
            seconds=seconds,
            dispatches=self.so_far.dispatches + self.engine.dispatches,
            reruns=self._reruns,
            stopped=stopped,
            used=tuple(self.engine.used.values()),
        )


def _counted(segment: StepSegment) -> StepSegment:
    """The segment, with a count of values that are not finite after it."""
    return segment if _METRICS in segment.due else replace(segment, due=(_METRICS, *segment.due))


def _first_bad(result: BlockResult) -> Observation | None:
    """The first observation of values that are not finite."""
    for step, number, values in result.looks:
        if number == _METRICS:
            found = observation(step, values[0], values[1])
            if found.nonfinite:
                return found
    return None


def _pieces(segment: StepSegment) -> list[StepSegment]:
    """A segment in pieces that can be recorded step by step; the last one has its observers."""
    rest = [MOST_RECORDED] * ((segment.steps - 1) // MOST_RECORDED)
    return [*(StepSegment(n) for n in rest), replace(segment, steps=segment.steps - sum(rest))]
