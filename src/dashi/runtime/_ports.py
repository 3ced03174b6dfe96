"""Queues of the driver, as queues of ours use them: what is submitted goes there at once, or together."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawSubmission, Waits

if TYPE_CHECKING:
    from dashi.runtime._sync import Queue


class Port:
    """A queue of the driver, and the queues of ours that use it: one, or several where the driver has too few."""

    def __init__(self, raw: RawDevice, family: int, index: int) -> None:
        self.handle = raw.queue(family, index)
        self.family = family
        self.lock = threading.RLock()
        self.users: dict[int, Queue] = {}
        self.gatherer = 0
        """The thread whose submissions are gathered."""
        self.gathered: list[RawSubmission] = []

    def submit(self, submission: RawSubmission, value: int, waits: Waits) -> None:
        """Submits; where a thread gathers, gathers its submission, or takes along what it gathered. Callers hold the
        lock."""
        if not self.gatherer:
            submission.submit(self.handle, value, waits)
            return
        if any(submission is other for other in self.gathered):  # it has one set of numbers
            self.flush()
        submission.prepare(value, waits)
        self.gathered.append(submission)
        if self.gatherer != threading.get_ident():
            self.flush()

    @contextmanager
    def together(self) -> Generator[None]:
        """What the calling thread submits meanwhile goes to the driver in one call: at the end, or before somebody
        waits for it, or when another thread submits. Where another gathers already, nothing is."""
        me = threading.get_ident()
        with self.lock:
            mine = not self.gatherer
            self.gatherer = self.gatherer or me
        try:
            yield
        finally:
            if mine:
                with self.lock:
                    self.gatherer = 0
                    self.flush()

    def flush(self) -> None:
        """Submits what was gathered, in its order. If that fails, so has all work that is waited for."""
        with self.lock:
            gathered, self.gathered = self.gathered, []
            if not gathered:
                return
            try:
                gathered[0].together(self.handle, gathered[1:])
            except BaseException as error:
                for queue in self.users.values():
                    queue.fail(error)
                raise

    def forget(self) -> None:
        """Drops what was gathered: the device closes. Callers hold the lock."""
        self.gathered.clear()
