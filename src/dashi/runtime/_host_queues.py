"""Queues of a device that computes on the host: one thread takes submitted work in order, and every ticket is real.

Work of one queue runs in the order of its submission; a queue whose next work must wait lets those of other queues go
first. One piece of work runs at a time, so that the bits are those of a single thread.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dashi.errors import BusyError, ForkedError
from dashi.runtime._events import Done, Event, relayed
from dashi.runtime._gate import inside
from dashi.runtime._relay import tell
from dashi.runtime.landing import Download, Ticket
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device

_R = TypeVar("_R")


class HostJob:
    """Work of a queue. `waits` counts what must end before it, and `cause` is what of that has failed; `began` and
    `ended` read `time.perf_counter_ns`."""

    __slots__ = (
        "began",
        "calls",
        "cause",
        "context",
        "ended",
        "error",
        "finished",
        "number",
        "queue",
        "reported",
        "waits",
        "work",
    )

    def __init__(self, number: int, queue: Hashable, work: Callable[[], None]) -> None:
        self.number = number
        self.queue = queue
        self.work: Callable[[], None] | None = work
        self.context: contextvars.Context | None = contextvars.copy_context()  # NumPy's errstate is in it
        self.waits = 1
        self.finished = self.reported = False
        self.cause: HostJob | None = None
        self.error: BaseException | None = None
        self.calls: list[Done] = []
        self.began = self.ended = 0

    def run(self) -> None:
        """Does the work, unless what it waited for has failed."""
        self.began = time.perf_counter_ns()
        try:
            if self.error is None and self.work is not None and self.context is not None:
                self.context.run(self.work)
        except BaseException as error:  # whoever waits gets it
            self.error = error
        self.ended = time.perf_counter_ns()
        self.work = self.context = None


class HostTicket(Ticket):
    """Work that the thread of a device does."""

    __slots__ = ("all_before", "job", "queues")

    def __init__(self, device: Device, queues: HostQueues, job: HostJob | None = None) -> None:
        super().__init__(device)
        self.queues = queues
        self.job = job
        self.all_before: Sequence[tuple[Hashable, int]] = ()
        """The places of other queues up to which everything came first, of a transfer after all that was submitted."""

    def wait(self, timeout: float | None = None) -> None:
        job = self.job
        if job is not None:
            self._stay(job, timeout)
            if job.error is not None:
                self.device.failures.forget(job)
                raise job.error
            if self.device.failures.listed:
                self.device.failures.raise_before([*self.all_before, (job.queue, job.number)])
        if self.landing is not None:
            self.landing.waited_for(self)

    @inside
    def _stay(self, job: HostJob, timeout: float | None) -> None:
        if not job.finished:
            self.queues.wait_for(lambda: job.finished, timeout)

    @property
    def done(self) -> bool:
        self.device.require_open()
        return self.job is None or self.job.finished

    def when_done(self, call: Done) -> None:
        job = self.job
        if job is None or not self.queues.call_later(job, call):
            call(None if job is None else job.error)

    @property
    def end(self) -> Ticket:
        ticket = HostTicket(self.device, self.queues, self.job)
        ticket.all_before = self.all_before
        return ticket


class HostDownload(HostTicket, Download):
    """A copy of an array that the thread of a device makes: `values` holds it when it is there."""

    __slots__ = ("values",)

    def __init__(self, device: Device, queues: HostQueues) -> None:
        super().__init__(device, queues)
        self.values: list[HostArray] = []

    def _values(self) -> HostArray:
        return self.values[0].copy()


class HostQueues:
    """The queues of one device and the thread that works for them, which starts with the first submission."""

    def __init__(self, device: Device) -> None:
        self._device = weakref.ref(device)
        self._changed = threading.Condition(threading.Lock())
        self._queues: dict[Hashable, deque[HostJob]] = {}
        self._numbers = itertools.count(1)
        self._last = 0
        self._busy: HostJob | bool = False
        self._worker: int | None = None  # the thread that does what is under way
        self._failures = weakref.ref(device.failures)  # tracebacks of errors hold the device
        self._thread: threading.Thread | None = None
        self._stopping = False
        # At the interpreter's end, too, the thread ends before what it works with is taken apart.
        self._at_exit = weakref.finalize(device, self.stop, drop=True)

    # Submitting

    def submit(
        self, ticket: HostTicket, queue: Hashable, work: Callable[[], None], after: Iterable[Ticket] | None
    ) -> None:
        """Puts work into a queue. What it comes after is waited for by nobody: it calls when it is done. With None that
        is all work submitted so far: where that fails, whoever waits is told, and the work is done nevertheless."""
        everything = after is None
        after = self._tails(ticket) if after is None else after
        with self._changed:
            job = ticket.job = HostJob(next(self._numbers), queue, work)
            self._last = job.number
            self._queues.setdefault(queue, deque()).append(job)
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._serve, name="dashi-numpy", daemon=True)
                self._thread.start()
        if after:
            self._come_after(job, list(after), ticket.device, whatever=everything)
        self._release(job, None, None)

    def _come_after(self, job: HostJob, after: list[Ticket], device: Device, *, whatever: bool) -> None:
        waits = [other if other.device is device else relayed(other, device) for other in after]
        with self._changed:
            job.waits += len(waits)
        for wait in waits:
            release = partial(self._release, job, wait.job if isinstance(wait, HostTicket) else None)
            wait.when_done((lambda _: self._release(job, None, None)) if whatever else release)
        device.awaited.add([wait for wait in waits if isinstance(wait, Event)])

    def _release(self, job: HostJob, other: HostJob | None, error: BaseException | None) -> None:
        """Something that the job waits for has ended: other work of this device, or what else there is."""
        with self._changed:
            job.waits -= 1
            if error is not None and job.error is None:
                job.error, job.cause = error, other
            if not job.waits:
                self._changed.notify_all()

    def _tails(self, ticket: HostTicket) -> list[Ticket]:
        """The ends of all that was submitted so far, which the ticket's work comes after."""
        with self._changed:
            jobs = [jobs[-1] for jobs in self._queues.values() if jobs]
            if isinstance(self._busy, HostJob):
                jobs.append(self._busy)
            ticket.all_before = [(queue, self._last) for queue in self._queues]
        return [HostTicket(ticket.device, self, job) for job in jobs]

    def try_now(self, work: Callable[[], None]) -> bool:
        """Does the work at once, on the calling thread, where nothing else is under way: that saves the way to another
        thread and back. False where something is, unless it is what calls (a host step)."""
        if self._worker == threading.get_ident():
            work()
            return True
        with self._changed:
            if self._busy or any(self._queues.values()):
                return False
            self._busy = True
        self._occupy(work)
        return True

    def settled(self, work: Callable[[], _R]) -> _R:
        """What the work gives, done on the calling thread after everything that was submitted so far, while nothing
        else runs. An error that nobody was told of is raised here. A host step, which is under way itself, does it at
        once."""
        if self._worker == threading.get_ident():
            return work()
        with self._changed:
            if self._busy or any(self._queues.values()):
                last = self._last
                self._wait_until(lambda: not self._busy and not self._pending(last), None)
            self._raise_untold()
            self._busy = True
        return self._occupy(work)

    def settle(self) -> None:
        """Returns when everything that was submitted so far is done."""
        with self._changed:
            last = self._last
            self._wait_until(lambda: not self._pending(last), None)
            self._raise_untold()

    def _occupy(self, work: Callable[[], _R]) -> _R:
        self._worker = threading.get_ident()
        try:
            return work()
        finally:
            with self._changed:
                self._busy, self._worker = False, None
                self._changed.notify_all()

    def _raise_untold(self) -> None:
        failures = self._failures()
        if failures is not None:
            failures.raise_next()

    # Waiting

    def _pending(self, last: int) -> bool:
        """Whether work up to the number is not done yet."""
        running = isinstance(self._busy, HostJob) and self._busy.number <= last
        return running or any(jobs and jobs[0].number <= last for jobs in self._queues.values())

    @property
    def at_work(self) -> bool:
        with self._changed:
            return bool(self._busy) or any(self._queues.values())

    def wait_for(self, condition: Callable[[], bool], timeout: float | None) -> None:
        """Blocks until the condition holds, which changes with the work; too long a wait is an error."""
        with self._changed:
            self._wait_until(condition, timeout)

    def _wait_until(self, condition: Callable[[], bool], timeout: float | None) -> None:
        device = self._device()
        assert device is not None  # whoever calls has it
        if self._worker == threading.get_ident() and not condition():
            raise BusyError(
                "a host step waits for its own device, which goes on when the step has returned.",
                "name what it needs in `inputs` and what it makes in `outputs`, or wait after the run.",
            )
        limit = device.timeout if timeout is None else timeout
        if not self._changed.wait_for(condition, limit):
            raise device.awaited.too_late(limit)

    def call_later(self, job: HostJob, call: Done) -> bool:
        """Calls when the work is done; False where it is."""
        with self._changed:
            if job.finished:
                return False
            job.calls.append(call)
            return True

    # The thread

    def _serve(self) -> None:
        while (job := self._take()) is not None:
            self._worker = threading.get_ident()
            job.run()
            self._finish(job)
            del job  # nothing may live longer because the thread has nothing to do

    def _take(self) -> HostJob | None:
        """The oldest work that may begin; None when the thread is to end."""
        with self._changed:
            while True:
                if not self._busy:
                    ready = [jobs[0] for jobs in self._queues.values() if jobs and not jobs[0].waits]
                    if ready:
                        job = min(ready, key=lambda job: job.number)
                        self._queues[job.queue].popleft()
                        self._busy = job
                        return job
                    if self._stopping:
                        return None
                self._changed.wait()

    def _finish(self, job: HostJob) -> None:
        with self._changed:
            job.finished = True
            self._busy, self._worker = False, None
            if job.error is not None:
                failures = self._failures()
                if failures is not None:
                    failures.add(job, job.cause)
            job.cause = None
            calls, job.calls = job.calls, []
            self._changed.notify_all()
        for call in calls:
            tell(call, job.error)

    def stop(self, *, drop: bool = False) -> None:
        """Ends the thread after the work that was submitted, or, with `drop`, after what it is at."""
        self._at_exit.detach()
        with self._changed:
            self._stopping = True
            if drop:
                self._queues.clear()
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def after_fork(self) -> None:
        """In a child process the thread is gone, and with it what was under way."""
        self._changed = threading.Condition(threading.Lock())
        left = [job for jobs in self._queues.values() for job in jobs]
        if isinstance(self._busy, HostJob):
            left.append(self._busy)
        for job in left:
            job.error = ForkedError(
                "this work was under way in the process of which this one is a copy.", "submit it again."
            )
            job.finished, job.work, job.calls = True, None, []
        self._queues, self._busy, self._worker, self._thread = {}, False, None, None
