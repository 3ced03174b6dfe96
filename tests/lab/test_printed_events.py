"""Events as plain lines, for notebooks: no terminal, no IPython."""

from __future__ import annotations

import io
import itertools

import pytest

from dashi.lab.events import Events
from dashi.lab.printed_events import PrintedEvents


def printed(every: float = 2.0) -> tuple[PrintedEvents, io.StringIO]:
    """Events on a clock that goes on by a second whenever it is read, and what they print."""
    stream, seconds = io.StringIO(), itertools.count()
    return PrintedEvents(stream, every=every, clock=lambda: float(next(seconds))), stream


def test_remarks_and_progress_are_lines() -> None:
    events, stream = printed()
    listener: Events = events
    listener.remark("placed on cpu", "hashing every 10 steps")
    with listener.progress("rollout", 4000, "steps") as advance:
        for _ in range(4):
            advance(1000)
    assert stream.getvalue().splitlines() == [
        "placed on cpu",
        "hashing every 10 steps",
        "rollout: 2,000 of 4,000 steps, 2 s",
        "rollout: 4,000 of 4,000 steps, 4 s",
        "rollout: 4,000 of 4,000 steps, 5 s",
    ]


def test_short_work_prints_nothing_and_totals_may_be_unknown() -> None:
    events, stream = printed(every=100)
    with events.progress("rollout", None, "steps") as advance:
        advance(3)
    assert stream.getvalue() == ""
    events, stream = printed(every=1)
    with events.progress("thinking", None, "") as advance:
        advance(0)
    assert stream.getvalue().splitlines()[0] == "thinking: 1 s"


def test_lines_go_to_the_stderr_of_the_moment(capsys: pytest.CaptureFixture[str]) -> None:
    PrintedEvents().remark("here")
    assert capsys.readouterr().err == "here\n"
