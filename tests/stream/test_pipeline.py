"""Pipelines of plain callables: order, windows, backpressure, ends, reports."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.errors import ClosedError, InputError, StalledError, StreamError, StreamRuleError
from dashi.stream import ChainReport, ItemSlots, Pipeline, State, Worker, observe


def same(item: Any) -> Any:
    return item


def after(seconds: float) -> Callable[[Any], Any]:
    def call(item: Any) -> Any:
        time.sleep(seconds)
        return item

    return call


class Later:
    """Work that a device does by itself: done at a time."""

    def __init__(self, end: float, result: Any) -> None:
        self.end, self.result = end, result

    def wait(self) -> Any:
        time.sleep(max(0.0, self.end - time.perf_counter()))
        return self.result


def until(condition: Callable[[], bool]) -> None:
    """Returns when it holds: threads take their time on a busy machine."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


# Order and results


def test_results_are_those_of_the_functions_in_order() -> None:
    with Pipeline([lambda x: x + 1, lambda x: 2 * x]) as pipeline:
        assert list(pipeline.run(range(100))) == [2 * (x + 1) for x in range(100)]
        assert pipeline.done


@settings(max_examples=25)
@given(
    windows=st.lists(st.integers(1, 4), min_size=2, max_size=5),
    n=st.integers(0, 30),
    transfers=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_order_holds_whatever_the_windows_and_delays(windows: list[int], n: int, transfers: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    delays = rng.integers(0, 2, (len(windows), 64)) * 2e-4

    def stage(number: int) -> Worker:
        def compute(item: list[int]) -> list[int]:
            time.sleep(delays[number, item[0]])
            return [*item, number]

        return Worker(f"s{number}", compute=compute, transfer=list if transfers else None)

    stages = [stage(number) for number in range(len(windows) - 1)]
    with Pipeline(stages, windows=dict(enumerate(windows))) as pipeline:
        results = list(pipeline.run([[k] for k in range(n)]))
    assert results == [[k, *range(len(stages))] for k in range(n)]


def test_push_and_pop_from_two_threads() -> None:
    results: list[int] = []
    with Pipeline([same, same], window=2) as pipeline:

        def feed() -> None:
            for k in range(200):
                pipeline.push(k)
            pipeline.end_input()

        thread = threading.Thread(target=feed)
        thread.start()
        results.extend(pipeline)
        thread.join()
    assert results == [*range(200)]


def test_join_returns_what_was_not_popped() -> None:
    pipeline = Pipeline([same], window=8)
    for k in range(6):
        pipeline.push(k)
    assert pipeline.pop() == 0
    assert pipeline.join() == [1, 2, 3, 4, 5]
    assert pipeline.join() == []
    assert pipeline.try_pop() is None
    assert pipeline.done
    pipeline.stop()


def test_stop_drops_what_is_in_the_chain_unless_it_is_drained() -> None:
    dropped = Pipeline([after(0.01)], window=8).start()
    drained = Pipeline([after(0.01)], window=8).start()
    for k in range(5):
        dropped.push(k)
        drained.push(k)
    assert dropped.stop() == []
    assert drained.stop(drain=True) == [0, 1, 2, 3, 4]
    assert drained.stop() == []


def test_a_stage_may_submit_ahead() -> None:
    most, lock, under_way = 0, threading.Lock(), 0

    class Counted(Later):
        def wait(self) -> Any:
            nonlocal under_way
            result = super().wait()
            with lock:
                under_way -= 1
            return result

    def submit(item: int, slots: ItemSlots) -> Counted:
        nonlocal most, under_way
        assert slots == ItemSlots(item, item % 3, item % 3)
        with lock:
            under_way += 1
            most = max(most, under_way)
        return Counted(time.perf_counter() + 0.002, item + 1)

    with Pipeline([Worker("device", submit=submit, ahead=2), same]) as pipeline:
        assert list(pipeline.run(range(30))) == [*range(1, 31)]
    assert most == 2


def test_a_slot_is_not_reused_while_its_consumer_reads() -> None:
    ring: list[int | None] = [None] * 3
    errors: list[str] = []

    def write(item: int, slots: ItemSlots) -> Later:
        ring[slots.target] = item
        return Later(time.perf_counter() + 0.001, slots.target)

    def read(slot: int, slots: ItemSlots) -> Later:
        assert slot == slots.source
        looked_at = ring[slot]
        time.sleep(0.002)
        if ring[slot] != looked_at or looked_at != slots.item:
            errors.append(f"item {slots.item}: {looked_at} became {ring[slot]}")
        return Later(0.0, looked_at)

    with Pipeline([Worker("a", submit=write, ahead=3), Worker("b", submit=read, ahead=1)]) as pipeline:
        assert list(pipeline.run(range(40))) == [*range(40)]
    assert not errors


# Windows and backpressure


def test_windows_bound_what_is_in_the_chain() -> None:
    with Pipeline([same, same], window=2) as pipeline:
        for k in range(6):  # two on each of the three links
            pipeline.push(k)
        until(lambda: pipeline.report().links[0].used == 2)
        assert not pipeline.try_push(6)
        until(lambda: all(stage.now.startswith("blocked") for stage in pipeline.report().stages))
        report = pipeline.report()
        assert [(link.name, link.window, link.used, link.most_used) for link in report.links] == [
            ("source->same0", 2, 2, 2),
            ("same0->same1", 2, 2, 2),
            ("same1->sink", 2, 2, 2),
        ]
        assert [stage.now for stage in report.stages] == [
            "blocked: same0->same1 is full (2 of 2)",
            "blocked: same1->sink is full (2 of 2)",
        ]


def test_pushing_everything_before_popping_is_an_error_that_says_who_should_pop() -> None:
    with Pipeline([same, same], timeout=0.2) as pipeline, pytest.raises(StalledError) as caught:
        [pipeline.push(k) for k in range(100)]
    assert str(caught.value) == (
        "push waited 0.2 s: the last link (same1->sink) is full: items 0 to 2 are there and nobody pops them "
        "('same0': blocked: same0->same1 is full (3 of 3); 'same1': blocked: same1->sink is full (3 of 3)). Fix: pop "
        "results while you push (try_pop(), or `for result in pipeline.run(items)`), from the same thread or another."
    )


def test_waiting_for_what_was_not_pushed_is_an_error_that_says_so() -> None:
    with Pipeline([same]) as pipeline, pytest.raises(StalledError) as caught:
        pipeline.pop(timeout=0.05)
    assert str(caught.value) == (
        "pop waited 0.05 s: nothing is in the chain: source->same is empty ('same': starved: source->same is empty). "
        "Fix: push an item, or say that no more come: join(), end_input()."
    )


def test_a_stage_that_takes_too_long_is_named() -> None:
    go, begun = threading.Event(), threading.Event()

    def slow(item: int) -> int:
        begun.set()
        go.wait(5)
        return item

    with Pipeline([same, slow]) as pipeline:
        pipeline.push(0)
        begun.wait(5)
        with pytest.raises(StalledError, match=r"'slow' is still at work, full: no link .*'slow': item 0 is computed"):
            pipeline.pop(timeout=0.1)
        with pytest.raises(StalledError, match=r"stage 'slow' has not ended 0.1 s after it was told to"):
            pipeline.stop(timeout=0.1)
        go.set()


# States


def test_states_go_deeper_along_the_chain() -> None:
    def deeper(state: State) -> State:
        return replace(state, semantic_depth=state.semantic_depth + 1)

    with Pipeline([deeper, deeper]) as pipeline:
        states = list(pipeline.run(State(k, {"z": np.zeros(2)}) for k in range(4)))
    assert [(state.step, state.semantic_depth) for state in states] == [(k, 2) for k in range(4)]


def test_a_state_that_loses_depth_breaks_rule_1() -> None:
    def back(state: State) -> State:
        return replace(state, semantic_depth=0) if state.step == 2 else state

    states = [State(k, {"z": np.zeros(2)}, semantic_depth=1) for k in range(4)]
    worker = Worker("x", compute=back, device="gpu0", restarts=5)
    with pytest.raises(StreamRuleError) as caught, Pipeline([worker]) as pipeline:
        list(pipeline.run(states))
    assert (caught.value.rule, caught.value.device) == ("R1 monotone depth", "gpu0")
    assert str(caught.value) == (
        "R1 monotone depth: stage 'x' was given a State of semantic depth 1 and returned one of 0 for item 2. Fix: let "
        "a stage keep the depth of its States, or raise it: run this op in an earlier stage."
    )


# Bad input

AnyPipeline: Any = Pipeline
AnyWorker: Any = Worker


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Pipeline([]), "a pipeline without stages does nothing. Fix: pass at least one function of an item."),
        (lambda: AnyPipeline([3]), "stage 0 is 3, which cannot be called. Fix: pass a function of one item"),
        (
            lambda: Pipeline([same], window=0),
            "`window=` is 0; a link needs room for one item at least. Fix: pass",
        ),
        (lambda: AnyPipeline([same], window=1.5), "`window=` is 1.5; "),
        (lambda: Pipeline([same], windows={0: 0}), "`windows=` of 0 is 0; "),
        (
            lambda: Pipeline([same], windows={"a->b": 2}),
            "`windows=` names the link 'a->b', which joins no neighbours.",
        ),
        (lambda: Pipeline([same], windows={2: 2}), "name one of source->same, same->sink, or a number below 2."),
        (lambda: Pipeline([same], max_window=0), "`max_window=` is 0"),
        (lambda: Pipeline([same], timeout=0), "`timeout=` 0 is no time. Fix: pass seconds above 0."),
        (
            lambda: AnyPipeline([same], on_error="ignore"),
            "`on_error=` 'ignore' is no way to end. Fix: pass",
        ),
        (
            lambda: Pipeline([same], observers=[observe("b", print)]),
            "'print' looks at stage 'b', which there is not.",
        ),
        (lambda: observe(0, print, every=0), "`every=` 0 is no stride. Fix: pass a whole number from 1 on."),
        (lambda: Worker("w"), "stage 'w' has nothing to do. Fix: give it one of three: `compute=`"),
        (lambda: AnyWorker("w", compute=same, submit=same), "stage 'w' has `compute=` and `submit=`. Fix: give it"),
        (
            lambda: Worker("w", compute=same, ahead=0),
            "`ahead=` 0 of stage 'w' is no depth. Fix: pass a number",
        ),
        (lambda: Worker("w", compute=same, restarts=-1), "stage 'w' has `restarts=-1` and `save_every=1`. Fix"),
        (
            lambda: Worker("w", compute=same, save=dict),
            "stage 'w' has a memory, but not all of `compute=`, `save=",
        ),
    ],
)
def test_what_makes_no_pipeline_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert text in str(caught.value)


