"""Whole runs of configurations: the worked example on several devices, with the hashes of one."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Ticket
from dashi.stream import SourceSpec, StreamConfig, StreamPlan, load, make_plan, parse, run
from dashi.stream.running import PREPARED_ITEMS, drawn_payloads

EXAMPLE = Path(__file__).parents[2] / "examples" / "stream" / "worked_example.yaml"
ITEMS = 12


@pytest.fixture(scope="module")
def config() -> StreamConfig:
    return load(EXAMPLE)


@pytest.fixture(scope="module")
def plan(config: StreamConfig, vulkan_session: object) -> StreamPlan:
    return make_plan(config, measure=False)


@pytest.fixture(scope="module")
def serial_hashes(plan: StreamPlan) -> tuple[str, ...]:
    """Those of one device, which is NumPy's."""
    hashes = run(plan, ITEMS, serial="cpu").hashes
    assert len(set(hashes)) == ITEMS
    return hashes


def with_window(plan: StreamPlan, window: int) -> StreamPlan:
    return replace(plan, links=tuple(replace(link, window=window) for link in plan.links))


def delays(stage: str, step: int) -> Sequence[Ticket]:
    """Delays that hash to the same at every run."""
    rng = random.Random(f"{stage} {step}")
    if rng.random() < 0.3:
        time.sleep(rng.random() * 3e-3)
    return ()


@pytest.mark.parametrize("window", [1, 2, 3, 8])
def test_the_worked_example_has_the_hashes_of_one_device(
    plan: StreamPlan, serial_hashes: tuple[str, ...], window: int
) -> None:
    done = run(with_window(plan, window), ITEMS, hold=delays)
    assert done.hashes == serial_hashes
    assert (done.items, done.in_order, done.lossy) == (ITEMS, True, ())
    assert done.period is not None
    assert done.period > 0
    assert [(stage["id"], stage["items_out"]) for stage in done.stages] == [
        ("cpu0", ITEMS), ("gpu0", ITEMS), ("gpu1", ITEMS), ("gpu2", ITEMS),
    ]  # fmt: skip
    assert [stage["link"]["way"] for stage in done.stages[:-1]] == ["host", "exported", "exported"]
    assert [one.step for one in done.observations] == [0, 10]
    assert {name for one in done.observations for name in one.values} == {"largest_defect"}


def test_a_serial_run_on_software_vulkan_has_the_same_hashes(plan: StreamPlan, serial_hashes: tuple[str, ...]) -> None:
    done = run(plan, 3, serial="vulkan:0")
    assert done.hashes == serial_hashes[:3]
    assert len(done.stages) == 1


def test_three_stages_on_two_logical_devices_have_the_hashes_of_numpy(vulkan_session: object) -> None:
    plan = make_plan(load(EXAMPLE.parent / "three_stages.yaml"), measure=False)
    done = run(plan, 4)
    assert done.hashes == run(plan, 4, serial="cpu").hashes
    assert [stage["link"]["way"] for stage in done.stages[:-1]] == ["device", "exported"]


def test_the_document_has_the_keys_that_are_promised(plan: StreamPlan, serial_hashes: tuple[str, ...]) -> None:
    document = json.loads(json.dumps(run(plan, 2).as_json()))
    assert {"items", "in_order", "hashes", "period_us", "predicted_period_us", "stages"} <= document.keys()
    assert document["hashes"] == list(serial_hashes[:2])
    assert document["observations"][0]["values"]["largest_defect"][0] > 0


def test_lossy_links_are_named_in_the_record(config: StreamConfig, serial_hashes: tuple[str, ...]) -> None:
    links = (config.links[0], replace(config.links[1], codec="bf16"), config.links[2])
    done = run(make_plan(replace(config, links=links), measure=False), 2)
    assert done.lossy == ("bf16",)
    assert done.as_json()["lossy"] == ["bf16"]
    assert done.stages[1]["link"]["fields"]
    assert set(done.hashes).isdisjoint(serial_hashes)


def test_a_state_that_is_too_deep_for_its_stage_is_refused_under_way(plan: StreamPlan) -> None:
    weak = replace(plan.stages[2], stage=replace(plan.stages[2].stage, max_semantic_depth=1))
    with pytest.raises(errors.StreamRuleError, match=r"R1 monotone depth: the State of step 0 has depth 2"):
        run(replace(plan, stages=(*plan.stages[:2], weak, plan.stages[3])), 2)


def test_ctrl_c_keeps_what_came_out(plan: StreamPlan, serial_hashes: tuple[str, ...]) -> None:
    count = 0

    def advance(n: int) -> None:
        nonlocal count
        count += n
        if count == 2:
            raise KeyboardInterrupt

    with pytest.raises(errors.Interrupted) as caught:
        run(plan, ITEMS, advance=advance)
    assert caught.value.partial.hashes == serial_hashes[:2]


def test_payloads_and_results_may_be_the_callers_own(plan: StreamPlan, config: StreamConfig) -> None:
    from dashi.stream._draws import items_of

    mine: list[dict[str, Any]] = [dict(items_of(config.source, 7))] * 2
    done = run(plan, payloads=mine, keep=True)
    assert done.items == 2
    assert done.hashes[0] == done.hashes[1]
    assert set(done.fields[0]) == {"z", "support", "signs", "supported"}
    assert int(done.fields[0]["supported"][0]) == np.count_nonzero(mine[0]["field"])


def test_few_items_are_drawn_before_the_run_and_many_as_they_are_sent(
    plan: StreamPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = list[int]()

    def draw(source: object, item: int) -> dict[str, Any]:
        drawn.append(item)
        return {}

    monkeypatch.setattr("dashi.stream.running.items_of", draw)
    nothing = replace(plan, config=replace(plan.config, source=SourceSpec()))  # no bytes, however many
    many = drawn_payloads(nothing, PREPARED_ITEMS + 1)
    assert not drawn
    assert len([*many]) == len(drawn) == PREPARED_ITEMS + 1
    drawn.clear()
    drawn_payloads(nothing, PREPARED_ITEMS)
    assert drawn == [*range(PREPARED_ITEMS)]


def test_nothing_sent_is_nothing_received(plan: StreamPlan) -> None:
    done = run(plan, 0)
    assert (done.items, done.hashes, done.period, done.in_order) == (0, (), None, True)
    with pytest.raises(errors.InputError, match=r"`items=-1` cannot be sent\. Fix: pass 0 or more"):
        run(plan, -1)


def test_p2p_between_unlike_devices_is_refused_or_stands_in() -> None:
    text = (
        EXAMPLE.read_text()
        .replace("gpu_weak: vulkan:0", "gpu_weak: cpu")
        .replace("cpu0, to: gpu0, mode: HOST_STAGING", "cpu0, to: gpu0")
    )
    with pytest.raises(errors.DashiError, match=r"P2P.*Fix:"):
        run(make_plan(parse(text), measure=False), 1)
    text = text.replace("{from: gpu0, to: gpu1, mode: P2P}", "{from: gpu0, to: gpu1, mode: P2P, fallback: true}")
    done = run(make_plan(parse(text), measure=False), 1)
    assert done.stages[1]["link"]["mode"] == "HOST_STAGING"
