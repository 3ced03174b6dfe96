"""Repeated timing: batches long enough to be measured, on a device that is warm, and the median of several."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

Result = TypeVar("Result")


class TimedCalls(Protocol):
    """Some calls, ready to run again and again."""

    def run(self) -> int:
        """Runs them all; nanoseconds."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Effort:
    """How long to measure, in nanoseconds: a batch lasts `batch` or more, all runs together about `total`; `warm` is
    work done before, since hardware that was idle has a slow clock."""

    batch: int
    warm: int
    total: int
    runs: int = 7
    calls: int = 10_000


HARDWARE: Final = Effort(batch=20_000_000, warm=500_000_000, total=1_000_000_000)
"""An H200 that was idle for three seconds is 5.5 times as slow for the next 0.2 to 0.3 s."""
SOFTWARE: Final = Effort(batch=10_000_000, warm=0, total=300_000_000, runs=5)


@dataclass(frozen=True)
class Times:
    """Seconds per call: the median and the least of `runs` batches of `calls` calls."""

    median: float
    least: float
    calls: int
    runs: int


def measure(prepare: Callable[[int], TimedCalls], effort: Effort, multiple: int = 1) -> Times:
    """Times the calls that `prepare(n)` makes ready, n a multiple of `multiple` (the number of input sets)."""
    with ExitStack() as stack:
        calls = multiple
        batch = stack.enter_context(closing(prepare(calls)))
        batch.run()
        took = batch.run()
        calls_needed = _calls(effort.batch, took / calls, multiple, effort.calls)
        if calls_needed > calls:
            calls = calls_needed
            batch = stack.enter_context(closing(prepare(calls)))
        took = warm(batch.run, effort.warm) if effort.warm or calls_needed > 1 else took
        # The first estimate was made on a cold clock.
        calls_needed = _calls(effort.batch, took / calls, multiple, effort.calls)
        if calls_needed > 2 * calls:
            calls = calls_needed
            batch = stack.enter_context(closing(prepare(calls)))
            took = batch.run()
        runs = max(2, min(effort.runs, round(effort.total / max(took, 1))))
        seconds = [batch.run() * 1e-9 / calls for _ in range(runs)]
    return Times(statistics.median(seconds), min(seconds), calls, runs)


def _calls(batch: int, each: float, multiple: int, most: int) -> int:
    wanted = max(1, min(most, -(-batch // max(1, int(each)))))
    return -(-wanted // multiple) * multiple


def warm(run: Callable[[], Result], least: int) -> Result:
    """Runs until the device has worked for so many nanoseconds; what the last run gave."""
    deadline = time.perf_counter_ns() + least
    while True:
        result = run()
        if time.perf_counter_ns() >= deadline:
            return result