def test_none_is_no_item() -> None:
    with (
        Pipeline([same]) as pipeline,
        pytest.raises(InputError, match="None is no item: it says that nothing is"),
    ):
        pipeline.push(None)


def test_nothing_is_pushed_after_join_nor_popped_after_stop() -> None:
    pipeline = Pipeline([same])
    pipeline.push(1)
    pipeline.join()
    with pytest.raises(ClosedError, match=r"an item was pushed after join\(\). Fix: push before join\(\)"):
        pipeline.push(2)
    with pytest.raises(StreamError, match=r"every result was popped, and no more items come. Fix: stop where `done`"):
        pipeline.pop()
    pipeline.stop()
    for call in (pipeline.pop, pipeline.try_pop, pipeline.end_input, lambda: pipeline.push(3), pipeline.join):
        with pytest.raises(ClosedError, match=r"this pipeline was stopped. Fix: make another one"):
            call()


# Reports and those who look on


def test_a_report_has_items_seconds_and_stalls() -> None:
    with Pipeline([Worker("a", compute=after(0.01), transfer=after(0.005), device="cpu"), after(0.02)]) as pipeline:
        assert len(list(pipeline.run(range(12)))) == 12
    report = pipeline.report()
    first, second = report.stages
    assert (first.items_in, first.items_out, second.items_in, second.items_out) == (12, 12, 12, 12)
    assert (report.items_in, report.items_out) == (12, 12)
    assert first.compute_seconds >= 0.12
    assert first.transfer_seconds >= 0.06
    assert second.compute_seconds >= 0.24
    assert first.blocked_seconds > 0.03  # by the slower stage behind it
    assert second.starved_seconds > 0.01  # until the first item came
    assert math.isclose(second.rate, 12 / report.seconds)
    assert 0 < second.busy <= 1
    assert 0 < report.links[1].mean_used <= 3
    assert "a on cpu: 12 items, " in str(report)
    assert "blocked by a->call " in str(report)
    assert report.as_json()["stages"][1]["link_in"] == "a->call"
    time.sleep(0.05)
    assert pipeline.report().seconds == report.seconds  # its clock stands


