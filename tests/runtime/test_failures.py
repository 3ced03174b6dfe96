"""Errors of work that nobody waited for: each of them is raised, once, by whoever asks next."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dashi.errors import HostStepError
from dashi.runtime import Array, Device, Program, open_device
from dashi.runtime._failures import UntoldFailures


@pytest.fixture(params=["cpu", "vulkan:0"])
def two_queues(request: pytest.FixtureRequest) -> Iterator[Device]:
    if request.param == "vulkan:0":
        request.getfixturevalue("vulkan_session")
    with open_device(request.param, queues=2, timeout=30) as device:
        yield device
        device.close()
        assert not getattr(getattr(device, "instance", None), "messages", None)


def failing(device: Device, x: Array, text: str, queue: int = 0) -> Program:
    """A program whose host step fails with a text."""

    def fail(_: Any) -> Any:
        raise ZeroDivisionError(text)

    return device.program([device.host_step(fail, [x], [x])], queue=queue)


def test_errors_that_nobody_was_told_of_are_raised_one_after_another(two_queues: Device) -> None:
    device, x = two_queues, two_queues.zeros(4)
    texts = ["first", "second", "third"]
    for text in texts:
        failing(device, x, text).submit()
    for text in texts:
        with pytest.raises(HostStepError, match=f"ZeroDivisionError: {text}"):
            device.wait()
    device.wait()


def test_an_error_that_somebody_was_told_of_is_not_raised_again(two_queues: Device) -> None:
    device, x = two_queues, two_queues.zeros(4)
    good = device.program([device.host_step(np.array, [x], [x])], queue=1)
    first = failing(device, x, "once").submit()
    depends = good.submit(after=[first])
    for ticket in (depends, first):
        with pytest.raises(HostStepError, match="once"):
            ticket.wait()
    device.wait()
    first = failing(device, x, "again").submit()
    depends = good.submit(after=[first])
    with pytest.raises(HostStepError, match="again"):
        first.wait()
    device.wait()
    assert depends.done


@pytest.mark.parametrize("name", ["cpu", "vulkan:0"])
def test_a_device_whose_failure_nobody_was_told_of_is_forgotten(vulkan_session: Device, name: str) -> None:
    def forget() -> tuple[weakref.ref[Device], weakref.ref[UntoldFailures]]:
        device = open_device(name)
        x = device.zeros(4)
        failing(device, x, "unseen").submit()
        while device.at_work():
            time.sleep(0.001)
        return weakref.ref(device), weakref.ref(device.failures)

    device, failures = forget()
    deadline = time.monotonic() + 10
    while device() is not None and time.monotonic() < deadline:
        gc.collect()  # the thread may be letting go still
        time.sleep(0.001)
    assert device() is None
    assert failures() is None
