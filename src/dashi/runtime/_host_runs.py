"""Host steps of Vulkan programs while nobody waits: a thread for each queue calls them in the order of submission.

A run with host steps is submitted at once, up to its end: its first part goes to the driver, and the others stand in
the queue behind gates (`HostGate`). The thread waits for what comes before a gate, calls the function and opens the
gate. A run that fails loses what is left of it; the queue goes on with what was submitted after it.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dashi.errors import ClosedError
from dashi.runtime._gate import Gate
from dashi.runtime._host_gates import Failable, HostGate, RunOutcome
from dashi.runtime._queue_tickets import QueueTicket
from dashi.runtime._sync import Horizons, Queue
from dashi.runtime._transfers import HostCall

if TYPE_CHECKING:
    from dashi.runtime._commands import VulkanProgram
    from dashi.runtime.device import Device


class HostRun:
    """A run of a program with host steps, of which the first part was submitted. `before` is what each queue had been
    submitted until then, and `end` the value that its own reaches with the run's end."""

    def __init__(
        self,
        program: VulkanProgram,
        calls: Sequence[HostCall],
        gates: Sequence[HostGate],
        before: Mapping[Queue, int],
        ticket: QueueTicket,
    ) -> None:
        self.queue, self.outcome = ticket.queue, RunOutcome(ticket.queue, ticket.value)
        self._program = program
        self._calls = list(zip(gates, calls, strict=True))
        self._gates = gates
        self._before = before
        self._end = ticket.value
        self._awaited: Sequence[Failable] = ticket.events
        self._ticket = weakref.ref(ticket)
        self._context = contextvars.copy_context()  # NumPy's errstate is in it
        ticket.events = (*ticket.events, self.outcome)

    def go(self, runs: HostRuns) -> None:
        """Calls the host steps, each when what comes before it is done."""
        cause: Failable | None = None
        try:
            for gate, call in self._calls:
                while not self.queue.wait_a_moment(gate.value):
                    runs.require_going()
                for awaited in self._awaited:
                    if awaited.error is not None:
                        cause = awaited
                        raise awaited.error
                self._call(runs, gate, call)
                self.queue.open_gate(gate)
            self.outcome.succeeded = True
        except BaseException as error:  # whoever waits gets it
            self._fail(runs, error, cause)

    def _call(self, runs: HostRuns, gate: HostGate, call: HostCall) -> None:
        thread = threading.get_ident()
        entered = runs.gate.entered  # whoever closes the device waits for the function
        try:
            entered.append(None)
            runs.horizons[thread] = {**self._before, self.queue: gate.value}
            with self._program.calling(thread), self.queue.inside_gate(gate, thread):
                self._context.run(call.run)
        finally:
            del runs.horizons[thread]
            entered.pop()

    def _fail(self, runs: HostRuns, error: BaseException, cause: Failable | None) -> None:
        self.outcome.error = error.with_traceback(None)  # its frames are those of the thread, and hold the device
        self._program.run_failed(self._ticket())
        failures = runs.failures()
        if failures is not None:
            failures.add(self.outcome, cause if isinstance(cause, RunOutcome) else None)
        with contextlib.suppress(Exception):  # a lost device, or one that is closed
            shut = next(gate for gate in self._gates if not gate.open)
            while not self.queue.wait_a_moment(shut.value):
                runs.require_going()
            self.queue.drop(self._gates, self._end)


class HostRuns:
    """The threads of a device that call host steps, started when they are first needed. They know the gate of the
    device alone, so that they keep no device alive."""

    def __init__(self, gate: Gate, horizons: Horizons, device: Device) -> None:
        self.gate = gate
        self.failures = weakref.ref(device.failures)
        """Weak, since tracebacks of errors hold the device."""
        self.horizons = horizons
        """What each thread that calls a host step may wait for."""
        self._changed = threading.Condition(threading.Lock())
        self._waiting: dict[Queue, deque[HostRun]] = {}
        self._threads: list[threading.Thread] = []
        self._stopping = False
        # At the interpreter's end, too, the threads end before what they work with is taken apart.
        self._at_exit = weakref.finalize(device, self.stop)

    def add(self, run: HostRun) -> None:
        """From now on a thread looks after the run. Callers hold the queue's lock, so that runs come in its order."""
        with self._changed:
            started = run.queue in self._waiting
            self._waiting.setdefault(run.queue, deque()).append(run)
            if not started and not self._stopping:
                name = f"dashi-host-steps-{len(self._threads)}"
                thread = threading.Thread(target=self._serve, args=[run.queue], name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify_all()

    def _serve(self, queue: Queue) -> None:
        while (run := self._next(queue)) is not None:
            run.go(self)
            del run  # nothing may live longer because the thread has nothing to do

    def _next(self, queue: Queue) -> HostRun | None:
        with self._changed:
            waiting = self._waiting[queue]
            self._changed.wait_for(lambda: waiting or self._stopping)
            return waiting.popleft() if waiting else None

    def require_going(self) -> None:
        """Raises where the threads are to end."""
        if self._stopping:
            raise ClosedError(
                "the device was closed before the host steps of a run were called.", "wait for work before closing."
            )

    def after_fork(self) -> None:
        """In a child process the threads are gone, and whoever held the lock."""
        self._at_exit.detach()
        self._changed = threading.Condition(threading.Lock())
        self._threads, self._stopping = [], True

    def stop(self) -> None:
        """Ends the threads after the functions that they are at."""
        self._at_exit.detach()
        with self._changed:
            self._stopping = True
            threads, self._threads = self._threads, []
            self._changed.notify_all()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()
