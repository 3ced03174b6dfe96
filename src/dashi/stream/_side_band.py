"""What looks on: observers and snapshots, in a thread beside the chain; they see what they asked for, in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

_QUEUE: Final = 8
"""Results that may wait for observers; then the stages that they look at wait too."""


@dataclass(frozen=True, eq=False)
class SideTask:
    """`call(item, value)` for each `every`-th result of a stage, by its id or number, from item 0 on. `label` is its
    name in errors."""

    after: int | str
    every: int
    call: Callable[[int, Any], None]
    label: str


class SideBand:
    """The thread that observers run in, if there are any. `lock` is the run's: two locks, of which a thread takes one
    while it has the other, could be taken in either order."""

    def __init__(
        self, tasks: Sequence[SideTask], failed: Callable[[SideTask, int, BaseException], None], lock: threading.RLock
    ) -> None:
        self._tasks = [*tasks]
        self._failed = failed
        self._changed = threading.Condition(lock)
        self._queue: deque[tuple[SideTask, int, Any]] = deque()
        self._stopping = False
        self.threads: list[threading.Thread] = []

    def start(self) -> None:
        """Starts the thread, where somebody looks on."""
        if self._tasks:
            thread = threading.Thread(target=self._serve, name="dashi-stream-observers", daemon=True)
            thread.start()
            self.threads.append(thread)

    def of(self, stage: int, item: int) -> list[SideTask]:
        """Who looks at this result of a stage."""
        return [task for task in self._tasks if task.after == stage and item % task.every == 0]

    def show(self, task: SideTask, item: int, value: Any) -> None:
        """Puts a result into the queue; blocks while it is full."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._queue) < _QUEUE or self._stopping)
            if not self._stopping:
                self._queue.append((task, item, value))
                self._changed.notify_all()

    def stop(self, *, drop: bool) -> None:
        """Takes nothing more; what waits is dropped, or still looked at."""
        with self._changed:
            self._stopping = True
            if drop:
                self._queue.clear()
            self._changed.notify_all()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopping)
                if not self._queue:
                    return
                task, item, value = self._queue.popleft()
                self._changed.notify_all()
            try:
                task.call(item, value)
            except BaseException as error:  # whoever pops gets it
                self.stop(drop=True)
                self._failed(task, item, error)
                return
            del value