class Device:
    """A callable that only submits: its own clock knows how long it computed."""

    device_seconds = 0.0
    closed = 0
    id = "gpu0"

    def __call__(self, item: int) -> int:
        self.device_seconds += 0.5
        return item

    def close(self) -> None:
        self.closed += 1


def test_a_callable_may_tell_its_device_time_and_is_closed_once() -> None:
    device = Device()
    with Pipeline([device]) as pipeline:
        list(pipeline.run(range(4)))
        assert pipeline.report().stages[0].compute_seconds == 2.0
    assert pipeline.report().stages[0].id == "gpu0"
    pipeline.stop()
    assert device.closed == 1


def test_observers_see_every_nth_result_in_order_beside_the_chain() -> None:
    looked_at: list[tuple[int, int]] = []
    names: set[str] = set()

    def look(item: int, result: int) -> None:
        names.add(threading.current_thread().name)
        time.sleep(0.001)
        looked_at.append((item, result))

    fetched = Worker("a", compute=lambda x: x + 1, fetch=lambda x: 10 * x)
    with Pipeline([fetched, same], observers=[observe("a", look, every=3), observe(1, look, every=10)]) as pipeline:
        assert pipeline.join() == []
    with Pipeline([fetched, same], observers=[observe("a", look, every=3)]) as pipeline:
        assert len(list(pipeline.run(range(20)))) == 20
    assert looked_at == [(k, 10 * (k + 1)) for k in range(0, 20, 3)]
    assert names == {"dashi-stream-observers"}


