"""Segments of a certified run, repeated by several processes at the same time.

Each process has a device of its own and is given one segment after another, in their order. What comes of them is what
one process would have found: the first segment that differs, or that cannot be repeated, ends the work, and those
before it are waited for.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final, Self

from dashi.core.certificates._segments import CertifiedSegment
from dashi.core.certificates._verify import Check, Difference
from dashi.errors import DashiError, Interrupted, WorkerError
from dashi.lab._child_processes import error_of, start_child
from dashi.lab._job import uninterruptible

_COMMAND: Final = ("-P", "-m", "dashi.lab._segment_worker")
_LAST_WORDS: Final = 2000
_Outcome = Check | DashiError


@dataclass(frozen=True, kw_only=True)
class Errand:
    """What every process is told first."""

    certificate: Mapping[str, Any]
    folder: str
    inputs: str | None
    allow_fallback: bool
    require_gpu: bool


def check_apart(
    errand: Errand, segments: Sequence[CertifiedSegment], devices: Sequence[str], jobs: int,
    advance: Callable[[int], object],
) -> list[Check]:  # fmt: skip
    """The checks of segments, in their order, up to the first that differs, by so many processes on these devices in
    turn. Raises what the first segment raised that could not be repeated. Ctrl-C raises Interrupted; no process is left
    behind, whatever the end is."""
    try:
        with SegmentFarm(errand, devices, jobs) as farm:
            return farm.check(segments, advance)
    except KeyboardInterrupt as stop:
        raise Interrupted from stop


class SegmentFarm:
    """Processes that repeat segments."""

    def __init__(self, errand: Errand, devices: Sequence[str], jobs: int) -> None:
        self._errand, self._devices, self._jobs = errand, devices, jobs
        self._answers: SimpleQueue[tuple[_Worker, Any]] = SimpleQueue()
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        try:
            for number in range(self._jobs):
                device = self._devices[number % len(self._devices)]
                with uninterruptible():
                    self._workers.append(_Worker(device, self._jobs, self._answers))
            for worker in self._workers:  # all of them start meanwhile
                worker.begin(self._errand)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def check(self, segments: Sequence[CertifiedSegment], advance: Callable[[int], object]) -> list[Check]:
        """What comes of segments, in their order."""
        outcomes: dict[int, _Outcome] = {}
        asked, settled, end = 0, 0, len(segments)
        for worker in self._workers:
            if asked < end:
                worker.ask(asked, segments[asked])
                asked += 1
        while settled < end:
            worker, answer = self._answers.get()
            if answer is not None and "steps" in answer:
                advance(answer["steps"])
                continue
            at = worker.asked
            if at is None:
                continue  # it ended with nothing to do
            outcome = outcomes[at] = _ended(worker, segments[at]) if answer is None else _made_of(answer)
            worker.asked = None
            if isinstance(outcome, DashiError) or outcome.difference is not None:
                end = min(end, at + 1)  # no more than was asked for: nobody is asked after an error
            while settled in outcomes:
                settled += 1
            if asked < end:
                worker.ask(asked, segments[asked])
                asked += 1
        return _in_order([outcomes[at] for at in range(end)])

    def _close(self) -> None:
        with uninterruptible():
            for worker in self._workers:
                worker.kill()
            for worker in self._workers:
                worker.wait()


class _Worker:
    """A process, and the thread that reads its answers; after the last comes None."""

    def __init__(self, device: str, jobs: int, answers: SimpleQueue[tuple[_Worker, Any]]) -> None:
        self.device = device
        self.asked: int | None = None
        """The place of the segment that it is at, in their order."""
        try:
            self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        except OSError as error:
            raise WorkerError(f"a process cannot be started: {error.strerror}.", "use fewer `jobs=`.") from error
        try:
            self._process = start_child(_COMMAND, jobs, failed=WorkerError, stderr=self._words)
        except BaseException:
            self._words.close()
            raise
        self._thread = threading.Thread(target=self._read, args=(answers,), name="dashi segments", daemon=True)
        self._thread.start()

    def begin(self, errand: Errand) -> None:
        """Tells it what is repeated."""
        self._send({**vars(errand), "device": self.device})

    def ask(self, at: int, segment: CertifiedSegment) -> None:
        """Has a segment repeated, which is at this place of all."""
        self.asked = at
        self._send({"segment": segment.number})

    def kill(self) -> None:
        """Ends it, whatever it is at."""
        self._process.kill()

    def wait(self) -> None:
        """Until it is gone, and nothing of it is left here."""
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._words):
            with contextlib.suppress(OSError):
                pipe.close()  # pyright: ignore[reportOptionalMemberAccess] - there are pipes

    def ending(self) -> str:
        """How it ended by itself."""
        code = self._process.wait()
        self._words.seek(0)
        lines = self._words.read()[-_LAST_WORDS:].decode(errors="replace").strip().splitlines()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return how + (f" ({lines[-1].strip()})" if lines else "")

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # that it is gone is told where its answers end
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def _read(self, answers: SimpleQueue[tuple[_Worker, Any]]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):  # cut short, by a process that ended
                answers.put((self, json.loads(line)))
        answers.put((self, None))


def _made_of(answer: Mapping[str, Any]) -> _Outcome:
    """What an answer says: a check, or the error that there was."""
    if "check" in answer:
        fields = dict(answer["check"])
        difference = fields.pop("difference")
        return Check(**fields, difference=Difference(**difference) if difference else None)
    return error_of(*answer["error"])


def _ended(worker: _Worker, segment: CertifiedSegment) -> WorkerError:
    return WorkerError(
        f"the process that repeated steps {segment.first} to {segment.last} on {worker.device} {worker.ending()}.",
        "run it again, with fewer `jobs=` if memory was short.",
    )


def _in_order(outcomes: Sequence[_Outcome]) -> list[Check]:
    checks: list[Check] = []
    for outcome in outcomes:
        if isinstance(outcome, DashiError):
            raise outcome
        checks.append(outcome)
    return checks
