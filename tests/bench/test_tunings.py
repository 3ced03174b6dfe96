"""Tunings are chosen, checked, measured and remembered; they never change a bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dashi import kernels
from dashi.bench.kernels import tune
from dashi.errors import AbiError, InputError
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Kernel, Limits
from dashi.runtime import _tuning as tuning
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.conformance import Trial, check, check_one, trials
from dashi.runtime.info import DeviceInfo

INFO = DeviceInfo("vulkan:0", "made up", "discrete", vendor_id=1, device_id=2, uuid="aa")


def test_a_tuning_is_the_one_asked_for_or_set_or_remembered_or_preferred(
    twice: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CpuDevice() as device:
        device.info = replace(device.info, uuid="aa")
        assert device.tuning_for(twice, "f32") == "narrow"
        assert device.tuning_for(replace(twice, prefer=None), "f32") == "narrow"
        assert tuning.choose(twice, "f32", Limits(software=True), None, None) == "wide"
        device.tunings.put(twice, "f32", "huge")
        assert device.tuning_for(twice, "f32") == "huge"
        assert device.tuning_for(twice, "f64") == "narrow"
        monkeypatch.setenv("DASHI_TUNINGS", "gemm=other, twice = wide")
        assert device.tuning_for(twice, "f32") == "wide"
        assert device.tuning_for(replace(twice, name="other", aliases=("twice",)), "f32") == "wide"
        assert device.tuning_for(twice, "f32", "narrow") == "narrow"
        assert device.tuning_for(kernels.get("iterate"), "u32") is None


def test_a_tuning_that_does_not_exist_is_refused_with_those_that_do(
    twice: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.ones(3, np.float32)
    with CpuDevice() as device:
        with pytest.raises(InputError) as error:
            device.run(twice, x, tuning="tall")
        assert str(error.value) == "kernel 'twice' has no tuning 'tall'. Fix: use one of narrow, wide, huge."
        with pytest.raises(InputError) as error:
            device.run("iterate", np.ones(1, np.uint32), steps=1, tuning="tall")
        assert str(error.value) == "kernel 'iterate' has no tuning 'tall'. Fix: leave it away: it has none."
        monkeypatch.setenv("DASHI_TUNINGS", "twice")
        with pytest.raises(InputError) as error:
            device.run(twice, x)
        assert error.value.what == "DASHI_TUNINGS holds 'twice', which is not KERNEL=TUNING."
        monkeypatch.setenv("DASHI_TUNINGS", "")
        with pytest.raises(AbiError) as wrong:
            device.run(replace(twice, prefer=lambda limits, variant: "tall"), x)
        assert wrong.value.what == "kernel 'twice' prefers the tuning 'tall', which it does not have."


def test_what_was_remembered_outlives_the_device_but_not_damage(twice: Kernel, tmp_path: Path) -> None:
    tuning.Memory(INFO).put(twice, "f32", "wide")
    tuning.Memory(INFO).put(twice, "f64", "huge")
    assert tuning.Memory(INFO).get(twice, "f32") == "wide"
    assert tuning.Memory(replace(INFO, device_id=3)).get(twice, "f32") is None
    (file,) = (tmp_path / "cache" / "tunings").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert tuning.Memory(INFO).get(twice, "f32") is None
    with pytest.raises(InputError):
        tuning.Memory(INFO).put(twice, "f32", "tall")


def test_a_remembered_tuning_that_is_gone_is_not_used(twice: Kernel) -> None:
    assert tuning.choose(twice, "f32", Limits(), "of an older version", None) == "narrow"


def test_the_numbers_of_a_tuning_reach_plan_and_step(built: Kernel) -> None:
    with NullDevice() as null:
        x = null.empty(1000)
        for name, width in (("narrow", 32), ("wide", 128)):
            step = null.bind(built, x, tuning=name)
            assert (step.tuning, step.call.tuning) == (name, {"width": width})
            assert step.lowered.dispatches[0].spec == {"WIDTH": width}
    assert resolve_call(built, "f32", [(5,)]).tuning == {"width": 32}


def test_every_tuning_is_checked_on_every_case_and_those_too_large_are_skipped(
    built: Kernel, vulkan: VulkanDevice
) -> None:
    results = list(check(vulkan, built))
    assert {(r.case, r.tuning) for r in results} == {(c, t) for c in (0, 1) for t in built.tunings}
    distributions = {t: {r.distribution for r in results if r.tuning == t} for t in built.tunings}
    assert len(distributions["narrow"]) == 5
    assert distributions["wide"] == {"normal", "adversarial"}
    assert all(r.ok for r in results)
    assert {(r.tuning, r.skipped) for r in results if r.skipped} == {("huge", "limits for tuning huge")}


def test_a_tuning_that_the_device_would_choose_must_fit_it(built: Kernel, vulkan: VulkanDevice) -> None:
    own = replace(built, prefer=lambda limits, variant: "huge")
    failed = check_one(vulkan, own, Trial("f32", 0, "normal", "huge"))
    assert not failed.ok
    assert "workgroups of 65536 invocations" in failed.message


def test_a_kernel_without_tunings_is_tried_as_it_is() -> None:
    assert {t.tuning for t in trials(kernels.get("iterate"))} == {None}


def test_software_devices_say_so_in_their_limits(vulkan: VulkanDevice) -> None:
    assert vulkan.limits.software == (vulkan.info.type == "software")
    assert not NullDevice().limits.software


def test_tuning_remembers_the_fastest_that_fits(built: Kernel, bare_vulkan: VulkanDevice) -> None:
    small = replace(built, bench=built.bench[1:])
    measurement = tune(bare_vulkan, small, "f32")
    assert set(measurement.seconds) == {"narrow", "wide"}
    assert measurement.best == min(measurement.seconds, key=lambda name: measurement.seconds[name])
    assert len(measurement.notes) == 1
    assert measurement.notes[0].startswith("huge: does not fit: ")
    other = next(name for name in measurement.seconds if name != measurement.best)
    with_rule = replace(small, prefer=lambda limits, variant: other)
    assert bare_vulkan.tuning_for(with_rule, "f32") == measurement.best
    assert tuning.Memory(bare_vulkan.info).get(small, "f32") == measurement.best
