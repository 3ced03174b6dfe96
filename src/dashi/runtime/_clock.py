"""Clocks of devices on the axis of the host's, `time.perf_counter_ns`, and the times of runs by them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple


def nanoseconds(ticks: int, ns_per_tick: float) -> int:
    """Ticks of a clock in nanoseconds, in whole numbers: floats lose those of clocks that count from long ago."""
    numerator, denominator = ns_per_tick.as_integer_ratio()
    return (ticks * numerator + denominator // 2) // denominator


@dataclass(frozen=True)
class Clock:
    """How the timestamps of a device relate to `time.perf_counter_ns`: at `host_ns` the device's clock read `ticks`,
    give or take `deviation_ns`. `calibrated` is what the driver itself says of both clocks at one moment; without that
    the two were read one after another."""

    host_ns: int
    ticks: int
    ns_per_tick: float
    deviation_ns: int
    calibrated: bool

    def host(self, device_ns: int) -> int:
        """The host's time of a moment on the device's clock, both in nanoseconds."""
        return self.host_ns + device_ns - nanoseconds(self.ticks, self.ns_per_tick)


class StepSpan(NamedTuple):
    """When a step of a run was under way, in nanoseconds on the device's own clock: from the end of all that stands
    before it in the recording to its own end. What a program is fed is the step "feed", what it fetches "fetch"."""

    label: str
    start_ns: int
    end_ns: int


class RunTimes(NamedTuple):
    """When a run was under way, in nanoseconds on the device's own clock, and each of its steps, where they were
    timed."""

    start_ns: int
    end_ns: int
    steps: tuple[StepSpan, ...] | None


class HostStopwatch:
    """Times of a run by the host's clock, which is that of a device that computes there."""

    def __init__(self, by_step: bool) -> None:
        self._steps: list[StepSpan] | None = [] if by_step else None
        self._start = self._now = time.perf_counter_ns()

    def lap(self, label: str | None) -> None:
        """The end of a step; without a label, of nothing that counts as one."""
        before, self._now = self._now, time.perf_counter_ns()
        if label is not None and self._steps is not None:
            self._steps.append(StepSpan(label, before, self._now))

    def times(self) -> RunTimes:
        """When the run began and, so far, ended; and its steps, where they are timed."""
        return RunTimes(self._start, self._now, None if self._steps is None else tuple(self._steps))
