"""Queues and their timelines: every submission gets the next value, every wait names one."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, NamedTuple

from dashi.errors import BusyError, ClosedError
from dashi.runtime._events import Awaited, Done
from dashi.runtime._host_gates import FARTHEST_VALUE, SUBMISSIONS_INSIDE, HostGate
from dashi.runtime._ports import Port
from dashi.runtime._relay import Relay
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawSubmission, RawWait, Waits

_SLICE_NS: Final = 100_000_000  # waits come up for air this often, so that Ctrl-C works
_LAST_NS: Final = 1_000_000_000


class _Held(NamedTuple):
    """Work that is held back."""

    submission: RawSubmission
    value: int
    waits: Waits
    gate: HostGate | None


Horizons = dict[int, "dict[Queue, int]"]
"""By thread that is inside a host step: the last value of each queue that does not wait for that step."""


class Queue:
    """A queue with one timeline semaphore; thread-safe. Where it shares the driver's queue with others, work that must
    wait is held back here until it can begin, so that it stands in nobody's way, as on hardware that has more."""

    def __init__(
        self,
        raw: RawDevice,
        port: Port,
        name: str,
        timeout: float,
        relay: Relay,
        awaited: Awaited,
        horizons: Horizons,
        *,
        export: bool = False,
    ) -> None:
        self._raw = raw
        self._port = port
        self._handle = port.handle
        self._lock = port.lock
        self._submitted = 0
        self._begun = 0
        self._held: deque[_Held] = deque()
        self._gate: HostGate | None = None  # of the host step that is being called
        self._horizons = horizons
        self._failure: BaseException | None = None
        self._waiters: list[RawWait] = []
        self._timeout = timeout
        self._relay = relay
        self._awaited = awaited
        self.known = 0
        """A value that the timeline has reached, and perhaps passed: whoever needs no later one need not ask."""
        self.name = name
        self.family = port.family
        self.timeline = raw.create_timeline(export=export)
        port.users[self.timeline] = self

    def submit(self, submission: RawSubmission, waits: Waits = ()) -> int:
        """Submits and returns the timeline value that marks its end. What `waits` names comes first; nobody blocks."""
        with self._lock:
            if not self._handle:
                raise _closed()
            if self._failure is not None:  # what came later would reach the value of what never ran
                raise self._failure
            value = self._submitted + 1
            if self._held or (waits and self._missing(waits)):
                if self.inside_host_step:
                    return self._submit_inside(submission, waits)
                self._hold(_Held(submission, value, waits, None))
            else:
                if self._port.gatherer:
                    self._port.submit(submission, value, waits)
                else:
                    submission.submit(self._handle, value, waits)
                self._begun = value
            self._submitted = value
        if self._horizons:
            self._note(value)
        return value

    # Host steps: what follows one stands behind a gate

    def submit_gated(self, segments: Sequence[Sequence[RawSubmission]], waits: Waits) -> list[HostGate]:
        """Submits the parts of a run with host steps between them, and returns the gate of each step. Callers hold the
        lock, and find the value of the run's end in `submitted`."""
        if not self._handle:
            raise _closed()
        if self._failure is not None:
            raise self._failure
        if self._submitted + len(segments) * SUBMISSIONS_INSIDE - self.reached() > FARTHEST_VALUE:
            raise BusyError(
                f"too many runs with host steps wait on {self.name}.", "wait for some of them before submitting more."
            )
        gates: list[HostGate] = []
        for segment in segments:
            gate: HostGate | None = None
            if segment is not segments[0]:
                gate = HostGate(self._submitted)
                gates.append(gate)
                self._submitted = gate.end
            for submission in segment:
                value = self._submitted + 1
                if gate is not None or self._held or (waits and self._missing(waits)):
                    self._hold(_Held(submission, value, waits, gate))
                else:
                    self._port.submit(submission, value, waits)
                    self._begun = value
                self._submitted = value
                waits = ()  # what follows on the queue comes after it
        return gates

    @property
    def lock(self) -> threading.RLock:
        """Whoever submits holds it."""
        return self._lock

    @contextmanager
    def inside_gate(self, gate: HostGate, thread: int) -> Generator[None]:
        """While it lasts, what the thread submits comes before the gate."""
        with self._lock:
            self._gate, gate.thread = gate, thread
        try:
            yield
        finally:
            with self._lock:
                self._gate = None

    @property
    def inside_host_step(self) -> bool:
        """Whether the calling thread is inside a host step of this queue."""
        return self._gate is not None and self._gate.thread == threading.get_ident()

    def _submit_inside(self, submission: RawSubmission, waits: Waits) -> int:
        gate = self._gate
        assert gate is not None
        value = gate.value + 1
        if value > gate.end:
            raise BusyError(
                f"a host step submitted {SUBMISSIONS_INSIDE} times.", "do less in one step, or submit after the run."
            )
        place = next(i for i, held in enumerate(self._held) if held.gate is gate)
        missing = self._missing(waits)
        if place or missing:
            self._held.insert(place, _Held(submission, value, waits, None))
            if not place:
                self._watch(missing)
        else:
            self._port.submit(submission, value, waits)
            self._begun = value
        gate.value = value
        self._note(value)
        return value

    def _note(self, value: int) -> None:
        horizon = self._horizons.get(threading.get_ident())
        if horizon is not None:
            horizon[self] = value

    @property
    def horizon(self) -> int:
        """The value of all that was submitted so far; inside a host step, of all that does not wait for that step."""
        horizon = self._horizons.get(threading.get_ident()) if self._horizons else None
        return self._submitted if horizon is None else horizon.get(self, self._submitted)

    def open_gate(self, gate: HostGate) -> None:
        """What stands behind the gate goes on."""
        with self._lock:
            gate.open = True
            self._go_on(None)

    def drop(self, gates: Sequence[HostGate], end: int) -> None:
        """Forgets what stands behind gates of a run that failed; its value is reached, since all before it is done."""
        with self._lock:
            self._held = deque(held for held in self._held if held.gate not in gates)
            self._raw.signal_timeline(self.timeline, end)
            self._begun = max(self._begun, end)
            self._go_on(None)

    # Queues that share one of the driver's

    def _missing(self, waits: Waits) -> tuple[int, int] | None:
        """What work must be held back for: a timeline that is signalled neither yet nor by what stands before it in the
        driver's queue. None on a queue of one's own, which may stand still."""
        users = self._port.users
        if len(users) == 1:
            return None
        for timeline, value in waits:
            sibling = users.get(timeline)
            if (sibling is None or sibling._begun < value) and self._raw.timeline_value(timeline) < value:
                return timeline, value
        return None

    def _hold(self, held: _Held) -> None:
        self._held.append(held)
        if len(self._held) == 1 and held.gate is None:
            self._watch(self._missing(held.waits))

    def _watch(self, missing: tuple[int, int] | None) -> None:
        # What is missing nothing any more goes on at once, but on the thread: the lock is held here.
        timeline, value = missing or (self.timeline, 0)
        self._relay.watch(timeline, value, self._go_on)

    def _go_on(self, error: BaseException | None) -> None:
        """Submits what need not be held back any longer, in order."""
        with self._lock:
            while self._held and self._handle and error is None:
                submission, value, waits, gate = self._held[0]
                if gate is not None and not gate.open:
                    return
                missing = self._missing(waits)
                if missing is not None:
                    self._watch(missing)
                    return
                try:
                    self._port.submit(submission, value, waits)
                except Exception as failure:
                    error = failure
                    break
                self._held.popleft()
                self._begun = value
            if error is None:
                return
            self._failure = error
            self._held.clear()
        self._relay.fail(self.timeline, self._begun, error)

    # Waiting

    def when_reached(self, value: int, call: Done) -> None:
        """Calls once the timeline has reached `value`, on another thread unless that is so already."""
        if self.reached() >= value:
            call(None)
        elif self._failure is not None and value > self._begun:
            call(self._failure)
        else:
            self._relay.watch(self.timeline, value, call)

    def wait_a_moment(self, value: int) -> bool:
        """Whether the timeline reaches the value within a moment."""
        if self._port.gathered:
            self._port.flush()
        if self._failure is not None:
            raise self._failure
        waiter = self._waiters.pop() if self._waiters else RawWait(self._raw, self.timeline)
        try:
            return waiter.wait(value, _SLICE_NS)
        finally:
            self._waiters.append(waiter)

    def wait(self, value: int, timeout: float | None = None) -> None:
        """Blocks until the timeline reaches `value`; a hung device gives an error, not a hung process."""
        if self._port.gathered:
            self._port.flush()
        # list.pop and append are atomic, so a wait costs no lock and no allocation.
        try:
            waiter = self._waiters.pop()
        except IndexError:
            waiter = RawWait(self._raw, self.timeline)
        try:
            if not waiter.wait(value, _SLICE_NS):
                self._wait_on(waiter, value, self._timeout if timeout is None else timeout)
            if value > self.known:
                self.known = value
        finally:
            self._waiters.append(waiter)

    def _wait_on(self, waiter: RawWait, value: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        if self.inside_host_step and self._gate is not None and value > self._gate.end:
            raise BusyError(
                "a host step waits for its own run, which goes on when the step has returned.",
                "name what it needs in `inputs` and what it makes in `outputs`, or wait after the run.",
            )
        while not waiter.wait(value, _SLICE_NS):
            if self._failure is not None:
                raise self._failure
            if time.monotonic() > deadline:
                raise self._awaited.too_late(timeout)

    @property
    def submitted(self) -> int:
        """The timeline value of the last submission."""
        return self._submitted

    def together(self) -> AbstractContextManager[None]:
        """While it lasts, what the calling thread submits is gathered: see `Port.together`."""
        return self._port.together()

    def fail(self, error: BaseException) -> None:
        """From now on every wait for what was not reached raises the error."""
        self._failure = error

    def let_go(self) -> None:
        """What waits for work that failed waits no longer, on other devices too: nobody reads what that makes."""
        if self._failure is not None and self._begun < self._submitted:
            with self._lock:
                RawWait(self._raw, self.timeline).wait(self._begun, _LAST_NS)  # a timeline never goes back
                self._raw.signal_timeline(self.timeline, self._submitted)

    def reached(self) -> int:
        """The timeline's present value."""
        return self._raw.timeline_value(self.timeline)

    def close(self) -> None:
        """Destroys the timeline. What was made for it is forgotten: nothing may be called with a dead handle."""
        with self._lock:
            self._handle = 0
            self._held.clear()
            self._port.forget()
            self._port.users.pop(self.timeline, None)
        self._raw.destroy("Semaphore", self.timeline)
        self._waiters.clear()


def _closed() -> ClosedError:
    return ClosedError("this queue is closed.", "close the device later.")
