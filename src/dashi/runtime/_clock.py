"""Clocks of devices on the axis of the host's: `time.perf_counter_ns`."""

from __future__ import annotations

from dataclasses import dataclass


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

    def host(self, ticks: int) -> int:
        """The host's time of a timestamp, in nanoseconds."""
        return self.host_ns + round((ticks - self.ticks) * self.ns_per_tick)
