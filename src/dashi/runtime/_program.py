"""Recorded steps: what every kind of device makes of them, and how their runs are started, timed and read."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from dashi.errors import ClosedError, InputError
from dashi.runtime._clock import RunTimes
from dashi.runtime._description import Description, describe
from dashi.runtime._feeding import Feed, RunSlot, require_no_feed
from dashi.runtime._gate import Gate, inside
from dashi.runtime._hazards import BarrierProof, Batch
from dashi.runtime._notebook import html_text
from dashi.runtime._slots import Landing, Slot
from dashi.runtime._steps import AnyStep
from dashi.runtime.array import Array
from dashi.runtime.info import Barriers, Role
from dashi.runtime.landing import Ticket
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device

Timed = bool | Literal["steps"]
"""Whether runs are timed on the device's own clock, and each of their steps too."""

Waitable = Ticket
"""Submitted work."""


@dataclass(frozen=True)
class Timing:
    """Times of one run in nanoseconds. `device` comes from timestamps on the device, None where there are none."""

    wall: int
    enqueue: int
    wait: int
    device: int | None


@dataclass(frozen=True)
class Recording:
    """How steps are recorded: where barriers go, whether runs are timed on the device, for which queue, which arrays
    come back to the host with every run, how many runs may wait to be read, which arrays go to the device with every
    run, and whether kernels may use all these in the slots themselves."""

    barriers: Barriers = "auto"
    timed: Timed = False
    queue: int | Role = 0
    fetch: tuple[Array, ...] = ()
    slots: int = 2
    feed: tuple[Array, ...] = ()
    direct: bool = False


