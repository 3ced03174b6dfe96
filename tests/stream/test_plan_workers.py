"""Stages of a plan whose devices are lost: they open them again, or go on elsewhere, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.errors import DeviceLostError, InputError, StageFailedError, StreamRuleError
from dashi.stream import Pipeline, State, StreamPlan, Worker, load, make_plan, plan_workers, run
from dashi.stream._draws import items_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "stream" / "worked_example.yaml"
ITEMS = 10


@pytest.fixture(scope="module")
def plan(vulkan_session: object) -> StreamPlan:
    return make_plan(load(EXAMPLE), measure=False)


def states(plan: StreamPlan) -> list[State]:
    return [State(k, items_of(plan.config.source, k)) for k in range(ITEMS)]


def fields(states: list[State]) -> list[dict[str, bytes]]:
    return [{name: np.asarray(value).tobytes() for name, value in state.payload.items()} for state in states]


@pytest.fixture(scope="module")
def expected(plan: StreamPlan) -> list[dict[str, bytes]]:
    done = run(plan, ITEMS, serial="cpu", keep=True)
    return [{name: np.asarray(value).tobytes() for name, value in item.items()} for item in done.fields]


def losing(worker: Worker, items: set[int]) -> Worker:
    """A worker whose device is lost at these items, once each."""

    def compute(state: State) -> State:
        if state.step in items:
            items.discard(state.step)
            raise DeviceLostError("the device was lost.", "open it again.")
        call: Callable[[State], State] | None = worker.compute
        assert call is not None
        return call(state)

    make = worker.make
    assert make is not None
    return replace(worker, compute=compute, make=lambda: losing(replace(make(), make=make), items))


def test_workers_of_a_plan_give_the_bits_of_one_device(plan: StreamPlan, expected: list[dict[str, bytes]]) -> None:
    with Pipeline(plan_workers(plan)) as pipeline:
        results = list(pipeline.run(states(plan)))
        assert not pipeline.report().events
    assert fields(results) == expected
    assert [state.stage_id for state in results] == [plan.stages[-1].stage.id] * ITEMS


def test_a_stage_whose_device_is_lost_opens_it_again(plan: StreamPlan, expected: list[dict[str, bytes]]) -> None:
    workers = plan_workers(plan, restarts=2)
    workers[1] = losing(workers[1], {3, 7})
    with Pipeline(workers) as pipeline:
        assert fields(list(pipeline.run(states(plan)))) == expected
        events = pipeline.report().events
    name = plan.stages[1].stage.id
    assert [(event.kind, event.place, event.item) for event in events] == [
        ("died", name, 3), ("restarted", name, 3), ("died", name, 7), ("restarted", name, 7),
    ]  # fmt: skip
    assert "DeviceLostError: the device was lost." in events[0].reason


def test_ops_of_a_lost_device_go_on_elsewhere(plan: StreamPlan, expected: list[dict[str, bytes]]) -> None:
    workers = plan_workers(plan, restarts=0, elsewhere="cpu")
    workers[2] = losing(workers[2], {4})
    with Pipeline(workers) as pipeline:
        assert fields(list(pipeline.run(states(plan)))) == expected
        report = pipeline.report()
    assert [event.kind for event in report.events] == ["died", "moved"]
    assert report.stages[2].device == "cpu"
    lost = plan_workers(plan, restarts=0)
    lost[2] = losing(lost[2], {4})
    with pytest.raises(StageFailedError, match="failed at item 4: DeviceLostError"), Pipeline(lost) as pipeline:
        list(pipeline.run(states(plan)))


def test_what_the_rules_forbid_is_refused_before_anything_runs(plan: StreamPlan) -> None:
    def changed(**more: Any) -> StreamPlan:
        first = plan.stages[0]
        op: Any = first.ops[0]
        fixed = replace(op, spec=replace(op.spec, **more))
        return replace(plan, stages=(replace(first, ops=(fixed, *first.ops[1:])), *plan.stages[1:]))

    with pytest.raises(StreamRuleError, match="is not migratable: it cannot move from device") as caught:
        plan_workers(changed(migratable=False), elsewhere="cpu")
    assert caught.value.rule == "R4 residency"
    with pytest.raises(StreamRuleError, match="is not portable, and the tier is 1"):
        plan_workers(changed(portable=False), elsewhere="cpu")
    with pytest.raises(StreamRuleError) as caught:
        plan_workers(changed(required_features=frozenset({"antigravity"})), elsewhere="cpu")
    assert caught.value.rule == "R2 role"
    with pytest.raises(StreamRuleError, match=r"is a function of the host; .* is no host") as caught:
        plan_workers(changed(host_only=True), elsewhere="vulkan:0")
    assert caught.value.rule == "R2 role"
    on_gpu = replace(changed(host_only=True).stages[0], device=replace(plan.stages[0].device, kind="GPU"))
    plan_workers(replace(plan, stages=(on_gpu, *plan.stages[1:])), elsewhere="cpu")  # the kind is that of `elsewhere`
    link = replace(plan.links[0], link=replace(plan.links[0].link, codec="f16"))
    with pytest.raises(InputError, match="has the lossy codec 'f16', which workers of a plan do not apply"):
        plan_workers(replace(plan, links=(link, *plan.links[1:])))
