"""Chains on devices that are lost, adapted and looked at: every item once, in order, with the bits of one device."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import errors
from dashi.io.arrays import read_arrays
from dashi.runtime import Ticket
from dashi.stream import StreamPlan, StreamRun, host_op, load, make_plan, parse, run
from dashi.stream._draws import items_of
from dashi.stream._plan_adapter import movable_seconds
from dashi.stream._renewal import FirstLooks, RetainedItems
from dashi.stream._stage_times import StageUse, divide_gap

EXAMPLE = Path(__file__).parents[2] / "examples" / "stream" / "worked_example.yaml"
ITEMS = 14
TEXT = """
stages:
  - {id: a, device: first, max_semantic_depth: 1, ops: [scale]}
  - {id: b, device: second, max_semantic_depth: 2, ops: [square, neg]}
  - {id: c, device: third, max_semantic_depth: 3, ops: [add, reduce_max]}
links: [{from: a, to: b, seconds: 0.001}, {from: b, to: c, seconds: 0.001}]
window: 2
devices: {first: cpu, second: cpu, third: cpu}
observers: {reduce_max: {every: 3}}
source: {fields: {x: {shape: [8, 8]}}}
ops:
  scale: {inputs: {x: x}, params: {a: 10.0}, outputs: {result: y}, seconds: 0.002}
  square: {inputs: {x: y}, outputs: {result: y}, seconds: 0.002}
  neg: {inputs: {x: y}, outputs: {result: y}, seconds: 0.004, depth_out: 2}
  add: {inputs: {x: y, y: x}, outputs: {result: z}, seconds: 0.001}
  reduce_max: {inputs: {x: z}, outputs: {result: largest}, seconds: 0.0001}
