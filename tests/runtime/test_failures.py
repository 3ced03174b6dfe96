"""Errors of work that nobody waited for: each of them is raised, once, by whoever asks next."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dashi.errors import HostStepError, OutOfMemoryError, TimeoutError_
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


@pytest.mark.parametrize("held", [True, False])
def test_later_work_of_the_queue_does_not_pass_over_a_failure(two_queues: Device, held: bool) -> None:
    device, x, y = two_queues, two_queues.zeros(4), two_queues.zeros(4)
    step = device.bind("scale", x, a=2.0)
    later = device.program([step], fetch=step.outputs, slots=3)
    other = device.program([device.bind("scale", y, a=2.0)], queue=1)
    before = later.submit()
    tickets = [failing(device, x, "stale").submit()]
    failed = tickets.pop() if held else None
    del tickets
    after = later.submit()
    other.submit().wait()  # nothing of that queue failed
    with pytest.raises(HostStepError, match="stale"):
        after.fetched(step.outputs[0])
    before.wait()
    assert after.fetched(step.outputs[0]).tolist() == [0] * 4  # whoever was told may look
    later.run()
    device.wait()
    if failed is not None:
        with pytest.raises(HostStepError, match="stale"):
            failed.wait()
    failing(device, x, "again").submit()
    with pytest.raises(HostStepError, match="again"):
        later.run()
    failing(device, x, "and again").submit()
    plain = device.program([device.bind("scale", x, a=2.0)])
    with pytest.raises(HostStepError, match="and again"):
        plain.run()
    plain.run()


def test_what_is_held_and_not_waited_for_is_told_to_whoever_reads(two_queues: Device) -> None:
    device, x = two_queues, two_queues.zeros(4)
    for ask in (x.numpy, lambda: x.write(np.ones(4, np.float32)), device.wait):
        held = failing(device, x, "held").submit()
        with pytest.raises(HostStepError, match="held"):
            ask()
        with pytest.raises(HostStepError, match="held"):
            held.wait()
        device.wait()


def test_transfers_that_come_after_everything_tell_of_all_that_failed(two_queues: Device) -> None:
    device, x = two_queues, two_queues.zeros(4)
    values = np.ones(4, np.float32)
    for queue in (0, 1):
        failing(device, x, f"in {queue}", queue).submit()
        alone = device.upload(x, values, after=[])
        with pytest.raises(HostStepError, match=f"in {queue}"):
            device.upload(x, values).wait()
        alone.wait()
        failing(device, x, f"of {queue}", queue).submit()
        down = device.download(x)
        failing(device, x, "later", queue).submit()
        with pytest.raises(HostStepError, match=f"of {queue}"):
            down.result()
        assert down.result().tolist() == [1] * 4
        with pytest.raises(HostStepError, match="later"):
            device.wait()


@pytest.mark.parametrize("name", ["cpu", "vulkan:0"])
def test_a_run_that_was_waited_for_in_vain_leaves_its_slot(vulkan_session: Device, name: str) -> None:
    assert vulkan_session
    with open_device(name, timeout=0.1) as device:
        x, may = device.zeros(4), threading.Event()
        step = device.host_step(lambda values: values + float(may.wait(20)), [x], [x])
        errors: list[TimeoutError_] = []
        with device.program([step], fetch=[x], slots=1) as program:
            for run in (program.run, program.run_timed):
                may.clear()
                with pytest.raises(TimeoutError_) as caught:
                    run()
                errors.append(caught.value)  # whose traceback holds the ticket
                may.set()
                program.submit().wait()
            assert program.fetched(x)[0] == 4
        assert len(errors) == 2


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


def test_held_work_that_cannot_be_submitted_is_an_error_of_all_that_comes_after(bare_vulkan: Device) -> None:
    """Held back until work of another queue is done, it is submitted by a thread, whose errors nobody sees: what comes
    later in its queue must not pass for it, and what waits for it is told."""
    with open_device("vulkan:0", queues=2, timeout=30, validation=False) as device:
        if len(device.by_role.compute) < 2:  # type: ignore[attr-defined]
            pytest.skip("one queue")
        x, y = device.array(np.ones(4, np.float32)), device.zeros(4)
        first = device.program([device.bind("scale", x, a=2.0, out=x)], queue=0)
        second = device.program([device.bind("scale", x, a=3.0, out=y)], queue=1)
        third = device.program([device.bind("scale", y, a=1.0)], queue=0)
        for submission in second._first.submissions[0]:  # type: ignore[attr-defined]
            submission._submit = lambda *_: -2  # out of memory, and not lost
        begin = device.event("begin")
        held = second.submit(after=[first.submit(after=[begin])])
        elsewhere = bare_vulkan.program([bare_vulkan.bind("scale", bare_vulkan.array(np.ones(4, np.float32)), a=1.0)])
        relayed = elsewhere.submit(after=[held])
        begin.signal()
        with pytest.raises(OutOfMemoryError, match="vkQueueSubmit found no device memory left"):
            held.wait()
        with pytest.raises(OutOfMemoryError):
            second.submit()
        with pytest.raises(OutOfMemoryError):
            relayed.wait()
        third.submit().wait()  # the other queue goes on
    bare_vulkan.wait()
