"""A stage on a device: programs recorded once for each pair of slots, submitted one after another, never waited for."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dashi.errors import DashiError, TimeoutError_
from dashi.runtime._program import Program
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.landing import Ticket
from dashi.stream._contracts import ContractLedger
from dashi.stream._digests import ItemDigest
from dashi.stream._model import State
from dashi.stream._plan import PlannedStage
from dashi.stream._recordings import OpBinder
from dashi.stream._stage_times import StageClock
from dashi.stream.links import Link
from dashi.types import HostArray

Arrays = Mapping[str, Array]
Hold = Callable[[str, int], Sequence[Ticket]]
"""What a step of a stage has to come after besides what it needs: for tests that disturb a chain."""
Observe = Callable[[int, str, Mapping[str, HostArray]], None]
"""What an observer found: the step, the stage, and values by field."""
_TIMED_RUNS: Final = 64
_NEWS_EVERY: Final = 0.5
"""Seconds after which a wait asks whether something has failed."""


@dataclass(frozen=True)
class StageSnapshot:
    """Each `every`-th State behind a stage is handed to `keep`, as arrays of the host."""

    every: int
    keep: Observe


@dataclass(frozen=True)
class StageLook:
    """What observers, or a snapshot, of a step bring: from `ticket`, for `observe`."""

    step: int
    ticket: Ticket
    shown: Arrays
    observe: Observe
    dispatches: int


class DevicePayload(Mapping[str, Array]):
    """The arrays of a State on a device; they hold it once the work is done that `after` names. `digest` and
    `fetched_fields` come back to the host with the last stage's run."""

    __slots__ = ("_arrays", "after", "digest", "fetched_fields")

    def __init__(
        self, arrays: Arrays, after: Sequence[Ticket], digest: Array | None = None, fetched_fields: Arrays | None = None
    ):
        self._arrays = dict(arrays)
        self.after = tuple(after)
        self.digest = digest
        self.fetched_fields = dict(fetched_fields or {})

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class StageProgram:
    """A stage's recording for one slot of the link before and one of the link behind."""

    __slots__ = ("digest", "fields", "observer_programs", "outputs", "program")

    def __init__(self, program: Program, fields: Arrays, outputs: Arrays, digest: Array | None) -> None:
        self.program = program
        self.fields = fields
        self.outputs = outputs
        self.digest = digest
        self.observer_programs: dict[tuple[int, ...] | None, tuple[Program, Arrays]] = {}
        """Programs of observers that are due together, and what they bring to the host; under None the snapshot's."""