result: [z]
"""


@pytest.fixture
def plan() -> StreamPlan:
    return make_plan(parse(TEXT), measure=False)


@pytest.fixture
def expected(plan: StreamPlan) -> tuple[str, ...]:
    return run(plan, ITEMS, serial="cpu").hashes


class Losses:
    """A device is lost where these steps of a stage are submitted, so many times each."""

    def __init__(self, *where: tuple[str, int]) -> None:
        self.left = list(where)
        self.submitted: list[tuple[str, int]] = []

    def __call__(self, stage: str, step: int) -> Sequence[Ticket]:
        self.submitted.append((stage, step))
        if (stage, step) in self.left:
            self.left.remove((stage, step))
            raise errors.DeviceLostError("the device was lost.", "open it again.")
        return ()


def with_second(plan: StreamPlan, **changes: Any) -> StreamPlan:
    """The plan with another stage in its middle."""
    first, second, third = plan.stages
    return replace(plan, stages=(first, replace(second, **changes), third))


def kinds(done: StreamRun) -> list[tuple[str, str]]:
    return [(event.kind, event.place) for event in done.events]


def test_a_chain_goes_on_after_its_device_was_opened_again(plan: StreamPlan, expected: tuple[str, ...]) -> None:
    done = run(plan, ITEMS, hold=Losses(("b", 9), ("c", 2)), restarts=1)
    assert (done.hashes, done.in_order, done.items) == (expected, True, ITEMS)
    assert kinds(done) == [("died", "c"), ("restarted", "c"), ("died", "b"), ("restarted", "b")]
    assert [stage["restarts"] for stage in done.stages] == [0, 1, 1]
    assert [one.step for one in done.observations] == [0, 3, 6, 9, 12]  # each once, however often it was computed
    document = done.as_json()
    assert document["events"][0]["reason"] == "DeviceLostError: the device was lost. Fix: open it again."
    assert "goes on at item " in document["events"][1]["reason"]


def test_without_restarts_a_loss_ends_the_run_with_what_came_out(plan: StreamPlan, expected: tuple[str, ...]) -> None:
    with pytest.raises(errors.DeviceLostError) as caught:
        run(plan, ITEMS, hold=Losses(("b", 12)))
    partial = caught.value.result
    assert partial.hashes == expected[: partial.items]
    assert partial.items > 0
    with pytest.raises(errors.DeviceLostError) as caught:
        run(plan, ITEMS, hold=Losses(("b", 12), ("b", 1)), restarts=1)
    assert kinds(caught.value.result) == [("died", "b"), ("restarted", "b"), ("died", "b")]


def test_wherever_devices_are_lost_every_item_comes_out_once(plan: StreamPlan, expected: tuple[str, ...]) -> None:
    for seed in range(12):
        rng = random.Random(seed)
        where = [(rng.choice("abc"), rng.randrange(ITEMS)) for _ in range(rng.randrange(1, 4))]
        windows = tuple(replace(link, window=rng.randrange(1, 4)) for link in plan.links)
        done = run(replace(plan, links=windows), ITEMS, hold=Losses(*where), restarts=3, debug=True)
        assert (done.hashes, done.in_order) == (expected, True), (seed, where)
        assert [one.step for one in done.observations] == [0, 3, 6, 9, 12], (seed, where)


def test_stages_of_a_device_that_stays_lost_go_on_elsewhere(vulkan_session: object) -> None:
    plan = make_plan(load(EXAMPLE), measure=False)
    expected = run(plan, ITEMS, serial="cpu").hashes
    done = run(plan, ITEMS, hold=Losses(("gpu1", 6)), elsewhere="cpu")
    assert done.hashes == expected
    assert kinds(done) == [("died", "gpu1"), ("moved", "gpu1")]
    assert [stage["device"] for stage in done.stages] == ["cpu", "vulkan:0", "cpu", "vulkan:0"]
    assert [stage["link"]["fallback"] for stage in done.stages[:-1]] == [False, True, True]
    beside = run(plan, ITEMS, hold=Losses(("gpu1", 6)), elsewhere="neighbour")
    assert beside.hashes == expected
    assert beside.events[1].reason.endswith("on gpu_strong, that of the neighbour gpu2")


def test_a_neighbour_takes_over_only_what_the_rules_allow(plan: StreamPlan, expected: tuple[str, ...]) -> None:
    done = run(plan, ITEMS, hold=Losses(("a", 4)), elsewhere="neighbour")
    assert done.hashes == expected
    assert done.events[1].reason.endswith("on second, that of the neighbour b")
    # Stage c may lose its device too; b goes to depth 2, and c's States have that.
    again = run(plan, ITEMS, hold=Losses(("a", 4), ("b", 2)), elsewhere="neighbour")
    assert again.hashes == expected
    square: Any = plan.stages[1].ops[0]
    stuck = replace(square, spec=replace(square.spec, migratable=False))
    fixed = with_second(plan, ops=(stuck, *plan.stages[1].ops[1:]))
    with pytest.raises(errors.DeviceLostError) as caught:
        run(fixed, ITEMS, hold=Losses(("b", 4)), elsewhere="neighbour")
    assert caught.value.result.events[-1].kind == "not moved"
    with pytest.raises(errors.StreamRuleError, match="R4 residency: op 'square' is not migratable"):
        run(fixed, ITEMS, elsewhere="cpu")


def test_a_device_that_does_not_open_again_counts_as_lost(
    plan: StreamPlan, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[str]()
    from dashi.stream import running

    def opening(spec: str, **options: Any) -> Any:
        opened.append(spec)
        if spec == "gone" and opened.count("gone") > 1:
            raise errors.DeviceNotFoundError("there is no device 'gone'.", "plug it in.")
        return open_device("cpu" if spec == "gone" else spec, **options)

    open_device = running.open_device
    monkeypatch.setattr(running, "open_device", opening)
    there = with_second(plan, device=replace(plan.stages[1].device, spec="gone"))
    done = run(there, ITEMS, hold=Losses(("b", 5)), restarts=1, elsewhere="neighbour")
    assert done.hashes == expected
    assert kinds(done) == [("died", "b"), ("restarted", "b"), ("died", "b"), ("moved", "b")]
    monkeypatch.setattr(running, "open_device", lambda *_, **__: opening("gone"))
    with pytest.raises(errors.DeviceNotFoundError):  # it was never there: nothing is tried again
        run(there, ITEMS, restarts=5)


def test_a_queue_that_reports_a_lost_device_costs_no_item(
    vulkan_session: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's own error, on a device in the middle of the chain, with work of other devices under way."""
    from dashi.stream._device_stage import DeviceStage

    plan = make_plan(load(EXAMPLE), measure=False)
    expected = run(plan, ITEMS, serial="cpu").hashes
    real, lost = DeviceStage.__call__, list[int]()

    def call(self: DeviceStage, state: Any) -> Any:
        if self.id == "gpu1" and state.step == 2 and not lost:
            lost.append(state.step)
            program: Any = self._program_of(state.step).program  # pyright: ignore[reportPrivateUsage]
            for submissions in program._first.submissions:
                for submission in submissions:
                    submission._submit = lambda *_: -4
        return real(self, state)

    monkeypatch.setattr(DeviceStage, "__call__", call)
    done = run(plan, ITEMS, restarts=1)
    assert lost
    assert (done.hashes, done.in_order) == (expected, True)
    assert kinds(done) == [("died", "gpu1"), ("restarted", "gpu1")]


def test_other_errors_are_not_tried_again(plan: StreamPlan) -> None:
    tried = list[int]()

    def broken(stage: str, step: int) -> Sequence[Ticket]:
        tried.append(step)
        raise errors.InputError("a mistake.", "mend it.")

    with pytest.raises(errors.InputError, match="a mistake"):
        run(plan, ITEMS, hold=broken, restarts=5)
    assert tried == [0]
    with pytest.raises(errors.InputError, match=r"`restarts=-1` is no number of times\. Fix: pass 0 or more"):
        run(plan, 1, restarts=-1)


