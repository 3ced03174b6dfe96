"""Where a rank computes: in a thread of its own, so that messages go on meanwhile."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dashi.stream.cluster._messages import Message


@dataclass(eq=False)
class StageJob:
    """Something to compute, and what came of it."""

    function: Callable[[], Any]
    generation: int
    message: Message | None = None
    result: Any = None
    error: BaseException | None = None
    seconds: float = 0.0

    @property
    def stage(self) -> str:
        """The stage whose error ended it."""
        return str(getattr(self.error, "stage", ""))

    def run(self) -> None:
        """Calls the function, and keeps its result or its error."""
        begin = time.perf_counter()
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        self.seconds = time.perf_counter() - begin


class Computing(ABC):
    """Runs one job at a time."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether a job was begun and not polled yet."""

    @abstractmethod
    def begin(self, job: StageJob) -> None:
        """Begins a job; only where none is under way."""

    @abstractmethod
    def poll(self) -> StageJob | None:
        """The job that ended, once."""


class ThreadComputing(Computing):
    """One thread, which sleeps while there is nothing to do. `wake` is set when a job has ended."""

    def __init__(self) -> None:
        self.wake = threading.Event()
        self._begun = threading.Event()
        self._job: StageJob | None = None
        self._ended = False
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="dashi-chain", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while True:
            self._begun.wait()
            self._begun.clear()
            if self._closing and (self._job is None or self._ended):
                return
            job = self._job
            assert job is not None
            job.run()
            self._ended = True
            self.wake.set()
            if self._closing:
                return

    @property
    def busy(self) -> bool:
        return self._job is not None

    def begin(self, job: StageJob) -> None:
        assert self._job is None
        self._job, self._ended = job, False
        self._begun.set()

    def poll(self) -> StageJob | None:
        if self._job is None or not self._ended:
            return None
        job, self._job = self._job, None
        return job

    def close(self, timeout: float) -> None:
        """Ends the thread, after the job that is under way; gives up waiting after `timeout` seconds."""
        self._closing = True
        if self._job is not None:
            deadline = time.monotonic() + timeout
            while not self._ended and time.monotonic() < deadline:
                self.wake.wait(0.01)
                self.wake.clear()
        self._begun.set()
        self._thread.join(timeout)
