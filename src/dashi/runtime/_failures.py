"""Errors of work that nobody was told of yet: each is raised once, by whoever asks next."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
from typing import Protocol


class Failure(Protocol):
    """Work that may fail. `reported` says that somebody got the error, so that nobody else needs to."""

    error: BaseException | None
    reported: bool

    @property
    def queue(self) -> Hashable: ...

    @property
    def number(self) -> int:
        """The place in the queue: what comes later has a greater one."""
        ...


class UntoldFailures:
    """Work of a device that failed, and nobody was told; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.listed: list[Failure] = []
        """The oldest first. Whoever finds it empty need not ask further."""

    def add(self, failure: Failure, cause: Failure | None = None) -> None:
        """Somebody is to be told, unless that was so already: of it, or of the work whose error it has taken over."""
        with self._lock:
            if failure.reported or (cause is not None and cause.reported):
                failure.reported = True
            else:
                self.listed.append(failure)

    def forget(self, failure: Failure) -> None:
        """Somebody was told of the error of this work: of others that have the same error, too."""
        with self._lock:
            failure.reported = True
            for other in self.listed:
                other.reported = other.reported or other.error is failure.error
            self._drop_reported()

    def raise_next(self) -> None:
        """Raises the oldest of the errors that nobody was told of."""
        with self._lock:
            self._drop_reported()  # another device's ticket may have told of it
            if not self.listed:
                return
            failure = self.listed[0]
            self.forget(failure)
        if failure.error is not None:
            raise failure.error

    def raise_before(self, places: Iterable[tuple[Hashable, int]]) -> None:
        """Raises the oldest of the errors that nobody was told of, of work up to a place in one of the queues: whoever
        comes after it there may have read what it should have written."""
        with self._lock:
            self._drop_reported()
            last = dict(places)
            failure = next((f for f in self.listed if f.number <= last.get(f.queue, -1)), None)
            if failure is None:
                return
            self.forget(failure)
        if failure.error is not None:
            raise failure.error

    def _drop_reported(self) -> None:
        self.listed[:] = [failure for failure in self.listed if not failure.reported]

    def after_fork(self) -> None:
        """In a child process whoever held the lock is gone."""
        self._lock = threading.RLock()
