"""The memory of a stage that has one: what was saved of it, and the items since; another can go on from there."""

from __future__ import annotations

from collections import deque
from typing import Any

from dashi.stream._worker import Worker


class StageMemory:
    """States of a worker's memory by the number of items that they have seen, and the inputs since the oldest. Bounded:
    two saves and the items between them, and those that are on their way to the next stage."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._saves: deque[tuple[int, Any]] = deque()
        self._inputs: deque[tuple[int, Any]] = deque()

    def keep(self, item: int, value: Any, delivered: int) -> None:
        """An item was computed, of which the next stage has those below `delivered`."""
        worker = self._worker
        if worker.save is None:
            return
        self._inputs.append((item, value))
        if (item + 1) % worker.save_every == 0:
            self._saves.append((item + 1, worker.save()))
        while len(self._saves) > 1 and self._saves[1][0] <= delivered:
            self._saves.popleft()
        while self._inputs and self._inputs[0][0] < self._saves[0][0]:
            self._inputs.popleft()

    def load(self, worker: Worker, item: int) -> None:
        """Brings a worker to where it has seen the items below `item`."""
        self._worker = worker
        if worker.save is None or worker.load is None or worker.compute is None:
            return
        if not self._saves:
            self._saves.append((item, worker.save()))
            return
        while self._saves[-1][0] > item:
            self._saves.pop()
        while self._inputs and self._inputs[-1][0] >= item:
            self._inputs.pop()
        since, memory = self._saves[-1]
        worker.load(memory)
        for number, value in self._inputs:
            if number >= since:
                worker.compute(value)
