"""What is counted while a chain runs: items, seconds of work and of waiting by reason, and how full links were."""

from __future__ import annotations

import time
from typing import Literal

Wait = Literal["", "starved", "blocked", "observing", "restarting", "ahead"]
"""Why a stage does nothing: its input link is empty, its output link is full, an observer is behind, it begins anew;
or, which is no stall, its device has as much work ahead as it may."""


class StageTally:
    """Counts of one stage. Whoever calls holds the lock of the chain."""

    def __init__(self) -> None:
        self.items_in = 0
        self.items_out = 0
        self.compute_seconds = 0.0
        self.transfer_seconds = 0.0
        self.restarts = 0
        self._waits: dict[Wait, float] = {"starved": 0.0, "blocked": 0.0, "observing": 0.0, "restarting": 0.0}
        self._why: Wait = ""
        self._since = 0.0

    def waits_for(self, why: Wait) -> None:
        """From now on it waits for this; "" means that it works."""
        if why == self._why:
            return
        now = time.perf_counter()
        if self._why in self._waits:
            self._waits[self._why] += now - self._since
        self._why, self._since = why, now

    @property
    def why(self) -> Wait:
        return self._why

    @property
    def since(self) -> float:
        """Since when, on the clock of `time.perf_counter`."""
        return self._since

    def waited(self, why: Wait) -> float:
        """Seconds of waiting for that reason so far, those of now too."""
        running = time.perf_counter() - self._since if self._why == why else 0.0
        return self._waits[why] + running


class LinkTally:
    """How many slots of a link were in use, on average and at most."""

    def __init__(self) -> None:
        self.most = 0
        self._used = 0
        self._area = 0.0
        self._start = self._since = time.perf_counter()

    def use(self, slots: int) -> None:
        """From now on so many slots are in use."""
        now = time.perf_counter()
        self._area += self._used * (now - self._since)
        self._used, self._since = slots, now
        self.most = max(self.most, slots)

    @property
    def mean(self) -> float:
        """Slots in use, averaged over time."""
        now = time.perf_counter()
        spent = now - self._start
        return (self._area + self._used * (now - self._since)) / spent if spent > 0 else 0.0
