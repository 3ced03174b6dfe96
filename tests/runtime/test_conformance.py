"""The harness behind `dashi kernels check` sees what a device gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.errors import DeviceLostError
from dashi.runtime._cpu_device import CpuDevice, CpuProgram
from dashi.runtime._null_device import NullDevice
from dashi.runtime.array import Array
from dashi.runtime.conformance import Result, Trial, check, check_one, trials
from dashi.runtime.device import AnyStep, Program, Step

Spoil = Callable[[Step], None]
TRIAL = Trial("f32", 3, "normal")


class SpoiledProgram(CpuProgram):
    """Runs its steps, then spoils what they made."""

    spoil: Spoil

    def run(self, feed: object = None) -> None:
        super().run()
        for step in self.steps:
            assert isinstance(step, Step)
            self.spoil(step)


class SpoiledDevice(CpuDevice):
    """A device that computes, and then does something wrong."""

    def __init__(self, spoil: Spoil) -> None:
        super().__init__()
        self._spoil = spoil

    def program(self, steps: Sequence[AnyStep], **options: Any) -> Program:
        made = SpoiledProgram(self, steps, "")
        made.spoil = self._spoil
        return made


class LazyDevice(SpoiledDevice):
    """Leaves the last element of each output as it was."""

    def program(self, steps: Sequence[AnyStep], **options: Any) -> Program:
        before = {id(a): a.numpy().reshape(-1)[-1:] for step in steps for a in step.outputs}
        self._spoil = lambda step: put(step.outputs[0], -1, before[id(step.outputs[0])][0])
        return super().program(steps)


def put(array: Array, index: int, value: Any) -> None:
    values = array.numpy()
    values.reshape(-1)[index] = value
    array.write(values)


def verdict(spoil: Spoil, kernel: str = "axpy") -> Result:
    with SpoiledDevice(spoil) as device:
        return check_one(device, kernels.get(kernel), TRIAL)


def test_right_results_pass() -> None:
    assert verdict(lambda step: None) == Result("axpy", "f32", 3, "x[65] y[65]", "normal", ok=True)


def test_a_wrong_bit_is_found_and_shown() -> None:
    def flip(step: Step) -> None:
        words = step.outputs[0].numpy().view(np.uint32)
        step.outputs[0].write((words ^ (np.arange(65) == 7)).astype(np.uint32).view(np.float32))

    outcome = verdict(flip)
    assert not outcome.ok
    assert outcome.index == 7
    assert int(outcome.got, 16) ^ int(outcome.expected, 16) == 1
    assert outcome.message.startswith("result[7] is ")
    assert outcome.message.endswith("; 1 of 65 elements differ")


def test_an_element_that_was_never_written_is_named() -> None:
    with LazyDevice(lambda step: None) as device:
        found = check_one(device, replace(kernels.get("axpy"), in_place=False), TRIAL)
    assert not found.ok
    assert found.message == "result[64] was never written; 1 of 65 elements differ"


def test_an_input_that_was_modified_is_named() -> None:
    found = verdict(lambda step: put(step.inputs[1], 0, 99))
    assert (found.ok, found.message) == (False, "the input y was modified")


def test_a_kernel_that_fails_only_in_place_is_caught() -> None:
    def spoil(step: Step) -> None:
        if step.outputs[0] is step.inputs[1]:
            put(step.outputs[0], 2, 99)

    found = verdict(spoil)
    assert not found.ok
    assert "with result in place of y" in found.message


def test_minus_zero_is_not_zero() -> None:
    kernel = kernels.get("sub")
    x = np.zeros(3, np.float32)
    assert kernel.reference(x, x).tobytes() == bytes(12)  # type: ignore[union-attr]

    def negate(step: Step) -> None:
        put(step.outputs[0], 5, -0.0)

    found = verdict(negate, "mul")
    assert (found.index, found.got) == (5, "0x80000000")


def test_missing_features_are_skipped_and_named() -> None:
    class Small(CpuDevice):
        def __init__(self) -> None:
            super().__init__()
            self.info = replace(self.info, features=frozenset({"timeline"}))

    with Small() as device:
        results = list(check(device, kernels.get("add"), quick=True))
    assert {(r.variant, r.ok, r.skipped) for r in results} == {
        ("f32", True, ""),
        ("f16", True, ""),
        ("f64", True, "fp64, int64"),
    }


def test_a_lost_device_is_an_error_not_a_result() -> None:
    def lose(step: Step) -> None:
        raise DeviceLostError("lost.", "open it again.")

    with pytest.raises(DeviceLostError):
        verdict(lose)


def test_null_device_records_every_kernel() -> None:
    with NullDevice() as device:
        results = [r for name in ("axpy", "reduce_sum", "gemv") for r in check(device, kernels.get(name), quick=True)]
    assert results
    assert {(r.ok, r.message) for r in results} == {(True, "recorded, not computed")}


def test_bound_of_a_kernel_that_is_not_portable_is_held() -> None:
    loose = replace(kernels.get("axpy"), portable=False, bound=1e-6)
    with CpuDevice() as device:
        results = [check_one(device, loose, t) for t in trials(loose, quick=True) if t.variant == "f32"]
    assert results
    assert not [r for r in results if not r.ok]
    with SpoiledDevice(lambda step: put(step.outputs[0], 0, 99)) as device:
        found = check_one(device, loose, TRIAL)
    assert "has a relative error of " in found.message
    assert found.message.endswith(", more than 1e-06")


def test_trials_without_float_inputs_are_not_repeated() -> None:
    assert {t.distribution for t in trials(kernels.get("iterate"))} == {"given"}
    kernel = replace(kernels.get("add"), tunings={})
    assert len(list(trials(kernel))) == len(kernel.dtypes) * len(kernel.cases) * 5
