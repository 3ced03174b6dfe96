"""Binding a kernel: plans are made once for the same shapes and numbers, and never taken for another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.errors import DTypeError, InputError
from dashi.runtime import Device
from dashi.runtime._vulkan_device import VulkanDevice


def test_a_plan_is_made_once_for_the_same_shapes_and_numbers(device: Device) -> None:
    x, y = (device.array(np.ones(100, np.float32)) for _ in range(2))
    first = device.bind("axpy", x, y, a=2.0)
    again = device.bind("axpy", y, x, a=2.0)
    assert again.call is first.call
    for other in (
        device.bind("axpy", x, y, a=3.0),
        device.bind("axpy", x, y, a=2),
        device.bind("axpy", x.reshape(10, 10), y.reshape(10, 10), a=2.0),
        device.bind("axpy", x.view(np.float32)[:50], y[:50], a=2.0),
    ):
        assert other.call is not first.call
    with device.program([first, again]) as program:
        program.run()
    assert set(again.outputs[0].numpy()) == {3.0}


def test_numbers_that_are_equal_but_differ_in_their_bits_have_plans_of_their_own(device: Device) -> None:
    x = device.array(np.ones(4, np.float32))
    positive, negative = (device.bind("fill", x, value=value) for value in (0.0, -0.0))
    assert positive.call is not negative.call
    assert [np.signbit(step.call.scalars["value"]) for step in (positive, negative)] == [False, True]


def test_what_does_not_fit_is_refused_the_second_time_too(device: Device) -> None:
    x, y = device.array(np.ones(8, np.float32)), device.array(np.ones(8, np.float64))
    for _ in range(2):
        with pytest.raises(DTypeError, match="but x is float32"):
            device.bind("add", x, y)
        with pytest.raises(InputError, match="has no scalar 'b'"):
            device.bind("axpy", x, x, a=1.0, b=2.0)
        with pytest.raises(InputError, match="needs the scalar 'a'"):
            device.bind("axpy", x, x)
        with pytest.raises(InputError, match="not an array of this device"):
            device.bind("add", x, np.ones(8, np.float32))  # type: ignore[arg-type]
        with pytest.raises(InputError, match="Fix: "):
            device.bind("axpy", x, x, a=[1.0])  # type: ignore[arg-type]
        device.bind("add", x, x)


def test_another_tuning_gives_another_plan(vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernels.get("transpose")
    x = vulkan.array(np.ones((8, 8), np.float32))
    usual = vulkan.bind(kernel, x)
    for name in kernel.tunings:
        monkeypatch.setenv("DASHI_TUNINGS", f"transpose={name}")
        assert vulkan.bind(kernel, x).tuning == name
    monkeypatch.delenv("DASHI_TUNINGS")
    assert vulkan.bind(kernel, x).tuning == usual.tuning


def test_steps_bound_after_the_pipelines_were_destroyed_have_new_ones(fresh_vulkan: VulkanDevice) -> None:
    x = fresh_vulkan.array(np.ones(64, np.float32))
    for _ in range(2):
        step: Any = fresh_vulkan.bind("scale", x, a=2.0)
        with fresh_vulkan.program([step]) as program:
            program.run()
        assert set(step.outputs[0].numpy()) == {2.0}
        del step
        fresh_vulkan.wait()
        fresh_vulkan.pipelines.clear()
