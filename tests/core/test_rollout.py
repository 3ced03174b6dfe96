"""Rollouts: the same bits each way and on each device, observers on strides, and what happens when something fails."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.core.operators.affine import Affine, Linear
from dashi.core.operators.operator import Operator
from dashi.core.rollouts._strategies import choose_strategy
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import FeatureError, InputError, Interrupted, NonFiniteError, ShapeError
from dashi.kernels.hash._blake3 import hexdigest128
from dashi.kernels.portable import canon, contract
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime.device import Device, Step

RNG = np.random.default_rng(7)


def rotation(d: int, dtype: str = "float32") -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))[0].astype(dtype)


def start(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(dtype)


def summary(r: Run) -> tuple[object, ...]:
    return (r.steps, r.state.tobytes(), r.hashes, r.observations, r.sheet.tobytes(), r.sheet_steps)


OPERATORS: dict[str, Operator] = {
    "linear": Linear(rotation(130)),
    "linear in fp64": Linear(rotation(65, "float64")),
    "squash": Affine(rotation(70), start(70) * np.float32(0.1), "squash", alpha=1.1),
    "softplus": Affine(rotation(33, "float64"), start(33, dtype="float64"), "softplus"),
    "clamp": Affine(rotation(129), None, "clamp", low=-0.5, high=0.75),
}


@pytest.mark.parametrize("states", [None, 3])
@pytest.mark.parametrize("name", OPERATORS)
def test_every_way_and_device_gives_the_same_bits(device: Device, name: str, states: int | None) -> None:
    operator = OPERATORS[name]
    shape = operator.shape if states is None else (states, *operator.shape)
    z0 = start(*shape, dtype=operator.dtype.name)
    strides: dict[str, Any] = {"hash_every": 10, "observe_every": 7, "sheet_every": 5, "bands": 4}
    with CpuDevice() as reference:
        want = rollout(operator, z0, 41, device=reference, strategy="stepwise", **strides)
    for way in ("auto", "stepwise", "workgroup"):
        assert summary(rollout(operator, z0, 41, device=device, strategy=way, **strides)) == summary(want), way
    assert [h.step for h in want.hashes] == [10, 20, 30, 40, 41]
    assert [o.step for o in want.observations] == [7, 14, 21, 28, 35, 41]
    assert want.sheet.shape == (8, 4)


def test_a_step_is_a_row_times_the_matrix() -> None:
    matrix, z0 = RNG.standard_normal((5, 5)), RNG.standard_normal(5)
    with CpuDevice() as device:
        got = rollout(Linear(matrix), z0, 1, device=device).state[0]
    assert np.array_equal(got, contract(canon(z0), matrix))
    np.testing.assert_allclose(got, z0 @ matrix, rtol=1e-14)  # a few roundings of five products
    assert not np.allclose(got, matrix @ z0)


def test_an_ensemble_is_its_states_one_by_one(device: Device) -> None:
    operator, z0 = OPERATORS["squash"], start(4, 70)
    together = rollout(operator, z0, 25, device=device).state
    for i in range(4):
        assert np.array_equal(together[i], rollout(operator, z0[i], 25, device=device).state[0])


def test_hashes_are_of_the_bytes_of_the_states(device: Device) -> None:
    done = rollout(OPERATORS["linear"], start(2, 130), 12, device=device, hash_every=12)
    assert done.hashes[-1].digest == hexdigest128(done.state.tobytes())


def test_observations_say_what_a_step_did(device: Device) -> None:
    operator = Linear(np.float64(0.5) * np.eye(6))
    z0 = np.arange(1.0, 7.0)
    observations = rollout(operator, z0, 4, device=device, observe_every=2).observations
    norm = np.linalg.norm(z0)
    assert [o.step for o in observations] == [2, 4]
    assert [o.ratio for o in observations] == [0.5, 0.5]
    np.testing.assert_allclose([o.norm for o in observations], [norm / 4, norm / 16], rtol=1e-15)
    assert observations[0].defect == 6 / 4
    assert observations[0].nonfinite == 0
    assert observations[0].first_nonfinite is None


def test_the_sheet_holds_band_energies(device: Device) -> None:
    operator = Linear(np.eye(8))
    z0 = np.arange(8.0)
    done = rollout(operator, z0, 6, device=device, sheet_every=2, bands=[0, 2, 8])
    assert done.sheet_steps == (2, 4, 6)
    assert np.array_equal(done.sheet, [[1.0, 139.0]] * 3)


def test_a_rollout_resumes_with_the_hashes_of_one_that_went_through(device: Device) -> None:
    operator, z0 = OPERATORS["linear"], start(130)
    strides: dict[str, Any] = {"hash_every": 10, "observe_every": 4, "sheet_every": 3}
    runs: list[Run] = []
    whole = rollout(operator, z0, 50, device=device, keep_every=20, keep=runs.append, **strides)
    assert [k.steps for k in runs] == [20, 40]
    assert all(len(k.hashes) == k.steps // 10 for k in runs)
    again = rollout(operator, z0, 50, device=device, resume=runs[0], keep_every=20, keep=runs.append, **strides)
    assert summary(again) == summary(whole)


def test_long_stretches_without_a_look_are_cut_and_give_the_same_bits(device: Device) -> None:
    operator, z0 = Linear(rotation(17)), start(17)
    some = rollout(operator, z0, 2500, device=device, strategy="stepwise", hash_every=2500)
    all_at_once = rollout(operator, z0, 2500, device=device, strategy="workgroup", hash_every=500)
    assert some.hashes[-1] == all_at_once.hashes[-1]
    assert len(all_at_once.hashes) == 5


@pytest.mark.parametrize("way", ["stepwise", "workgroup"])
def test_a_state_that_is_not_finite_stops_the_run_at_its_step_and_index(device: Device, way: str) -> None:
    matrix = np.eye(8, dtype=np.float32)
    matrix[5, 5] = 16.0  # 2^4 a step: 3 * 2^128 is past the largest float at step 32
    z0 = np.full(8, 3.0, np.float32)
    with pytest.raises(NonFiniteError, match=r"not finite after step 32, the first at index 5.* Fix: ") as error:
        rollout(Linear(matrix), z0, 100, device=device, strategy=way, observe_every=10)
    assert error.value.fix.endswith("let it go on: stop_on_nonfinite=False.")  # commands have options of their own
    gone_on = rollout(Linear(matrix), z0, 100, device=device, strategy=way, observe_every=50, stop_on_nonfinite=False)
    # An infinity times a zero of the matrix is NaN: all values are lost a step later.
    assert gone_on.observations[-1].nonfinite == 8
    assert gone_on.observations[-1].first_nonfinite == 0


class Unlucky(Linear):
    """Its tagged kernel fails the first time, as a poll that ran out would."""

    kind = "unlucky"

    def __init__(self, failures: int) -> None:
        super().__init__(rotation(20))
        self.failures = failures

    def unsupported_reason(self, strategy: str, limits: object, states: int) -> str:
        return ""

    def step_many(self, device: Device, constants, source, target, flag, count, strategy) -> Step:
        kernel = kernels.get("rollout_tagged")

        def reference(*inputs, **scalars):
            result, flags = kernel.reference(*inputs, **scalars)
            if self.failures:
                self.failures -= 1
                return np.full_like(result, np.nan), np.ones(4, np.uint32)
            return result, flags

        bound = replace(kernel, reference=reference)
        operands = (source, constants["A"], constants["b"])
        return device.bind(bound, *operands, out=(target, flag), steps=count, **self._scalars)


@pytest.mark.parametrize(("failures", "way"), [(1, "tagged"), (9, "tagged")])
def test_a_failed_block_is_repeated_step_by_step(failures: int, way: str) -> None:
    with CpuDevice() as device:
        want = rollout(Linear(rotation(20)), start(20), 600, device=device, hash_every=3, observe_every=50)
        operator = Unlucky(failures)
        got = rollout(operator, start(20), 600, device=device, strategy=way, hash_every=3, observe_every=50)
    assert (got.hashes, got.observations) == (want.hashes, want.observations)
    assert got.reruns >= 1
    assert np.array_equal(got.state, want.state)


def test_ctrl_c_keeps_what_was_finished_and_it_can_be_resumed() -> None:
    operator, z0 = Linear(rotation(64)), start(64)
    event = threading.Event()

    def press() -> None:
        event.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()

    def note(_: int) -> None:
        event.set()
        time.sleep(0.01)

    with CpuDevice() as device:
        with pytest.raises(Interrupted) as stop:
            rollout(operator, z0, 200_000, device=device, hash_every=100, progress=note)
        presser.join()
        part = stop.value.partial
        assert part.stopped
        assert 0 < part.steps < 200_000
        more = part.steps + 50
        whole = rollout(operator, z0, more, device=device, hash_every=100)
        assert rollout(operator, z0, more, device=device, hash_every=100, resume=part).hashes[-1] == whole.hashes[-1]
        assert part.hashes == whole.hashes[: len(part.hashes)]


def test_progress_adds_up_to_all_steps(device: Device) -> None:
    done: list[int] = []
    rollout(OPERATORS["clamp"], start(129), 333, device=device, hash_every=50, progress=done.append)
    assert sum(done) == 333


def test_the_null_device_records_and_gives_no_hashes() -> None:
    with NullDevice() as device:
        done = rollout(Linear(rotation(40)), start(40), 100, device=device, hash_every=10, observe_every=10)
    assert done.steps == 100
    assert done.hashes == ()
    assert done.dispatches > 0


def test_dispatches_are_those_that_were_executed(vulkan: Device) -> None:
    one_by_one = rollout(Linear(rotation(40)), start(40), 100, device=vulkan, strategy="stepwise")
    at_once = rollout(Linear(rotation(40)), start(40), 100, device=vulkan, strategy="workgroup")
    assert one_by_one.dispatches > 100
    assert 0 < at_once.dispatches < 10


def test_the_way_is_chosen_and_explained(vulkan: Device) -> None:
    small, reason = choose_strategy(Linear(rotation(16)), vulkan, 1)
    assert small == "workgroup"
    assert "processor" in reason
    large, reason = choose_strategy(Linear(rotation(512)), vulkan, 1)
    assert large == "stepwise"
    assert "workgroup: expected to be slower" in reason


def test_tagged_workgroups_are_refused_on_a_processor(vulkan: Device) -> None:
    message = "by the strategy 'tagged' here: workgroups of a processor run one after another. Fix: use auto"
    with pytest.raises(FeatureError, match=message):
        rollout(Linear(rotation(16)), start(16), 5, device=vulkan, strategy="tagged")


@pytest.mark.parametrize(
    ("z0", "options", "error", "text"),
    [
        (start(7), {}, ShapeError, r"z0 has shape \(7,\); the operator advances states of shape \(8,\)"),
        (start(0, 8), {}, ShapeError, "for an ensemble"),
        (start(8).astype(np.float64), {}, InputError, "z0 is float64, the operator is float32"),
        (np.full(8, np.nan, np.float32), {}, InputError, r"z0 holds 8 values that are not finite, the first at \["),
        (np.arange(8), {}, InputError, "z0 is an array of int64"),
        (start(8), {"steps": -1}, InputError, "-1 steps were asked for"),
        (start(8), {"hash_every": -5}, InputError, "the stride 'hash' is -5"),
        (start(8), {"sheet_every": 1, "bands": 9}, InputError, "a state of 8 values has no 9 bands"),
        (start(8), {"sheet_every": 1, "bands": [0, 5, 3]}, InputError, "do not rise"),
        (start(8), {"strategy": "sideways"}, InputError, "there is no strategy 'sideways'"),
    ],
)
def test_bad_input_is_refused_with_a_fix(z0, options, error, text) -> None:
    given = {"steps": 3, **options}
    with CpuDevice() as device, pytest.raises(error, match=text) as caught:
        rollout(Linear(rotation(8)), z0, given.pop("steps"), device=device, **given)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Linear(np.zeros((3, 4))), r"A has shape \(3, 4\); it must be square"),
        (lambda: Linear(np.full((2, 2), np.inf)), "A holds 4 values that are not finite"),
        (lambda: Linear(np.eye(3, dtype=int)), "A is an array of int64"),
        (lambda: Affine(np.eye(3), np.zeros(4)), "b is float64 of shape"),
        (lambda: Affine(np.eye(3), psi="sine"), "there is no nonlinearity 'sine'"),
        (lambda: Affine(np.eye(3), psi="clamp", low=1, high=0), "there is nothing between low=1 and high=0"),
        (lambda: Affine(np.eye(3), psi="squash", alpha=np.nan), "alpha, low, high are nan"),
    ],
)
def test_operators_that_make_no_sense_are_refused(make, text) -> None:
    with pytest.raises(InputError, match=text) as caught:
        make()
    assert caught.value.fix


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_restored_from_its_arrays_and_parameters(name: str) -> None:
    operator = OPERATORS[name]
    again = type(operator).restore(operator.arrays, operator.parameters)
    assert again.kind == operator.kind
    assert dict(again.parameters) == dict(operator.parameters)
    assert all(np.array_equal(again.arrays[k], v) for k, v in operator.arrays.items())


def test_fast_products_are_near_and_say_that_they_are_not_portable(device: Device) -> None:
    matrix, z0 = rotation(96), start(5, 96)
    fast = Linear(matrix, portable=False)
    assert not fast.portable
    got: Any = rollout(fast, z0, 20, device=device).state
    # Twenty steps, each with a relative rounding error of at most 96/2 units.
    np.testing.assert_allclose(got, z0 @ np.linalg.matrix_power(matrix.astype(np.float64), 20), atol=1e-4)
