"""A program: repeats segments of a certified run, one after another, as they are asked for on standard input.

Lines are JSON. The first says what is repeated, and where; each of the others names a segment. Answers on standard
output: steps as they are done, then what was found, or an error. It ends when nobody can ask any more, at once.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

from dashi.core.certificates._certificate import Certificate
from dashi.core.certificates._certified_run import CertifiedRun
from dashi.core.certificates._segments import segments_of
from dashi.core.metrics._placement import place
from dashi.errors import DashiError, WorkerError

_Lines = SimpleQueue[bytes]


def main() -> None:
    """Answers until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    lines: _Lines = SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    try:
        _work(lines, answers)
    except (DashiError, MemoryError) as error:
        _say(answers, _error_answer(error))
        while True:  # until whoever asked has read that
            lines.get()


def _read(lines: _Lines) -> None:
    """Hands lines on; whoever asks is gone when they end, and so is the work."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


def _work(lines: _Lines, answers: IO[bytes]) -> None:
    asked: dict[str, Any] = json.loads(lines.get())
    certificate = Certificate.model_validate_json(json.dumps(asked["certificate"]))
    inputs = asked["inputs"]
    run = CertifiedRun.open(certificate, Path(asked["folder"]), None if inputs is None else Path(inputs))
    segments = segments_of(certificate)
    with place(
        asked["device"], allow_fallback=asked["allow_fallback"], require_gpu=asked["require_gpu"]
    ) as placed:  # fmt: skip
        while True:
            number: int = json.loads(lines.get())["segment"]
            segment = segments[number]
            check = run.check(segment, placed.device, lambda steps: _say(answers, {"steps": steps}))
            _say(answers, {"check": asdict(check)})


def _error_answer(error: DashiError | MemoryError) -> Mapping[str, Any]:
    if isinstance(error, DashiError):
        return {"error": [type(error).__name__, error.what, error.fix]}
    return {"error": [WorkerError.__name__, "there is not enough memory for a segment.", "use fewer `jobs=`."]}


def _say(answers: IO[bytes], answer: Mapping[str, Any]) -> None:
    try:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
