"""Stages that fail, die and come back: nothing lost, doubled or reordered, the first error reported, no thread left."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.errors import ClosedError, FileError, InputError, StageFailedError, StalledError, StreamError
from dashi.stream import ItemSlots, Pipeline, State, Worker, WorkerOp, observe, snapshot


def same(item: Any) -> Any:
    return item


def failing_at(*items: int) -> Callable[[int], int]:
    """Fails at these items, once each."""
    left = Counter(items)

    def call(item: int) -> int:
        if left[item]:
            left[item] -= 1
            raise ValueError(f"bad luck at {item}")
        return item

    return call


def kinds(pipeline: Pipeline) -> list[tuple[str, str, int]]:
    return [(event.kind, event.place, event.item) for event in pipeline.report().events]


def until_an_error(results: Iterable[Any]) -> tuple[list[Any], StreamError | None]:
    """What comes, and the error that ends it."""
    results_so_far: list[Any] = []
    try:
        for result in results:
            results_so_far.append(result)
            time.sleep(0.001)
    except StreamError as error:
        return results_so_far, error
    return results_so_far, None


class Done:
    def __init__(self, result: Any) -> None:
        self.result = result

    def wait(self) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


# The first error


def test_an_error_names_stage_and_item_and_has_its_cause() -> None:
    with pytest.raises(StageFailedError) as caught, Pipeline([same, Worker("b", compute=failing_at(4))]) as pipeline:
        list(pipeline.run(range(10)))
    assert str(caught.value) == (
        "'b' failed at item 4: ValueError: bad luck at 4 Fix: see its cause, the error above; `restarts=` of a Worker "
        "begins a stage anew, and `on_error='drain'` first gives the items before that one."
    )
    assert caught.value.stage == "b"
    assert caught.value.step == 4
    assert isinstance(caught.value.__cause__, ValueError)


def test_drained_results_are_all_those_before_the_error() -> None:
    def slow(item: int) -> int:
        time.sleep(0.005)
        return item

    stages = [same, Worker("b", compute=failing_at(7)), slow]
    with Pipeline(stages, on_error="drain", window=8) as pipeline:
        results, error = until_an_error(pipeline.run(range(100)))
        assert results == [*range(7)]
        assert "'b' failed at item 7" in str(error)
        assert kinds(pipeline) == [("failed", "b", 7)]
        with pytest.raises(StageFailedError, match="'b' failed at item 7"):
            pipeline.push(3)


def test_join_says_what_had_come_out_before_the_error() -> None:
    pipeline = Pipeline([failing_at(3)], on_error="drain", window=8)
    for k in range(4):
        pipeline.push(k)
    with pytest.raises(StageFailedError) as caught:
        pipeline.join()
    assert caught.value.result == [0, 1, 2]
    pipeline.stop()


def test_the_first_of_several_errors_is_reported() -> None:
    late = threading.Event()

    def first(item: int) -> int:
        if item == 3:
            raise ValueError("first")
        return item

    def second(item: int) -> int:
        if item == 2:
            late.wait(0.2)
            raise ValueError("second")
        return item

    with Pipeline([first, second], on_error="drain", window=8) as pipeline:
        for k in range(4):
            pipeline.push(k)
        with pytest.raises(StageFailedError, match="'first' failed at item 3") as caught:
            pipeline.join()
        assert caught.value.result == [0, 1]
        assert kinds(pipeline) == [("failed", "first", 3), ("failed", "second", 2)]


@pytest.mark.parametrize("restarts", [0, 1])
@pytest.mark.parametrize("by", ["transfer", "submit"])
def test_a_broken_stage_whose_earlier_work_fails_too_is_not_begun_anew(by: str, restarts: int) -> None:
    broken = threading.Event()

    class Late:
        def __init__(self, item: int) -> None:
            self.item = item

        def wait(self) -> int:
            return fails_late(self.item)

    def fails_late(item: int) -> int:
        if item == 1:
            broken.wait(5)
            raise ValueError("late")
        return item

    def compute(item: int) -> int | None:
        return None if item == 3 else item  # breaks the contract, which no new life mends

    def submit(item: int, slots: ItemSlots) -> Late:
        if item == 3:
            raise StreamError("no more.", "none.")
        return Late(item)

    if by == "transfer":
        stage = Worker("b", compute=compute, transfer=fails_late, restarts=restarts)
    else:
        stage = Worker("b", submit=submit, ahead=4, restarts=restarts)
    with Pipeline([stage], on_error="drain", window=8, timeout=3.0) as pipeline:
        for k in range(5):
            pipeline.push(k)
        end = time.monotonic() + 3
        while not kinds(pipeline) and time.monotonic() < end:
            time.sleep(0.001)
        broken.set()
        results, error = until_an_error(iter(pipeline.pop, None))
        assert results == [0]
        assert not isinstance(error, StalledError)
        assert kinds(pipeline) == [("failed", "b", 3), ("failed", "b", 1)]


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (
            Worker("x", compute=lambda _: None),
            "`compute` of stage 'x' returned None for item 0. Fix: return the",
        ),
        (Worker("x", compute=same, transfer=lambda _: None), "`transfer` of stage 'x' returned None for item 0."),
        (Worker("x", ops=(WorkerOp("op", lambda _: None),)), "`compute` of stage 'x: op' returned None for item 0."),
        (Worker("x", submit=lambda *_: Done(ValueError("gone"))), "'x' failed at item 0: ValueError: gone"),
        (Worker("x", compute=same, open=lambda: 1 / 0), "'x' failed at item 0: ZeroDivisionError: division by zero"),
        (
            Worker("x", compute=lambda _: 3),
            "stage 'x' was given a State and returned a int for item 0. Fix: return",
        ),
    ],
    ids=["None", "transfer None", "op None", "submitted", "open", "another type"],
)
def test_stages_that_break_the_contract_are_named(stage: Worker, text: str) -> None:
    with pytest.raises(StreamError) as caught, Pipeline([stage, same]) as pipeline:
        list(pipeline.run([State(0, {"z": np.zeros(1)})]))
    assert text in str(caught.value)


def test_a_schema_may_be_checked_after_each_stage() -> None:
    def check(array: Any) -> None:
        if array.shape != (2,):
            raise InputError(f"shape {array.shape} is not (2,).", "return two numbers.")

    stage = Worker("x", compute=lambda k: np.zeros(k), check=check)
    text = r"'x' failed at item 1: InputError: shape \(3,\) is not \(2,\)"
    with pytest.raises(StageFailedError, match=text), Pipeline([stage]) as pipeline:
        list(pipeline.run([2, 3]))


def test_what_a_stage_is_given_is_closed_whatever_happens() -> None:
    closed: list[str] = []
    bad = Worker("b", compute=failing_at(0), close=lambda: closed.append("b"))
    worse = Worker("c", compute=same, close=lambda: 1 / 0)
    with pytest.raises(StageFailedError), Pipeline([bad, worse]) as pipeline:
        list(pipeline.run(range(3)))
    assert closed == ["b"]
    assert ("close failed", "c") in [(kind, place) for kind, place, _ in kinds(pipeline)]


# Death and restart


def test_a_stage_begins_anew_from_the_first_item_that_was_not_handed_on() -> None:
    makes: list[int] = []

    def make() -> Worker:
        makes.append(1)
        return Worker(compute=fails, device="gpu1")

    fails = failing_at(3, 8)
    stage = Worker("b", compute=fails, restarts=2, make=make)
    with Pipeline([same, stage, same]) as pipeline:
        assert list(pipeline.run(range(20))) == [*range(20)]
        assert kinds(pipeline) == [("died", "b", 3), ("restarted", "b", 3), ("died", "b", 8), ("restarted", "b", 8)]
        assert "goes on on gpu1 at item 3, the first that was not handed on" in str(pipeline.report())
        assert pipeline.report().stages[1].restarts == 2
    assert len(makes) == 2


def test_after_its_restarts_a_stage_goes_on_elsewhere() -> None:
    def lost(item: int) -> int:
        if item >= 4:
            raise OSError("the device was lost")
        return item + 100

    spare = Worker(compute=lambda item: item + 100, device="cpu")
    stage = Worker("b", compute=lost, device="gpu0", restarts=1, elsewhere=lambda: spare)
    with Pipeline([same, stage]) as pipeline:
        assert list(pipeline.run(range(10))) == [item + 100 for item in range(10)]
        assert [kind for kind, _, _ in kinds(pipeline)] == ["died", "restarted", "died", "moved"]
        assert pipeline.report().stages[1].device == "cpu"


def test_ops_of_a_dead_stage_go_to_its_neighbour_where_the_rules_allow() -> None:
    devices: list[str] = []

    def bind(device: str) -> Callable[[list[str]], list[str]]:
        def call(trail: list[str]) -> list[str]:
            if device == "weak" and len(devices) >= 5:
                raise OSError("the device was lost")
            devices.append(device)
            return [*trail, "b"]

        return call

    def stages(deepest: int | None) -> list[Worker]:
        devices.clear()
        migrant = WorkerOp("b", bind("weak"), depth_out=2, bind=bind)
        return [
            Worker("s0", ops=(WorkerOp("a", lambda trail: [*trail, "a"]),)),
            Worker("s1", ops=(migrant,), device="weak", remap=True),
            Worker("s2", ops=(WorkerOp("c", lambda trail: [*trail, "c"]),), device="strong", max_depth=deepest),
        ]

    with Pipeline(stages(None)) as pipeline:
        assert list(pipeline.run([str(k)] for k in range(12))) == [[str(k), "a", "b", "c"] for k in range(12)]
        assert kinds(pipeline) == [("died", "s1", 5), ("left", "s1", 5)]
        assert devices == ["weak"] * 5 + ["strong"] * 7
    with pytest.raises(StageFailedError, match="the device was lost"), Pipeline(stages(1)) as pipeline:
        list(pipeline.run([str(k)] for k in range(12)))  # R2: too deep for the neighbour


def test_a_new_worker_with_other_ops_is_refused() -> None:
    stage = Worker(
        "s", ops=(WorkerOp("a", failing_at(1)),), restarts=1, make=lambda: Worker(ops=(WorkerOp("z", same),))
    )
    with pytest.raises(StreamError, match="new worker of stage 's' has an op 'z', which the chain had not"):
        list(Pipeline([stage]).run(range(3)))
    with pytest.raises(InputError, match=r"two ops of the chain are called 'a'. Fix: give each op an id of its own"):
        Pipeline([Worker("s", ops=(WorkerOp("a", same), WorkerOp("a", same)))])


class Sum:
    """A stage with a memory: each result is the sum of all items so far."""

    def __init__(self, dies_at: set[int]) -> None:
        self.total, self.dies_at = 0, dies_at

    def __call__(self, item: int) -> int:
        self.total += item
        if item in self.dies_at:
            self.dies_at.discard(item)
            self.total = -1_000_000  # what is left of it after the death is nothing to go by
            raise OSError("lost")
        return self.total

    def load(self, memory: int) -> None:
        self.total = memory


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("volatile", [False, True])
def test_a_stage_with_a_memory_goes_on_where_it_was(every: int, volatile: bool) -> None:
    dies_at = {3, 11, 12, 19}
    first = Sum(dies_at)
    current = [first]

    def worker(stage: Sum) -> Worker:
        current[0] = stage
        return Worker(
            "sum",
            compute=stage,
            save=lambda: stage.total,
            load=stage.load,
            save_every=every,
            volatile=volatile,
            restarts=9,
            make=lambda: worker(Sum(dies_at)),
        )

    with Pipeline([same, worker(first), same]) as pipeline:
        assert list(pipeline.run(range(30))) == [sum(range(k + 1)) for k in range(30)]
    assert not dies_at


@settings(max_examples=30)
@given(data=st.data())
def test_nothing_is_lost_wherever_stages_die(data: st.DataObject) -> None:
    """Stages of every kind, killed at random points of compute, submission, completion and transfer."""
    n, count = 25, data.draw(st.integers(1, 4))
    deaths = st.lists(st.integers(0, n - 1), max_size=3)

    def stage(number: int) -> Worker:
        compute, transfer = failing_at(*data.draw(deaths)), failing_at(*data.draw(deaths))
        moves = transfer if data.draw(st.booleans()) else None
        common: dict[str, Any] = {"restarts": 9, "transfer": moves, "volatile": data.draw(st.booleans())}
        if data.draw(st.booleans()):
            return Worker(f"s{number}", compute=compute, **common)
        late = failing_at(*data.draw(deaths))

        def submit(item: int, slots: ItemSlots) -> Done:
            compute(item)
            try:
                return Done(late(item))
            except ValueError as error:
                return Done(error)

        return Worker(f"s{number}", submit=submit, ahead=data.draw(st.integers(1, 3)), **common)

    windows = data.draw(st.lists(st.integers(1, 4), min_size=count + 1, max_size=count + 1))
    results_so_far: list[int] = []
    looks = observe(0, lambda item, result: results_so_far.append(result))
    each = dict(enumerate(windows))
    with Pipeline([stage(k) for k in range(count)], windows=each, observers=[looks], timeout=20) as pipeline:
        results, error = until_an_error(pipeline.run(range(n)))
    if error is None:
        assert len(results) == n
        assert results_so_far == [*range(n)]
    else:  # two neighbours at once: known, and said
        assert " are lost: " in str(error)
    assert results == [*range(len(results))]


def test_items_that_two_dead_neighbours_had_alone_are_named() -> None:
    """Volatile neighbours: the second dies with what the first has handed over, then the first before it can do so
    again."""
    dead = threading.Event()

    class Dies:
        def __init__(self) -> None:
            self.moves = 0

        def move(self, item: int) -> int:
            self.moves += 1
            if self.moves == 2:  # the item is handed over again, and this one dies meanwhile
                raise OSError("a is lost")
            return item

    def dies(item: int) -> int:
        if not dead.is_set():
            dead.set()
            raise OSError("b is lost")
        return item

    first = Dies()
    a = Worker("a", compute=same, transfer=first.move, volatile=True, restarts=3)
    b = Worker("b", compute=dies, volatile=True, restarts=3)
    with pytest.raises(StageFailedError) as caught, Pipeline([a, b]) as pipeline:
        list(pipeline.run([5]))
    assert str(caught.value) == (
        "items 0 to 0 are lost: 'a' died while 'b' was dead, and only those two had them (OSError: a is lost). Fix: "
        "push them again from item 0 on; of two neighbours, let one at most be `volatile`."
    )


# The end by whoever collects garbage


@pytest.mark.parametrize("lock", ["run", "observers"])
def test_a_pipeline_may_be_found_dead_by_a_thread_that_has_its_lock(lock: str) -> None:
    pipeline = Pipeline([same], observers=[observe(0, lambda item, result: None)])
    pipeline.push(1)
    assert pipeline.pop() == 1
    run, finalizer = pipeline._run, pipeline._finalizer

    def collect() -> None:
        with run.lock if lock == "run" else run.side._changed:
            finalizer()

    collector = threading.Thread(target=collect, daemon=True)
    collector.start()
    collector.join(3)
    assert not collector.is_alive()
    for _, thread in run.threads():
        thread.join(3)
        assert not thread.is_alive()
    with pytest.raises(ClosedError, match="this pipeline was stopped"):
        pipeline.push(2)


def test_who_waits_with_the_lock_taken_twice_lets_others_in() -> None:
    looked_at = list[int]()

    def look(item: int, result: int) -> None:
        time.sleep(0.001)
        looked_at.append(item)

    with Pipeline([same, same], window=1, timeout=5.0, observers=[observe(1, look)]) as pipeline:
        for k in range(20):
            with pipeline._run.lock:
                pipeline.push(k)
                assert pipeline.pop() == k
        assert pipeline.join() == []
    assert looked_at == [*range(20)]


# Observers and snapshots


def test_an_error_of_an_observer_ends_the_run_after_what_was_pushed() -> None:
    def look(item: int, result: int) -> None:
        if item == 2:
            raise ValueError("no")

    with Pipeline([same], on_error="drain", observers=[observe(0, look)]) as pipeline:
        results, error = until_an_error(pipeline.run(range(1000)))
    assert "'look' failed at item 2: ValueError: no" in str(error)
    assert 2 <= len(results) < 1000
    assert results == [*range(len(results))]


def test_snapshots_keep_results_of_a_stage(tmp_path: Path) -> None:
    def deeper(state: State) -> State:
        return State(state.step, {"z": np.full(2, 2 * state.step)}, 1)

    keeps = [snapshot("deeper", tmp_path / "states", every=2), snapshot(1, tmp_path / "rows", every=3)]
    with Pipeline([deeper, lambda state: np.asarray(state.payload["z"])], observers=keeps) as pipeline:
        list(pipeline.run(State(k, {"z": np.full(2, k)}) for k in range(5)))
    assert sorted(path.name for path in (tmp_path / "states").iterdir()) == [
        f"deeper-0000000{k}.npz" for k in (0, 2, 4)
    ]
    assert np.load(tmp_path / "states" / "deeper-00000004.npz")["z"].tolist() == [8, 8]
    assert np.load(tmp_path / "rows" / "1-00000003.npz")["value"].tolist() == [6, 6]


def test_a_full_disk_for_snapshots_ends_the_run_and_loses_nothing(tmp_path: Path, full_disk: Any) -> None:
    with full_disk(2), Pipeline([np.array], on_error="drain", observers=[snapshot(0, tmp_path)]) as pipeline:
        results, error = until_an_error(pipeline.run(range(500)))
    assert error is not None
    assert isinstance(error.__cause__, FileError)
    assert "'snapshots after 0' failed at item 2: FileError: " in str(error)
    assert results == [*range(len(results))]
    assert len(results) < 500
    assert len([*tmp_path.glob("*.npz")]) == 2


def test_what_is_no_array_cannot_be_kept(tmp_path: Path) -> None:
    looks = [snapshot(0, tmp_path)]
    with pytest.raises(StreamError, match="a snapshot cannot keep 'value', a object that is no array"):
        list(Pipeline([same], observers=looks).run([object()]))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file is a file. Fix: name a folder for snapshots"):
        snapshot(0, tmp_path / "file")


# Ctrl-C


def interrupt_after(seconds: float) -> threading.Timer:
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(seconds, signal.pthread_kill, [main, signal.SIGINT])
    timer.start()
    return timer


def push_all(pipeline: Pipeline) -> None:
    for k in range(1000):
        pipeline.push(k)


def push_some(pipeline: Pipeline) -> None:
    for k in range(4):
        pipeline.push(k)


def sleep_on(pipeline: Pipeline) -> None:
    pipeline.push(1)
    time.sleep(5)


PHASES: dict[str, tuple[Callable[[Pipeline], Any], Callable[[Pipeline], Any]]] = {
    "push": (same, push_all),
    "pop": (same, lambda pipeline: pipeline.pop()),
    "run": (same, lambda pipeline: list(pipeline.run(range(10_000)))),
    "join": (push_some, lambda pipeline: pipeline.join()),
    "stop": (push_some, lambda pipeline: pipeline.stop(drain=True)),
    "between": (same, sleep_on),
}


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_leaves_no_thread_behind(phase: str) -> None:
    def slow(item: int) -> int:
        time.sleep(0.1 if phase in ("join", "stop") else 0.01)
        return item

    before, within = PHASES[phase]
    pipeline = Pipeline([slow, slow], window=2)
    before(pipeline)
    timer = interrupt_after(0.05)
    with pytest.raises(KeyboardInterrupt), pipeline:
        within(pipeline)
    timer.join()


def test_ctrl_c_while_threads_start_leaves_none_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    real, started = threading.Thread.start, itertools.count()

    def start(thread: threading.Thread) -> None:
        if next(started) == 1:
            raise KeyboardInterrupt
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        Pipeline([same, same]).start()


def test_ctrl_c_while_threads_end_waits_for_them() -> None:
    def slow(item: int) -> int:
        time.sleep(0.3)
        return item

    pipeline = Pipeline([slow])
    pipeline.push(0)
    time.sleep(0.05)
    timer = interrupt_after(0.05)
    with pytest.raises(KeyboardInterrupt):
        pipeline.stop()
    timer.join()
    left = [one for one in threading.enumerate() if one.name.startswith("dashi-stream") and one.is_alive()]
    assert not left
