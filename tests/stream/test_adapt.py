"""Never stall the strongest device: what is decided from measured times, and that chains are changed without harm."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dashi.stream import Pipeline, Worker, WorkerOp
from dashi.stream._adapt import ChainTimes, decide

NAMES = ["a", "b", "c"]
CALM = ChainTimes(
    compute=[2e-3, 3e-3, 4e-3],
    transfer=[1e-3, 1e-3],
    windows=[3, 3],
    widest=[8, 8],
    starved=0.0,
    lighter=[False, False],
    movable=[None, None, None],
)


def sleep(seconds: float) -> Callable[[Any], Any]:
    def call(item: Any) -> Any:
        time.sleep(seconds)
        return item

    return call


def test_a_sink_that_does_not_starve_needs_nothing() -> None:
    assert decide(CALM, NAMES) is None
    assert decide(replace(CALM, starved=0.02), NAMES) is None
    assert decide(replace(CALM, compute=[1.0], transfer=[], windows=[], widest=[], starved=1.0), ["a"]) is None


def test_a_window_that_holds_the_chain_up_is_raised_first() -> None:
    seen = replace(CALM, windows=[1, 1], starved=0.5, lighter=[True, True], movable=[None, 1e-3, 1e-3])
    decision = decide(seen, NAMES)
    assert decision is not None
    assert (decision.action, decision.at) == ("widen", 1)
    assert decision.reason == "c starved 50% of the time; a slot of b->c is in use for 8 ms an item: window 1 -> 2"


def test_fluctuations_are_met_with_a_wider_window_too() -> None:
    decision = decide(replace(CALM, starved=0.1), NAMES)  # on average the sink has always something to do
    assert decision is not None
    assert (decision.action, decision.at) == ("widen", 1)
    assert decide(replace(CALM, starved=0.1, widest=[3, 3]), NAMES) is None


def test_a_slow_transfer_carries_less_where_that_is_allowed() -> None:
    slow = replace(CALM, transfer=[9e-3, 1e-3], windows=[8, 8], starved=0.5)
    assert decide(slow, NAMES) is None
    decision = decide(replace(slow, lighter=[True, True]), NAMES)
    assert decision is not None
    assert (decision.action, decision.at) == ("shrink", 0)
    assert decision.reason == (
        "c starved 50% of the time; a->b transfers for 9 ms an item, the longest of all: it carries less from now on"
    )


def test_work_moves_to_the_left_where_the_chain_gets_faster() -> None:
    slow = replace(CALM, compute=[2e-3, 10e-3, 4e-3], windows=[8, 8], starved=0.5)
    decision = decide(replace(slow, movable=[None, 5e-3, None]), NAMES)
    assert decision is not None
    assert (decision.action, decision.at) == ("move", 1)
    assert decision.reason == (
        "c starved 50% of the time; b is slower than a: its first op moves there, 10 -> 7 ms an item"
    )
    assert decide(replace(slow, movable=[None, 9.5e-3, None]), NAMES) is None  # then a would be as slow


def decisions(pipeline: Pipeline) -> list[tuple[str, str]]:
    return [(event.kind, event.place) for event in pipeline.report().events]


def test_a_running_chain_gets_wider_windows() -> None:
    stages = [Worker(name, compute=sleep(0.002), transfer=sleep(0.004)) for name in "ab"]
    with Pipeline([*stages, Worker("c", compute=sleep(0.002))], window=1, adapt=True, max_window=4) as pipeline:
        assert list(pipeline.run(range(150))) == [*range(150)]
        report = pipeline.report()
    assert ("widen", "a") in decisions(pipeline)
    assert ("widen", "b") in decisions(pipeline)
    assert all(1 < link.window <= 4 for link in report.links[1:3])
    assert [link.window for link in (report.links[0], report.links[-1])] == [1, 1]
    assert "c starved " in report.events[0].text


def test_a_running_chain_carries_less_only_if_it_may_be_lossy() -> None:
    def lighter(item: float) -> float:
        return round(item)

    def run(lossy: bool) -> tuple[list[float], list[tuple[str, str]]]:
        first = Worker("a", compute=float, transfer=sleep(0.003), lighter=lighter)
        with Pipeline([first, lambda item: item + 0.25], adapt=True, max_window=3, lossy=lossy) as pipeline:
            return list(pipeline.run(k + 0.5 for k in range(80))), decisions(pipeline)

    exact, none = run(lossy=False)
    assert exact == [k + 0.75 for k in range(80)]
    assert none == []
    lossy, shrunk = run(lossy=True)
    assert shrunk == [("shrink", "a")]
    assert lossy[:32] == exact[:32]
    assert lossy[-1] == round(79.5) + 0.25


def test_a_running_chain_moves_ops_and_computes_the_same() -> None:
    def op(name: str, seconds: float, **more: Any) -> WorkerOp:
        def call(trail: str) -> str:
            time.sleep(seconds)
            return f"{trail}{name}"

        return WorkerOp(name, call, **more)

    def run(**more: Any) -> tuple[list[str], list[tuple[str, str]]]:
        stages = [
            Worker("s0", ops=(op("a", 0.001),), max_depth=1),
            Worker("s1", ops=(op("b", 0.003, **more), op("c", 0.003)), max_depth=2),
            Worker("s2", ops=(op("d", 0.001),)),
        ]
        with Pipeline(stages, adapt=True, max_window=3) as pipeline:
            return list(pipeline.run(f"{k} " for k in range(80))), decisions(pipeline)

    expected = [f"{k} abcd" for k in range(80)]
    assert run() == (expected, [("move", "s1")])
    assert run(migratable=False) == (expected, [])
    assert run(depth_out=2) == (expected, [])  # rule R2: too deep for s0


def test_an_op_that_cannot_move_stays_and_no_item_is_lost() -> None:
    def slow(item: int) -> int:
        time.sleep(0.003)
        return item

    def bind(device: str) -> Callable[[Any], Any]:
        raise OSError(f"no kernel for {device}")

    stages = [
        Worker("s0", ops=(WorkerOp("a", lambda item: item),), device="left"),
        Worker("s1", ops=(WorkerOp("b", slow, bind=bind), WorkerOp("c", slow))),
        Worker("s2", ops=(WorkerOp("d", lambda item: item),)),
    ]
    with Pipeline(stages, adapt=True, max_window=3) as pipeline:
        assert list(pipeline.run(range(80))) == [*range(80)]
        events = pipeline.report().events
    assert {(event.kind, event.place) for event in events} == {("not moved", "s1")}
    assert all(event.text.endswith("OSError: no kernel for left") for event in events)


@pytest.mark.parametrize("adapt", [False, True])
def test_a_window_never_grows_unasked(adapt: bool) -> None:
    with Pipeline([sleep(0.001), sleep(0.0)], window=1, adapt=adapt, max_window=1) as pipeline:
        assert list(pipeline.run(range(70))) == [*range(70)]
        assert [link.capacity for link in pipeline.report().links] == [1, 1, 1]
        assert not decisions(pipeline)