def test_retained_items_are_those_that_have_not_come_out_and_the_last_that_has() -> None:
    payloads: list[Mapping[str, Any]] = [{"x": k} for k in range(6)]
    items = RetainedItems(payloads)
    sent = items.go_on(0)
    assert [next(sent)["x"] for _ in range(4)] == [0, 1, 2, 3]
    assert items.came_out(0)
    assert items.came_out(1)
    assert not items.came_out(1)
    assert items.out == 2
    again = items.go_on(1)
    assert next(again)["x"] == 1
    items.halted = True
    assert list(again) == []
    assert [item["x"] for item in items.go_on(2)] == [2, 3, 4, 5]
    assert list(items.go_on(6)) == []


def test_looks_are_handed_on_once() -> None:
    looks_seen: list[tuple[int, str]] = []
    looks = FirstLooks()
    told = looks.once("observers", lambda step, stage, _values: looks_seen.append((step, stage)))
    for step, stage in [(0, "a"), (2, "a"), (0, "b"), (0, "a"), (2, "a"), (4, "a"), (2, "b")]:
        told(step, stage, {})
    assert looks_seen == [(0, "a"), (2, "a"), (0, "b"), (4, "a"), (2, "b")]


# Snapshots


def test_snapshots_hold_the_states_behind_a_stage_each_once(plan: StreamPlan, tmp_path: Path) -> None:
    done = run(plan, ITEMS, snapshots={"a": 4, "c": 6}, folder=tmp_path / "s", hold=Losses(("c", 9)), restarts=1)
    assert done.in_order
    assert sorted(file.name for file in (tmp_path / "s").iterdir()) == [
        "a-00000000.npz", "a-00000004.npz", "a-00000008.npz", "a-00000012.npz",
        "c-00000000.npz", "c-00000006.npz", "c-00000012.npz",
    ]  # fmt: skip
    whole = run(plan, ITEMS, keep=True)
    item = items_of(plan.config.source, 12)
    behind = read_arrays(tmp_path / "s" / "a-00000012.npz")
    assert np.array_equal(behind["y"], np.multiply(item["x"], np.float32(10)))
    assert set(behind) == {"x", "y"}
    assert np.array_equal(read_arrays(tmp_path / "s" / "c-00000012.npz")["z"], whole.fields[12]["z"])


def test_snapshots_on_software_vulkan_change_no_bit(vulkan_session: object, tmp_path: Path) -> None:
    plan = make_plan(load(EXAMPLE), measure=False)
    done = run(plan, 7, snapshots={"gpu0": 3, "gpu2": 3}, folder=tmp_path)
    assert done.hashes == run(plan, 7, serial="cpu").hashes
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"snapshots": {"d": 1}, "folder": "x"}, "names the stage 'd', which there is not. Fix: .*name one of a, b, c"),
        ({"snapshots": {"a": 0}, "folder": "x"}, "`snapshots=` of 'a' is 0. Fix: pass a number of steps from 1 on"),
        ({"snapshots": {"a": True}, "folder": "x"}, "`snapshots=` of 'a' is True"),
        ({"snapshots": {"a": 1}}, "snapshots have no place. Fix: name a folder"),
    ],
)
def test_snapshots_that_cannot_be_are_refused(plan: StreamPlan, more: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InputError, match=message):
        run(plan, 2, **more)