def test_progress_is_told_to_those_who_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.stream._progress.LINES_EVERY", 0.02)
    monkeypatch.setattr("dashi.stream._pipeline.LINES_EVERY", 0.02)
    from contextlib import contextmanager

    lines_and_counts: list[Any] = []

    class Listener:
        def remark(self, *lines: str) -> None:
            lines_and_counts.extend(lines)

        @contextmanager
        def progress(self, title: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
            lines_and_counts.append((title, total, unit))
            yield lines_and_counts.append

    with Pipeline([after(0.03), same]) as pipeline:
        assert list(pipeline.run(range(5), events=Listener())) == [*range(5)]
    assert lines_and_counts[0] == ("stream", 5, "items")
    assert sum(one for one in lines_and_counts if isinstance(one, int)) == 5
    lines = [one for one in lines_and_counts if isinstance(one, str)]
    assert any(line.startswith("call: ") and "fill " in line for line in lines)
    assert any("starved: call->same is empty" in line for line in lines)


def test_reports_of_a_running_chain_say_what_each_stage_does() -> None:
    go = threading.Event()

    def held(item: int) -> int:
        go.wait(5)
        return item

    with Pipeline([held, same]) as pipeline:
        pipeline.push(0)
        until(lambda: pipeline.report().stages[0].items_in == 1)
        time.sleep(0.05)
        report: ChainReport = pipeline.report()
        assert [stage.now for stage in report.stages] == ["item 0 is computed", "starved: held->same is empty"]
        assert report.stages[1].starved_seconds > 0.01
        go.set()


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ("a b c", "a b c"),
        ("a a", "a0 a1"),
        ("a a a1", "a0 a1_ a1"),
        ("a a1_ a a1 a0 a", "a0_ a1_ a2 a1 a0 a5"),
        ("a1 a1 a a", "a10 a11 a2 a3"),
        ("a a a a a a a a a a a1 a1", "a0 a1_ a2 a3 a4 a5 a6 a7 a8 a9 a110 a111"),
    ],
)
def test_stages_of_one_name_get_names_of_their_own(given: str, ids: str) -> None:
    with Pipeline([Worker(name, compute=same) for name in given.split()]) as pipeline:
        assert [stage.id for stage in pipeline.report().stages] == ids.split()
        assert list(pipeline.run([7])) == [7]


def test_a_pipeline_that_nobody_stops_ends_with_its_last_reference() -> None:
    pipeline = Pipeline([same])
    pipeline.push(1)
    del pipeline
    gc.collect()  # the fixture sees whether threads are left