class Program(ABC):
    """Steps recorded once, to be submitted any number of times."""

    def __init__(self, device: Device, steps: Sequence[AnyStep], label: str, options: Recording) -> None:
        self.device = device
        self.steps = tuple(steps)
        self.label = label
        self.queue = f"queue {0 if options.queue == 'compute' else options.queue}"
        """The name of the queue that it is submitted to."""
        self.fetches = options.fetch
        self.feeds = options.feed
        self.copied_feeds: Sequence[str] | None = None
        self.copied_fetches: Sequence[str] | None = None
        """Why each array of a direct program is copied; empty where kernels use the slot instead."""
        self.dispatches = 0
        self.barriers = 0
        self._closed = False
        self._landing: Landing | None = None
        self._last_run: tuple[Waitable, int] | None = None

    @property
    def gate(self) -> Gate:
        """The gate of its device."""
        return self.device.gate

    @abstractmethod
    def submit(self, after: Iterable[Waitable] = (), feed: Feed | None = None) -> Waitable:
        """Starts a run, after other work of any device, and returns at once; host steps are called by a thread of the
        device, and their errors come where one waits for the ticket. A program that is fed takes the values of a slot
        (`slot`), or of a dict, by array."""

    def _tell(self, ticket: Waitable) -> None:
        """Tells of a submission whoever asked the device."""
        self.device.listeners.tell(self.device, self.queue, self.label or "program", ticket, self.dispatches)

    def run(self, feed: Feed | None = None) -> None:
        """Runs and waits."""
        _finish(self.submit(feed=feed))

    def slot(self, timeout: float | None = None) -> RunSlot:
        """Memory of the host to fill for one run of a program that is fed. Waits, `timeout` seconds at most, for the
        oldest run where all slots are used by runs that are under way; raises BusyError where they are being filled,
        or hold results that nobody has read."""
        gate = self.device.gate  # as the decorator `inside` does, without the cost of a call
        entered = gate.entered
        try:
            entered.append(None)
            if gate.refusal is not None:
                raise gate.refusal()
            if self._closed:
                self.require_open()
            if not self.feeds:
                require_no_feed(self, {})
            handed_out = RunSlot(self)
            handed_out.slot = slot = self._hand_out(handed_out, timeout)
            handed_out.feeds = slot.storage.views()
            return handed_out
        finally:
            entered.pop()

    @abstractmethod
    def _hand_out(self, slot: RunSlot, timeout: float | None) -> Slot:
        """Gives a free slot to somebody to fill."""

    def run_timed(self) -> Timing:
        """Runs, waits, and says what took how long."""
        start = time.perf_counter_ns()
        ticket = self.submit()
        submitted = time.perf_counter_ns()
        _finish(ticket)
        end = time.perf_counter_ns()
        return Timing(end - start, submitted - start, end - submitted, self.device_ns())

    def fetched_of(self, run: int, array: Array) -> HostArray:
        """A copy of one of the arrays that came back with a certain run (`Ticket.run`), which is done; an error where
        its slot went to another."""
        self.require_open()
        if self._landing is None:
            raise InputError(f"nothing comes back with the program {self.label!r}.", "name what should: fetch=[array].")
        return self._landing.of_run(run, array)

    @property
    def slot_counts(self) -> tuple[int, int]:
        """How many slots its runs took anew so far, and how often one that was there already."""
        return (0, 0) if self._landing is None else self._landing.counts

    def device_ns(self) -> int | None:
        """Nanoseconds that the last run took on the device's own clock; waits for it. None where that is not known
        (programs made without `timed`). `Ticket.device_ns` gives that of one certain run."""
        times = self._last_times()
        return None if times is None else times.end_ns - times.start_ns

    @inside
    def _last_times(self) -> RunTimes | None:
        """The times of the last run, which is waited for."""
        self.require_open()
        if self._last_run is None or self._landing is None:
            return None
        end, run = self._last_run
        end.wait()
        return self._landing.times_of(run)

    def _note_run(self, ticket: Waitable) -> None:
        """The run is the last now. Its ticket is not held: that would hold its slot."""
        self._last_run = (ticket.end, ticket.run)

    @abstractmethod
    def schedule(self) -> Sequence[Batch]:
        """What was recorded: commands with the bytes that they touch, and the barriers between them."""

    def check(self) -> BarrierProof:
        """Proves that the barriers of the program cover every hazard between its commands, byte by byte; else raises a
        HazardError that names the first two that race. What was submitted before, and on other queues, is no part of
        it."""
        proofs = [batch.check() for batch in self.schedule()]
        return BarrierProof(
            sum(proof.commands for proof in proofs),
            sum(proof.hazards for proof in proofs),
            sum(proof.barriers for proof in proofs),
        )

    def interval(self) -> tuple[int, int] | None:
        """When the last run began and ended on the device, on the axis of `time.perf_counter_ns`; waits for it. None
        where that is not known (programs made without `timed`)."""
        times = self._last_times()
        return None if times is None else (times.start_ns, times.end_ns)

    @inside
    def fetched(self, array: Array, out: HostArray | None = None) -> HostArray:
        """A copy of one of the arrays that come back with every run (`fetch`), as it was at the end of the latest run
        that was waited for, new or in `out`; a run submitted since neither changes nor delays it. Once all of them
        were read, the next submission may take their place: then this raises until that run was waited for.
        `Ticket.fetched` gives what one certain run left."""
        if self._landing is None or not self.fetches:
            raise InputError(
                f"nothing comes back with the program {self.label!r}.",
                "name what should: device.program(..., fetch=[array]).",
            )
        return self._landing.of_last(array, out)

    @inside
    def describe(self) -> Description:
        """The program in words, and as a graph: its steps, the memory that they use, the barriers between them.
        `print(program.describe())`; a notebook shows it; `program.describe().dot()` is for Graphviz."""
        self.require_open()
        return describe(self, self._barriers_by_step())

    def _barriers_by_step(self) -> Sequence[int]:
        """How many barriers stand before the commands of each step."""
        return [0] * len(self.steps)

    def _repr_html_(self) -> str:
        return html_text(repr(self) if self._closed or self.gate.refusal else str(self.describe()))

    def require_open(self) -> None:
        """Raises where the program was closed."""
        if self._closed:
            raise ClosedError(f"the program {self.label!r} is closed.", "record it again, or close it later.")

    @abstractmethod
    def close(self) -> None:
        """Frees what was recorded once its last run is done. Closing twice, or after the device, is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return (
            f"<Program {self.label!r} on {self.device.info.spec}: {len(self.steps)} steps, "
            f"{self.dispatches} dispatches, {self.barriers} barriers{closed}>"
        )


def _finish(ticket: Waitable) -> None:
    """Waits for a run whose ticket nobody else has. The error of a wait that fails holds the ticket, in its traceback:
    the slot is let go nevertheless."""
    try:
        ticket.wait()
    except BaseException:
        if ticket.landing is not None:
            ticket.landing.let_go(ticket)
        raise
