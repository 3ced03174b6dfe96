"""Rules of annihilation: the same on every device, never a new site, sign or interface, and an end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi.core.carriers.check_kernel import PROJECTOR, check_kernel
from dashi.core.carriers.check_samples import fields
from dashi.errors import InputError
from dashi.flow.annihilation import RULES, Census, apply_rule
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device


def random_field(shape: tuple[int, int] = (24, 20), seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, shape).astype(np.int8), rng.random(shape, dtype=np.float32)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_only_removes_sites_and_interfaces_until_nothing_changes(rule: str, device: Device) -> None:
    field, strength = random_field()
    done = apply_rule(field, rule, strength=strength, eps=0.1, theta=0.3, device=device)
    assert done.fixed
    assert 0.0 < done.annihilated_fraction < 1.0
    assert ((done.field == 0) | (done.field == field)).all()
    for before, after in zip(done.steps, done.steps[1:], strict=False):
        assert after.plus <= before.plus
        assert after.minus <= before.minus
        assert after.opposite_pairs <= before.opposite_pairs
    with CpuDevice() as cpu:
        expected = apply_rule(field, rule, strength=strength, eps=0.1, theta=0.3, device=cpu)
    assert done.field.tobytes() == expected.field.tobytes()
    assert done.steps == expected.steps
    again = apply_rule(done.field, rule, strength=strength, eps=0.1, theta=0.3, device=device)
    assert again.steps[0] == again.steps[-1] == done.steps[-1]


@pytest.mark.parametrize("rule", RULES)
def test_the_fixed_point_of_every_rule_is_that_of_a_projector(rule: str) -> None:
    with CpuDevice() as cpu:

        def settled(field: np.ndarray) -> np.ndarray:
            return np.asarray(apply_rule(field, rule, device=cpu, rounds=1 << 12).field)

        samples = [s for s in fields((6, 8)) if s.ndim == 2]
        report = check_kernel(settled, samples[:6], expect=PROJECTOR)
    assert report.ok, str(report)


def test_weak_encounters_and_those_round_a_corner_are_survived() -> None:
    field = np.array([[1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 0], [0, 0, 1, -1]], np.int8)
    strength = np.ones((4, 4), np.float32)
    strength[3, 3] = 0.1
    assert apply_rule(field, "head-on", theta=0.5, strength=strength).field.tolist() == field.tolist()
    clashed = apply_rule(field, "clash", theta=0.5, strength=strength).field
    assert clashed.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, -1]]
    assert apply_rule(field, "head-on", theta=0.05, strength=strength).field[3].tolist() == [0, 0, 0, 0]


def test_the_census_counts_interfaces_once() -> None:
    field = np.array([[1, -1, 0], [1, 1, 0], [0, 0, 0]], np.int8)
    assert apply_rule(field, "box", radius=0).steps[0] == Census(3, 1, 2)


def test_rounds_bound_the_work() -> None:
    field, _ = random_field((40, 40), seed=2)
    assert len(apply_rule(field, "coherence", eps=0.1, rounds=1).steps) == 2
    assert not apply_rule(field, "coherence", eps=0.1, rounds=1).fixed


@pytest.mark.parametrize(
    ("field", "options"),
    [
        (np.full((4, 4), 2), {}), (np.zeros(4), {}), (np.zeros((0, 4)), {}), (np.zeros((4, 4)), {"rounds": 0}),
        (np.zeros((4, 4)), {"radius": 9}), (np.zeros((4, 4)), {"strength": np.ones((3, 3))}),
        (np.full((4, 4), np.nan), {}), (np.zeros((4, 4)), {"rule": "other"}),
    ],
)  # fmt: skip
def test_what_no_rule_applies_to_is_refused(field: np.ndarray, options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        apply_rule(field, **{"rule": "box", **options})
    assert caught.value.fix
