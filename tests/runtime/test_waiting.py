"""Work that waits: for other queues, for events, for other devices. Nobody who submits is held up, nothing hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Device, open_device
from dashi.runtime._sync import Queue
from dashi.runtime._vulkan_device import VulkanDevice

ONES = np.ones(8, np.float32)


@pytest.fixture
def several(vulkan: VulkanDevice) -> Iterator[Device]:
    """A device with three queues of its own, and two for copies, on one of the driver's."""
    device = open_device(vulkan.info.spec, queues=3)
    assert isinstance(device, VulkanDevice)
    yield device
    device.close()
    assert not device.instance.messages


def adding(device: Device, values: Any, *, queue: int = 0) -> Any:
    """A program that adds an array to itself, and the array that it writes."""
    x = device.array(values)
    step = device.bind("add", x, x)
    return device.program([step], queue=queue), step.outputs[0]


def test_work_begins_when_its_event_is_signalled(several: Device) -> None:
    program, y = adding(several, ONES)
    y.write(np.zeros(8, np.float32))
    event = several.event("go")
    ticket = program.submit(after=[event])
    assert not ticket.done
    assert not event.done
    event.signal()
    ticket.wait()
    assert ticket.done
    assert event.done
    event.wait()
    event.signal()  # harmless
    assert np.array_equal(y.numpy(), 2 * ONES)


def test_a_queue_that_stands_still_is_in_nobodys_way(several: Device) -> None:
    held, y = adding(several, ONES, queue=1)
    free, z = adding(several, 3 * ONES, queue=0)
    event = several.event()
    first = held.submit(after=[event])
    second = held.submit()
    free.submit().wait(timeout=10)
    assert not first.done
    assert not second.done
    third = free.submit(after=[second])
    fourth = free.submit()
    event.signal()
    fourth.wait()
    assert all(ticket.done for ticket in (first, second, third))
    assert np.array_equal(y.numpy() + z.numpy(), 8 * ONES)


def test_an_event_that_nobody_signals_is_named_when_the_wait_ends(several: Device) -> None:
    program, _ = adding(several, ONES)
    event = several.event("frame 7")
    ticket = program.submit(after=[event])
    with pytest.raises(
        errors.TimeoutError_,
        match=r"did not finish its work within 0\.15 s: it waits for the event 'frame 7' of vulkan:0\. Fix: signal",
    ):
        ticket.wait(timeout=0.15)
    with pytest.raises(errors.TimeoutError_, match=r"the event 'frame 7' .* was not signalled within 0\.01 s\. Fix:"):
        event.wait(timeout=0.01)
    event.signal()
    ticket.wait()


def test_an_event_can_be_signalled_by_work(several: Device) -> None:
    first, y = adding(several, ONES)
    second, z = adding(several, ONES, queue=1)
    gate, event = several.event(), several.event()
    later = second.submit(after=[event])
    event.signal(after=[first.submit(after=[gate])])
    assert not event.done
    gate.signal()
    later.wait()
    assert event.done
    assert np.array_equal(y.numpy(), z.numpy())


def test_work_of_two_other_queues_is_waited_for_within_the_submission(several: VulkanDevice) -> None:
    programs = [adding(several, ONES, queue=i)[0] for i in range(3)]
    tickets = [program.submit() for program in programs[:2]]
    before = [queue.submitted for queue in several.queues]
    programs[2].submit(after=tickets).wait()
    after = [queue.submitted for queue in several.queues]
    assert [b - a for a, b in zip(before, after, strict=True)] == [0, 0, 1, 0, 0]


def test_a_closed_device_lets_go_of_what_waited_for_an_event(fresh_vulkan: VulkanDevice) -> None:
    device = fresh_vulkan
    program, _ = adding(device, ONES)
    event = device.event("never")
    ticket = program.submit(after=[event])
    failed: list[BaseException] = []

    def wait(thing: Any) -> None:
        try:
            thing.wait()
        except errors.DashiError as error:
            failed.append(error)

    threads = [threading.Thread(target=wait, args=(thing,)) for thing in (ticket, event)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    start = time.monotonic()
    device.close()
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - start < 10
    assert any("closed while its work waited for the event 'never'" in str(error) for error in failed)
    with pytest.raises(errors.ClosedError):
        event.signal()


def test_work_of_another_device_is_waited_for_by_nobody_who_submits(several: Device, vulkan: VulkanDevice) -> None:
    source, _ = adding(vulkan, ONES)
    sink, y = adding(several, ONES)
    event = vulkan.event("begin")
    ticket = sink.submit(after=[source.submit(after=[event])])
    assert not ticket.done
    with pytest.raises(errors.TimeoutError_, match=r"it waits for work of vulkan:0\. Fix:"):
        ticket.wait(timeout=0.15)
    event.signal()
    ticket.wait()
    assert np.array_equal(y.numpy(), 2 * ONES)


def test_an_event_of_one_device_starts_work_of_another(several: Device, vulkan: VulkanDevice) -> None:
    sink, y = adding(several, ONES)
    event = vulkan.event()
    ticket = sink.submit(after=[event])
    assert not ticket.done
    event.signal()
    ticket.wait()
    assert np.array_equal(y.numpy(), 2 * ONES)


def test_a_device_that_closes_before_its_work_ended_is_an_error_of_the_work_that_waited(
    several: Device, fresh_vulkan: VulkanDevice
) -> None:
    program, _ = adding(fresh_vulkan, ONES)
    sink, _ = adding(several, ONES)
    ticket = sink.submit(after=[program.submit(after=[fresh_vulkan.event("lost")])])
    fresh_vulkan.close()
    with pytest.raises(errors.ClosedError, match="was closed"):
        ticket.wait()
    sink.submit().wait()  # the next one is not concerned


def test_the_drivers_own_queue_waits_for_several_events(
    fresh_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Queue, "_missing", lambda *_: None)  # as on a queue that is shared with nobody
    program, y = adding(fresh_vulkan, ONES)
    events = [fresh_vulkan.event(str(i)) for i in range(7)]
    ticket = program.submit(after=events)
    for event in events:
        assert not ticket.done
        event.signal()
    ticket.wait()
    program.submit(after=events[:1]).wait()
    program.run()
    assert np.array_equal(y.numpy(), 2 * ONES)
