"""What an observer asks of a run, and what it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi.core.operators.affine import Linear
from dashi.core.rollouts._engine import DeviceEngine
from dashi.core.rollouts.observer import Bound, Context, Observer
from dashi.core.rollouts.rollout import rollout
from dashi.core.traces.queue import watch
from dashi.core.traces.trace import Trace
from dashi.errors import FeatureError
from dashi.runtime.device import Device


class Looking(Observer[int]):
    """Notes where it looks, and the states that the run begins with."""

    name = "looking"

    def __init__(self, every: int, *, needs_finite: bool = False) -> None:
        self.every, self.needs_finite = every, needs_finite
        self.begins: list[Any] = []

    def bind(self, context: Context) -> Bound:
        self.begins.append(context.states)
        return Bound(take=lambda step, _: step)


@pytest.mark.parametrize("needs_finite", [False, True])
def test_states_are_checked_wherever_an_observer_needs_finite_ones(
    device: Device, monkeypatch: pytest.MonkeyPatch, needs_finite: bool
) -> None:
    checked: list[bool] = []
    submit = DeviceEngine.submit

    def note(self: DeviceEngine, block: Any, strategy: Any) -> Any:
        checked.extend(segment.check for segment in block.segments)
        return submit(self, block, strategy)

    monkeypatch.setattr(DeviceEngine, "submit", note)
    looking = Looking(2, needs_finite=needs_finite)
    run = rollout(Linear(np.eye(3)), np.ones(3), 6, device=device, observers=[looking])
    assert checked == [needs_finite, needs_finite, True]
    assert run.records["looking"] == (2, 4, 6)


def test_an_observer_is_told_the_states_that_a_run_starts_or_goes_on_from(device: Device) -> None:
    looking, double = Looking(1), Linear(2 * np.eye(2))
    part = rollout(double, np.ones(2), 3, device=device, observers=[looking])
    rollout(double, np.ones(2), 4, device=device, observers=[looking], resume=part)
    assert [states.tolist() for states in looking.begins] == [[[1.0, 1.0]], [[8.0, 8.0]]]


def test_an_observer_that_cannot_read_its_records_says_what_it_lacks() -> None:
    with pytest.raises(FeatureError, match=r"'looking' puts records .* Fix: give Looking a method unpack\(step"):
        Looking(1).unpack(3, {})


def test_traces_call_blocks_of_steps_by_plain_words(device: Device) -> None:
    trace = Trace()
    with watch(device, trace):
        rollout(Linear(np.eye(3)), np.ones(3), 4, device=device, strategy="stepwise")
        rollout(Linear(np.eye(3)), np.ones(3), 4, device=device, strategy="workgroup")
    assert {"steps one by one", "many steps in a workgroup"} <= {span.name for span in trace.spans}
