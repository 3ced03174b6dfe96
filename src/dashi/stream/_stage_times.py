"""Where the time of stages on devices went, by the devices' own clocks: work, and waiting by reason."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dashi.errors import DashiError
from dashi.runtime._clock import Clock
from dashi.runtime.device import Device
from dashi.runtime.landing import Ticket

_KEPT: Final = 4096
"""Items whose times are held until those of their neighbours are known."""
_CLOCK_SECONDS: Final = 1.0
"""How long the relation of a device's clock to the host's is believed: clocks drift by microseconds in that time."""

WAITS: Final = ("starved", "linked", "blocked", "submitting")
"""Reasons for which a stage waits: fields of `StageUse`."""
Interval = tuple[int, int]
"""When the work of an item began and ended, in nanoseconds of the host's clock."""


@dataclass
class StageUse:
    """Seconds of a stage over some items: it computed; it waited for the stage before (`starved`), for the link from
    there (`linked`), for a slot of the link behind it (`blocked`), or for the host to submit (`submitting`)."""

    items: int = 0
    gaps: int = 0
    """Times between two items that are known, of it and its neighbours."""
    busy: float = 0.0
    starved: float = 0.0
    linked: float = 0.0
    blocked: float = 0.0
    submitting: float = 0.0

    @property
    def reason(self) -> str:
        """What it waited for longest, in a word; empty where it did not wait."""
        waits = {name: getattr(self, name) for name in WAITS}
        longest = max(waits, key=lambda name: waits[name])
        return longest if waits[longest] > 0 else ""

    def as_json(self, items: int) -> dict[str, float]:
        """Seconds by name, for so many items: the times of some may have given way to those of others."""
        busy = self.busy * items / self.items if self.items else 0.0
        share = max(0, items - 1) / self.gaps if self.gaps else 0.0
        return {"busy": round(busy, 6), **{name: round(getattr(self, name) * share, 6) for name in WAITS}}


def divide_gap(gap: Interval, fed: int | None, freed: int | None) -> dict[str, int]:
    """What a device did not work for between two items, in nanoseconds by reason. `fed` is when the stage before was
    done with the item, `freed` when the slot behind was free again; None where there is no such thing. What is left
    over is the link's before the stage, or the host's where none is."""
    start, end = gap
    if end <= start:
        return {}
    starved_until = start if fed is None else min(max(start, fed), end)
    blocked_until = starved_until if freed is None else min(max(starved_until, freed), end)
    return {
        "starved": starved_until - start,
        "blocked": blocked_until - starved_until,
        "submitting" if fed is None else "linked": end - blocked_until,
    }


class StageClock:
    """The intervals of one stage, by step, read off its tickets as they end. The thread of the stage and that which
    takes results may both read."""

    def __init__(self, device: Device) -> None:
        self._lock: Final = threading.Lock()
        self._tickets: Final[deque[tuple[int, Ticket]]] = deque(maxlen=_KEPT)
        self.intervals: Final[dict[int, Interval]] = {}
        self._read_clock: Final[Callable[[], Clock] | None] = getattr(device, "clock", None)
        self._clock = None if self._read_clock is None else self._read_clock()
        self._read_at = time.monotonic()

    def add(self, step: int, ticket: Ticket) -> None:
        """A step was submitted."""
        self._tickets.append((step, ticket))

    def read(self) -> None:
        """Reads the times of runs that have ended, before those of later runs take their place."""
        with self._lock:
            while self._tickets and self._tickets[0][1].done:
                step, ticket = self._tickets.popleft()
                try:
                    times = ticket.device_interval()
                except DashiError:  # too late, or the work failed: whoever takes its result is told
                    continue
                if times is not None:
                    self.intervals[step] = (self._on_host(times[0]), self._on_host(times[1]))

    def _on_host(self, device_ns: int) -> int:
        clock = self._clock
        if clock is None or self._read_clock is None:  # it computes on the host, by the host's clock
            return device_ns
        # Where the driver does not say it of both clocks, reading takes a submission, and so is done but once.
        if clock.calibrated and time.monotonic() - self._read_at >= _CLOCK_SECONDS:
            self._clock, self._read_at = self._read_clock(), time.monotonic()
        return clock.host(device_ns)

    def forget(self, before: int) -> None:
        """Intervals of earlier steps are needed no more."""
        with self._lock:
            for step in [step for step in self.intervals if step < before]:
                del self.intervals[step]


class ChainClock:
    """Sums of all stages: `windows` are those of the links between them."""

    def __init__(self, devices: Sequence[Device], windows: Sequence[int]) -> None:
        self.stages: Final = [StageClock(device) for device in devices]
        self.totals: Final = [StageUse() for _ in devices]
        self._windows: Final = [*windows]
        self._used: Final[list[tuple[int, float]]] = [(0, 0.0)] * len(windows)
        """Items of each link, and the seconds that their slots were in use: until the consumer was done."""
        self._out: tuple[int, int, int] | None = None
        """Items that have come out, and when the work of the first and the last of them ended."""

    def item_out(self, step: int) -> None:
        """The item of a step has come out: all stages are done with it."""
        for clock in self.stages:
            clock.read()
        for number, total in enumerate(self.totals):
            self._add(number, step, total)
        for number in range(len(self._windows)):
            begin, end = (self.stages[number + i].intervals.get(step) for i in (0, 1))
            if begin is not None and end is not None:
                items, seconds = self._used[number]
                self._used[number] = (items + 1, seconds + max(0, end[1] - begin[0]) * 1e-9)
        if (last := self.stages[-1].intervals.get(step)) is not None:
            items, first, _ = self._out or (0, last[1], 0)
            self._out = (items + 1, first, last[1])
        oldest = step - max(self._windows, default=1) - 1
        for clock in self.stages:
            clock.forget(oldest)

    def mean_used(self, number: int) -> float | None:
        """Slots of a link that are in use on average; None where that is not known yet."""
        if self._out is None or self._out[0] < 2 or not self._used[number][0]:
            return None
        out, first, last = self._out
        items, seconds = self._used[number]
        period = (last - first) * 1e-9 / (out - 1)
        return min(seconds / items / period, float(self._windows[number])) if period > 0 else None

    def _add(self, number: int, step: int, total: StageUse) -> None:
        mine = self.stages[number].intervals
        if step not in mine:
            return
        begin, end = mine[step]
        total.items += 1
        total.busy += max(0, end - begin) * 1e-9
        before = self.stages[number - 1].intervals if number else {step: (0, 0)}
        behind = number < len(self._windows) and step >= self._windows[number]
        after = self.stages[number + 1].intervals if behind else {}
        slot = step - self._windows[number] if behind else 0
        if step - 1 not in mine or step not in before or (behind and slot not in after):
            return  # the times of one of them gave way
        total.gaps += 1
        fed, freed = before[step][1] if number else None, after[slot][1] if behind else None
        for name, ns in divide_gap((mine[step - 1][1], begin), fed, freed).items():
            setattr(total, name, getattr(total, name) + ns * 1e-9)