class DeviceStage:
    """A stage of a chain whose ops run on a device. Called with the States of consecutive steps it submits each step's
    work and returns the next State at once; the host waits for slots alone, and for what observers bring back.

    Without a link before it, States come with arrays of the host; without one behind, their digests go to the host,
    and with `keep` their fields. `queue` is the device's queue that it computes on.
    """

    def __init__(
        self,
        planned: PlannedStage,
        device: Device,
        before: Link | None,
        behind: Link | None,
        *,
        window: int,
        unread: int,
        queue: int = 0,
        keep: bool = False,
        timed: bool = True,
        observe: Observe | None = None,
        hold: Hold | None = None,
        check: Callable[[State, PlannedStage], None] | None = None,
        ledger: ContractLedger | None = None,
        snapshot: StageSnapshot | None = None,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self.id: Final = planned.stage.id
        self.planned: Final = planned
        self.device: Final = device
        self.items_in = self.items_out = 0
        self.first_step = 0
        """The step of the run that its step 0 is: observers look at steps of the run."""
        self._before, self._behind = before, behind
        self._window, self._unread = window, unread
        self._queue, self._keep, self._timed = queue, keep, timed
        self._observe, self._hold, self._check = observe, hold, check
        self._ledger: Final = ledger
        self._ops: Final = OpBinder(device, planned.ops)
        self._observers: Final = [OpBinder(device, [op]) for op in planned.observers]
        self._programs: Final[dict[tuple[int, int], StageProgram]] = {}
        self._fed: dict[str, Array] | None = None
        self._snapshot: Final = snapshot
        self._failed: Final = failed
        """Raises the error of another stage, where one is known."""
        self._looks: Final[deque[StageLook]] = deque()
        self._timings: Final[deque[Ticket]] = deque(maxlen=_TIMED_RUNS)
        self.clock: StageClock | None = None
        """What is told of submissions, where the time of stages is followed."""
        self.dispatches = 0
        """Dispatches of items that have come out of the chain, and of observers that were read."""
        self._submitted: Final[deque[tuple[int, Ticket, int]]] = deque()
        """Items that have not come out: the step, the end of its work, its dispatches."""
        self._closed = False
        for step in range(self._pairs):
            self._program_of(step)  # now: what is written while it is recorded would wait for work under way

    def __call__(self, state: State) -> State:
        """Submits the step of a State."""
        step = state.step
        if self._check is not None:
            self._check(state, self.planned)
        arrived = state.payload.after if isinstance(state.payload, DevicePayload) else ()
        before, behind = self._before, self._behind
        if before is not None:
            before.receive(step)
        free = behind.take(step, self.device.timeout) if behind is not None else []
        held = self._hold(self.id, step) if self._hold is not None else ()
        recording = self._program_of(step)
        feed = None if self._fed is None else {array: state.payload[name] for name, array in self._fed.items()}
        runs = 2 * self._pairs
        if self._fed is not None and len(self._submitted) >= runs:
            # It would wait for that slot all the same; its times are read before another run has it.
            await_work(self._submitted[-runs][1], self._failed)
        if self.clock is not None:
            self.clock.read()
        ticket = recording.program.submit(after=[*arrived, *free, *held], feed=feed)
        self._submitted.append((step, ticket.end, recording.program.dispatches))
        if self._ledger is not None:
            self._ledger.evolved(self.id, step)
        self.items_in += 1
        if self._timed:
            self._timings.append(ticket)
            if self.clock is not None:
                self.clock.add(step, ticket)
        looked = self._look(step, recording, ticket)
        if before is not None:
            before.release(step, after=looked)
        sent = behind.send(step, after=[ticket]) if behind is not None else [ticket]
        self.items_out += 1
        if self._ledger is not None:
            self._ledger.forget(self.id, step)
        arrays = behind.incoming(step) if behind is not None else recording.outputs
        fetched_fields = recording.outputs if self._keep and behind is None else None
        payload = DevicePayload(arrays, sent, recording.digest, fetched_fields)
        return replace(state, payload=payload, semantic_depth=self.planned.depth_out, stage_id=self.id)

    # Recording

    def _program_of(self, step: int) -> StageProgram:
        pair = (step % self._slots_before, step % self._slots_behind)
        if pair not in self._programs:
            self._programs[pair] = self._record(*pair)
        return self._programs[pair]

    @property
    def _slots_before(self) -> int:
        return 1 if self._before is None else self._before.window

    @property
    def _slots_behind(self) -> int:
        return self._window if self._behind is None else self._behind.window

    @property
    def _pairs(self) -> int:
        """How many programs there are: pairs of slots that meet."""
        return math.lcm(self._slots_before, self._slots_behind)

    def _run_slots(self, *, fetches: bool) -> int:
        """Slots of a program: of results that are not read; or of times, of all runs that may be under way. A fed one
        has values of the host in each, and waits instead."""
        if fetches:
            return max(2, math.ceil(self._unread / self._window))
        return 2 if self._fed is not None or not self._timed else 1 + max(1, math.ceil(self._unread / self._pairs))

    def _record(self, source: int, target: int) -> StageProgram:
        """Both slots are given by a step that has them."""
        planned, device = self.planned, self.device
        if self._before is not None:
            inputs: Arrays = self._before.incoming(source)
        else:
            if self._fed is None:
                self._fed = _arrays(device, planned.taken)
            inputs = self._fed
        outputs = self._behind.outgoing(target) if self._behind is not None else _arrays(device, planned.after)
        bound = self._ops.bind(inputs, outputs)
        steps, fetch = list(bound.steps), list[Array]()
        digest: Array | None = None
        if self._behind is None:
            hashed = ItemDigest(device, outputs)
            steps += hashed.steps
            digest = hashed.result
            fetch = [digest, *(outputs.values() if self._keep else ())]
        program = device.program(
            steps, label=self.id, queue=self._queue, fetch=fetch, timed=self._timed,
            feed=list(self._fed.values()) if self._fed is not None else (),
            slots=self._run_slots(fetches=bool(fetch)),
        )  # fmt: skip
        # What observers may read of a field that leaves is what left.
        return StageProgram(program, {**bound.fields, **outputs}, outputs, digest)

    # Observing

    def _look(self, step: int, recording: StageProgram, ticket: Ticket) -> list[Ticket]:
        """Submits the observers and the snapshot that are due; what the slots of the step are needed for last."""
        of_run, last = step + self.first_step, [ticket]
        observers, snapshot = self.planned.observers, self._snapshot
        due = tuple(i for i, op in enumerate(observers) if of_run % self.planned.every.get(op.spec.id, 1) == 0)
        if due and self._observe is not None:
            if self._ledger is not None:
                for i in due:
                    self._ledger.observe(self.id, observers[i].spec.id, step)
            last = [self._submit_look(of_run, recording, due, last, self._observe)]
        if snapshot is not None and of_run % snapshot.every == 0:
            # Behind the observers: they run on one queue, and the slot is free when the last of them is done.
            last = [self._submit_look(of_run, recording, None, last, snapshot.keep)]
        return last

    def _submit_look(
        self, of_run: int, recording: StageProgram, due: tuple[int, ...] | None, after: list[Ticket], observe: Observe
    ) -> Ticket:
        if due not in recording.observer_programs:
            recording.observer_programs[due] = (
                self._record_snapshot(recording) if due is None else self._record_observers(recording, due)
            )
        program, shown = recording.observer_programs[due]
        while len(self._looks) >= 2 * self._window:
            self._read_look()
        look = program.submit(after=after)
        self._looks.append(StageLook(of_run, look, shown, observe, program.dispatches))
        return look

    def _record_snapshot(self, recording: StageProgram) -> tuple[Program, Arrays]:
        """What leaves the stage comes to the host as it is."""
        fetch, slots = list(recording.outputs.values()), 2 * self._window
        label = f"{self.id} snapshots"
        return self.device.program([], label=label, queue=self._queue, fetch=fetch, slots=slots), recording.outputs

    def _record_observers(self, recording: StageProgram, due: tuple[int, ...]) -> tuple[Program, Arrays]:
        """Observers in order, each seeing what those before it made. What none of them reads comes to the host."""
        fields, results = dict(recording.fields), dict[str, Array]()
        steps: list[Any] = []
        for i in due:
            bound = self._observers[i].bind(fields, {})
            steps += bound.steps
            results |= {name: array for name, array in bound.fields.items() if fields.get(name) is not array}
            fields = dict(bound.fields)
        read = {name for i in due for name in self.planned.observers[i].reads}
        shown = {name: array for name, array in results.items() if name not in read}
        fetch = list(shown.values())
        slots = 2 * self._window
        return self.device.program(
            steps, label=f"{self.id} observers", queue=self._queue, fetch=fetch, slots=slots
        ), shown

    def _read_look(self) -> None:
        look = self._looks[0]
        values = {name: look.ticket.fetched(array) for name, array in look.shown.items()}
        self._looks.popleft()  # not before: what a lost device does not bring is computed again
        self.dispatches += look.dispatches
        look.observe(look.step, self.id, values)

    def finish(self) -> None:
        """Reads what observers have brought so far."""
        while self._looks:
            self._read_look()

    def read_looks(self, before: int) -> None:
        """Reads those of steps before this one, counted as `__call__` does."""
        while self._looks and self._looks[0].step < before + self.first_step:
            self._read_look()

    @property
    def unread_look(self) -> int | None:
        """The first step of the run that observers or a snapshot saw and that was not read."""
        return self._looks[0].step if self._looks else None

    def item_out(self, step: int) -> None:
        """The item of a step has come out of the chain: what was submitted for it here was executed."""
        while self._submitted and self._submitted[0][0] <= step:
            self.dispatches += self._submitted.popleft()[2]

    def failure(self) -> tuple[int, DashiError] | None:
        """The first step whose work here is known to have failed, and its error. Waits for nothing."""
        for step, ticket, _ in [*self._submitted]:
            try:
                ticket.wait(0)
            except TimeoutError_:  # it may still come
                return None
            except DashiError as error:
                return step, error
        return None

    # About it

    @property
    def device_seconds(self) -> float | None:
        """The median time of the last runs that are done, by the device's own clock, without observers; None where it
        has none."""
        taken = list[int]()
        for ticket in list(self._timings):
            try:
                time = ticket.device_ns() if ticket.done else None
            except DashiError:  # its times gave way to those of a later run
                continue
            if time is not None:
                taken.append(time)
        return statistics.median(taken) * 1e-9 if taken else None

    def close(self) -> None:
        """Lets go of its programs; what is under way is finished first. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            self._looks.clear()
            self._timings.clear()
            self._submitted.clear()
            for recording in self._programs.values():
                for program, _ in recording.observer_programs.values():
                    program.close()
                recording.program.close()
            self._programs.clear()


def await_work(ticket: Ticket, failed: Callable[[], None]) -> None:
    """Waits, and now and then calls `failed`: what the work comes after may have failed on another device, and then it
    never begins."""
    end = time.monotonic() + ticket.device.timeout
    while not ticket.done:
        try:
            ticket.wait(min(_NEWS_EVERY, max(0.0, end - time.monotonic())))
        except TimeoutError_:
            failed()
            if time.monotonic() >= end:
                raise


def _arrays(device: Device, schema: Mapping[str, Any]) -> dict[str, Array]:
    return {name: device.zeros(form.shape, form.element) for name, form in schema.items()}
