"""Submissions that go to the driver together: one call, in order, and before anybody waits for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from dashi.errors import ClosedError, DeviceLostError
from dashi.runtime import Array, Device, Program, open_device
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.landing import Ticket

Calls = list[int]


@pytest.fixture
def counted(vulkan_session: Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[VulkanDevice, Calls]]:
    """A device, and how many submissions each call of vkQueueSubmit had since."""
    assert vulkan_session
    with open_device("vulkan:0", timeout=20) as device:
        assert isinstance(device, VulkanDevice)
        submit, calls = device.raw.fns.QueueSubmit, Calls()

        def count(queue: int, number: int, at: int, fence: int) -> int:
            calls.append(number)
            return int(submit(queue, number, at, fence))

        monkeypatch.setattr(device.raw.fns, "QueueSubmit", count)
        yield device, calls


def doubling(device: Device, x: Array) -> Program:
    return device.program([device.bind("scale", x, out=x, a=2.0)], fetch=[x], slots=4)


def test_what_is_submitted_together_is_one_call_in_its_order(counted: tuple[VulkanDevice, Calls]) -> None:
    device, calls = counted
    x = device.array(np.ones(4, np.float32))
    first, second = doubling(device, x), device.program([device.bind("add", x, x, out=x)], queue=0)
    calls.clear()
    with device.together():
        tickets = [first.submit(), second.submit(), first.submit()]
        assert calls == []
    assert calls == [3]
    assert [tickets[0].fetched(x)[0], tickets[2].fetched(x)[0]] == [2, 8]
    assert x.numpy()[0] == 8


def test_whoever_waits_inside_does_not_wait_for_ever(counted: tuple[VulkanDevice, Calls]) -> None:
    device, calls = counted
    x = device.array(np.ones(4, np.float32))
    program = doubling(device, x)
    calls.clear()
    with device.together():
        ticket = program.submit()
        assert ticket.fetched(x)[0] == 2
        assert calls == [1]
        program.submit()
        assert x.numpy()[0] == 4
        program.submit()
    device.wait()
    assert x.numpy()[0] == 8


def test_a_program_that_runs_again_is_submitted_before(counted: tuple[VulkanDevice, Calls]) -> None:
    device, calls = counted
    x = device.array(np.ones(4, np.float32))
    program = device.program([device.bind("scale", x, out=x, a=2.0)])
    calls.clear()
    with device.together(), device.together():
        for _ in range(3):
            program.submit()
    assert calls == [1, 1, 1]
    assert x.numpy()[0] == 8


def test_another_thread_takes_along_what_was_gathered(counted: tuple[VulkanDevice, Calls]) -> None:
    device, calls = counted
    x, y = device.array(np.ones(4, np.float32)), device.array(np.ones(4, np.float32))
    first, second = doubling(device, x), doubling(device, y)
    calls.clear()
    with device.together():
        first.submit()
        thread = threading.Thread(target=second.submit)
        thread.start()
        thread.join(20)
        assert calls == [2]
        first.submit()
    assert calls == [2, 1]
    assert (x.numpy()[0], y.numpy()[0]) == (4, 2)


def test_a_call_that_fails_is_an_error_of_all_that_were_in_it(
    counted: tuple[VulkanDevice, Calls], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, _ = counted
    x = device.array(np.ones(4, np.float32))
    program = doubling(device, x)
    tickets: list[Ticket] = []

    def submit_to_a_lost_device() -> None:
        with device.together():
            tickets.extend([program.submit(), program.submit()])
            for submission in device.queue._port.gathered:  # pyright: ignore[reportPrivateUsage]
                monkeypatch.setattr(submission, "_submit", lambda *_: -4)

    with pytest.raises(DeviceLostError, match="Fix: "):
        submit_to_a_lost_device()
    assert len(tickets) == 2
    for ticket in tickets:
        with pytest.raises(DeviceLostError, match="lost"):
            ticket.wait()


def test_a_device_may_close_while_work_is_gathered(counted: tuple[VulkanDevice, Calls]) -> None:
    device, _ = counted
    program = doubling(device, device.array(np.ones(4, np.float32)))
    with device.together():
        ticket = program.submit()
        device.close()
    with pytest.raises(ClosedError):
        ticket.wait()


@pytest.mark.parametrize("name", ["cpu", "null"])
def test_other_devices_submit_at_once(name: str) -> None:
    with open_device(name) as device:
        step = device.bind("add", device.array(np.ones(4, np.float32)), device.array(np.ones(4, np.float32)))
        with device.together():
            device.program([step]).submit().wait()