def test_a_full_disk_for_snapshots_ends_the_run_and_what_came_out_is_there(
    plan: StreamPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dashi.stream import _snapshot_files as files

    real: Callable[..., None] = files.write_arrays

    def full(path: Path, arrays: Any) -> None:
        if path.name == "b-00000003.npz":
            raise errors.FileError(f"{path}: {errno.errorcode[errno.ENOSPC]}", "free some space.")
        real(path, arrays)

    monkeypatch.setattr(files, "write_arrays", full)
    with pytest.raises(errors.FileError, match="ENOSPC") as caught:
        run(plan, ITEMS, snapshots={"b": 1}, folder=tmp_path)
    assert caught.value.result.in_order
    assert {file.name for file in tmp_path.iterdir()} <= {f"b-{k:08d}.npz" for k in range(3)}


# Adaptation


def test_a_chain_is_changed_while_it_runs_and_computes_the_same(
    plan: StreamPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dashi.stream import _plan_adapter as adapter
    from dashi.stream._adapt import ChainTimes, Decision

    script = [Decision("widen", 0, "c starved"), None, Decision("move", 1, "c starved"), Decision("widen", 1, "again")]

    def decide(times: ChainTimes, names: Sequence[str]) -> Decision | None:
        assert len(times.compute) == len(names) == 3
        return script.pop(0) if script else None

    monkeypatch.setattr(adapter, "decide", decide)
    monkeypatch.setattr(adapter, "EVERY", 5)
    count = 120
    done = run(plan, count, adapt=True)
    assert done.hashes == run(plan, count, serial="cpu").hashes
    assert not script
    assert [(event.kind, event.place) for event in done.events] == [("widen", "a"), ("move", "b"), ("widen", "b")]
    assert [stage["ops"] for stage in done.stages] == [["scale", "square"], ["neg"], ["add"]]
    assert [stage["link"]["window"] for stage in done.stages[:-1]] == [3, 3]
    assert [stage["items_out"] for stage in done.stages] == [count] * 3
    assert [one.step for one in done.observations] == list(range(0, count, 3))


def test_payloads_lose_precision_only_from_tier_2_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.stream import _plan_adapter as adapter
    from dashi.stream._adapt import ChainTimes, Decision

    looks_seen = list[Sequence[bool]]()

    def decide(times: ChainTimes, names: Sequence[str]) -> Decision | None:
        looks_seen.append(times.lighter)
        return Decision("shrink", 0, "c starved") if times.lighter[0] else None

    monkeypatch.setattr(adapter, "decide", decide)
    monkeypatch.setattr(adapter, "EVERY", 8)
    done = run(make_plan(parse(TEXT), measure=False), 40, adapt=True)
    assert done.lossy == ()
    assert looks_seen
    assert not any(map(any, looks_seen))
    lossy = run(make_plan(parse(f"determinism_tier: 2\n{TEXT}"), measure=False), 40, adapt=True)
    assert lossy.lossy == ("f16",)
    assert lossy.events[0].kind == "shrink"


def test_an_op_that_the_rules_keep_is_not_moved(plan: StreamPlan) -> None:
    assert movable_seconds(plan, 0, 1.0) is None
    assert movable_seconds(plan, 1, 0.006) == pytest.approx(0.002)  # square: 2 of 6 ms
    assert movable_seconds(plan, 2, 1.0) is None  # it is the stage's only one
    deep = make_plan(
        parse(TEXT.replace("seconds: 0.002}\n  neg", "seconds: 0.002, depth_out: 2}\n  neg")), measure=False
    )
    assert movable_seconds(deep, 1, 0.006) is None  # R2: stage a goes to depth 1


def test_a_window_that_holds_the_chain_up_is_raised(plan: StreamPlan) -> None:
    tight = replace(plan, links=tuple(replace(link, window=1) for link in plan.links))
    done = run(tight, 200, adapt=True)
    assert done.hashes == run(plan, 200, serial="cpu").hashes


# Where time went


def test_gaps_are_divided_by_reason() -> None:
    assert divide_gap((0, 100), None, None) == {"starved": 0, "blocked": 0, "submitting": 100}
    assert divide_gap((0, 100), 60, None) == {"starved": 60, "blocked": 0, "linked": 40}
    assert divide_gap((0, 100), 30, 80) == {"starved": 30, "blocked": 50, "linked": 20}
    assert divide_gap((0, 100), 90, 20) == {"starved": 90, "blocked": 0, "linked": 10}
    assert divide_gap((0, 100), 500, 20) == {"starved": 100, "blocked": 0, "linked": 0}
    assert divide_gap((100, 90), 95, 20) == {}


def test_seconds_of_some_items_stand_for_all() -> None:
    seconds = StageUse(items=5, gaps=3, busy=1.0, starved=0.5)
    assert seconds.as_json(10) == {"busy": 2.0, "starved": 1.5, "linked": 0.0, "blocked": 0.0, "submitting": 0.0}
    assert seconds.reason == "starved"
    assert StageUse().reason == ""
    assert set(StageUse().as_json(3).values()) == {0.0}


def test_a_stage_that_waits_for_a_slow_one_is_starved_and_one_before_it_blocked(plan: StreamPlan) -> None:
    def wait(y: Any) -> Any:
        time.sleep(0.004)
        return y

    config = parse(TEXT)
    ops = {"neg": host_op("neg", wait, "y", {"y": config.source.schema["x"]})}
    done = run(make_plan(config, ops=ops, measure=False), 60, ops=ops)
    first, middle, last = (stage["seconds"] for stage in done.stages)
    assert middle["busy"] > 0.8 * 60 * 0.004
    fill = done.stages[0]["link"]["mean_used"]
    assert 1.0 < fill <= 2.0  # the slow stage's input is there before it is needed
    assert last["starved"] > 2 * (last["busy"] + last["blocked"])
    assert first["blocked"] + first["submitting"] > first["busy"]
