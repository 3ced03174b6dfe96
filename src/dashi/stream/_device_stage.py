"""A stage on a device: programs recorded once for each pair of slots, submitted one after another, never waited for."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dashi.errors import DashiError
from dashi.runtime._program import Program
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.landing import Ticket
from dashi.stream._contracts import ContractLedger
from dashi.stream._digests import ItemDigest
from dashi.stream._model import State
from dashi.stream._plan import PlannedStage
from dashi.stream._recordings import OpBinder
from dashi.stream.links import Link
from dashi.types import HostArray

Arrays = Mapping[str, Array]
Hold = Callable[[str, int], Sequence[Ticket]]
"""What a step of a stage has to come after besides what it needs: for tests that disturb a chain."""
_TIMED_RUNS: Final = 64


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
        self.observer_programs: dict[tuple[int, ...], tuple[Program, Arrays]] = {}
        """Programs of observers that are due together, and what they bring to the host."""


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
        observe: Callable[[int, str, Mapping[str, HostArray]], None] | None = None,
        hold: Hold | None = None,
        check: Callable[[State, PlannedStage], None] | None = None,
        ledger: ContractLedger | None = None,
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
        self._looks: Final[deque[tuple[int, Ticket, Arrays]]] = deque()
        self._timings: Final[deque[Ticket]] = deque(maxlen=_TIMED_RUNS)
        self._closed = False
        for step in range(math.lcm(self._slots_before, self._slots_behind)):
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
        ticket = recording.program.submit(after=[*arrived, *free, *held], feed=feed)
        if self._ledger is not None:
            self._ledger.evolved(self.id, step)
        self.items_in += 1
        if self._timed:
            self._timings.append(ticket)
        looked = self._look(step, recording, ticket)
        if before is not None:
            before.release(step, after=[looked])
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
            slots=max(2, math.ceil(self._unread / self._window)) if fetch else 2,
        )  # fmt: skip
        # What observers may read of a field that leaves is what left.
        return StageProgram(program, {**bound.fields, **outputs}, outputs, digest)

    # Observing

    def _look(self, step: int, recording: StageProgram, ticket: Ticket) -> Ticket:
        """Submits the observers that are due; what the slots of the step are needed for last."""
        observers = self.planned.observers
        of_run = step + self.first_step
        due = tuple(i for i, op in enumerate(observers) if of_run % self.planned.every.get(op.spec.id, 1) == 0)
        if not due or self._observe is None:
            return ticket
        if due not in recording.observer_programs:
            recording.observer_programs[due] = self._record_observers(recording, due)
        program, shown = recording.observer_programs[due]
        while len(self._looks) >= 2 * self._window:
            self._read_look()
        if self._ledger is not None:
            for i in due:
                self._ledger.observe(self.id, observers[i].spec.id, step)
        look = program.submit(after=[ticket])
        self._looks.append((of_run, look, shown))
        return look

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
        step, ticket, shown = self._looks.popleft()
        values = {name: ticket.fetched(array) for name, array in shown.items()}
        if self._observe is not None:
            self._observe(step, self.id, values)

    def finish(self) -> None:
        """Reads what observers have brought so far."""
        while self._looks:
            self._read_look()

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
            for recording in self._programs.values():
                for program, _ in recording.observer_programs.values():
                    program.close()
                recording.program.close()
            self._programs.clear()


def _arrays(device: Device, schema: Mapping[str, Any]) -> dict[str, Array]:
    return {name: device.zeros(form.shape, form.element) for name, form in schema.items()}
