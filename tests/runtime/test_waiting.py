"""Work that waits: for other queues, for events, for other devices. Nobody who submits is held up, nothing hangs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from dashi import errors
from dashi.runtime import Device, Event, Ticket, open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._sync import Queue
from dashi.runtime._vulkan_device import VulkanDevice

ONES = np.ones(8, np.float32)


@pytest.fixture
def several_vulkan(vulkan: VulkanDevice) -> Iterator[VulkanDevice]:
    """A device with three queues of its own, and two for copies, on one of the driver's."""
    device = open_device(vulkan.info.spec, queues=3)
    assert isinstance(device, VulkanDevice)
    yield device
    device.close()
    assert not device.instance.messages


@pytest.fixture(params=["cpu", "vulkan"])
def several(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Every device that computes, with several queues."""
    if request.param == "cpu":
        with CpuDevice() as cpu:
            yield cpu
    else:
        yield request.getfixturevalue("several_vulkan")


@pytest.fixture(params=["cpu", "null", "vulkan"])
def other(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Another device, of every kind, which the test may close."""
    if request.param == "vulkan":
        yield request.getfixturevalue("fresh_vulkan")
    else:
        with open_device(request.param) as device:
            yield device


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
        match=r"did not finish its work within 0\.15 s: it waits for the event 'frame 7' of \S+\. Fix: signal",
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


def test_work_of_two_other_queues_is_waited_for_within_the_submission(several_vulkan: VulkanDevice) -> None:
    programs = [adding(several_vulkan, ONES, queue=i)[0] for i in range(3)]
    tickets = [program.submit() for program in programs[:2]]
    before = [queue.submitted for queue in several_vulkan.queues]
    programs[2].submit(after=tickets).wait()
    after = [queue.submitted for queue in several_vulkan.queues]
    assert [b - a for a, b in zip(before, after, strict=True)] == [0, 0, 1, 0, 0]


def test_a_closed_device_lets_go_of_what_waited_for_an_event(other: Device) -> None:
    program, _ = adding(other, ONES)
    event = other.event("never")
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
    other.close()
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - start < 10
    assert any("closed while its work waited for the event 'never'" in str(error) for error in failed)
    with pytest.raises(errors.ClosedError):
        event.signal()


def test_work_of_another_device_is_waited_for_by_nobody_who_submits(several: Device, other: Device) -> None:
    source, _ = adding(other, ONES)
    sink, y = adding(several, ONES)
    event = other.event("begin")
    ticket = sink.submit(after=[source.submit(after=[event])])
    assert not ticket.done
    with pytest.raises(errors.TimeoutError_, match=rf"it waits for work of {other.info.spec}\. Fix:"):
        ticket.wait(timeout=0.15)
    event.signal()
    ticket.wait()
    assert np.array_equal(y.numpy(), 2 * ONES)


def test_an_event_of_one_device_starts_work_of_another(several: Device, other: Device) -> None:
    sink, y = adding(several, ONES)
    event = other.event()
    ticket = sink.submit(after=[event])
    assert not ticket.done
    event.signal()
    ticket.wait()
    assert np.array_equal(y.numpy(), 2 * ONES)


def test_a_device_that_closes_before_its_work_ended_is_an_error_of_the_work_that_waited(
    several: Device, other: Device
) -> None:
    program, _ = adding(other, ONES)
    sink, _ = adding(several, ONES)
    ticket = sink.submit(after=[program.submit(after=[other.event("lost")])])
    other.close()
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


def test_work_that_does_nothing_comes_after_its_event_too() -> None:
    with open_device("null") as null, open_device("cpu") as cpu:
        program, _ = adding(null, ONES)
        event = cpu.event()
        ticket = program.submit(after=[event])
        assert not ticket.done
        with pytest.raises(errors.TimeoutError_, match=r"work of cpu was not signalled within 0\.01 s"):
            ticket.wait(timeout=0.01)
        event.signal()
        ticket.wait()
        assert ticket.done


@pytest.mark.parametrize("wrong", ["now", 3, [None], "event"])
def test_what_is_no_ticket_is_refused(several: Device, wrong: object) -> None:
    program, _ = adding(several, ONES)
    with pytest.raises(errors.InputError, match=r"`after` takes a list of tickets"):
        program.submit(after=several.event() if wrong == "event" else wrong)  # type: ignore[arg-type]
    with pytest.raises(errors.InputError, match=r"`after` takes a list of tickets"):
        several.event().signal(after=wrong)  # type: ignore[arg-type]


@hypothesis.settings(max_examples=15, deadline=None)
@hypothesis.given(
    rows=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.sampled_from([None, 0, 1])), min_size=1),
    seed=st.integers(0, 99),
)
def test_random_work_on_several_queues_and_devices_gives_the_values_of_its_order(
    several_pair: tuple[Device, Device], rows: list[tuple[int, int, int | None]], seed: int
) -> None:
    """Programs add to one array of each device in turn; each comes after the one before it on whatever queue and device
    that was, or after an event that is signalled when all is submitted."""
    arrays = [device.zeros(4) for device in several_pair]
    ones = [device.array(np.ones(4, np.float32)) for device in several_pair]
    programs = {
        (i, queue): device.program([device.bind("axpy", arrays[i], ones[i], a=2.0, out=arrays[i])], queue=queue)
        for i, device in enumerate(several_pair)
        for queue in range(3)
    }
    expected = [0.0, 0.0]
    events, before = list[Event](), list[Ticket]()
    for i, queue, signalled_by in rows[:12]:
        after = list(before)
        if signalled_by is not None:
            events.append(several_pair[signalled_by].event())
            after.append(events[-1])
        before = [programs[i, queue].submit(after=after)]
        expected[i] = 2 * expected[i] + 1
    order = list(range(len(events)))
    random.Random(seed).shuffle(order)
    for number in order:
        events[number].signal()
    before[0].wait(timeout=60)
    assert [array.numpy().tolist() for array in arrays] == [[value] * 4 for value in expected]


@pytest.fixture(params=["vulkan vulkan", "vulkan cpu", "cpu cpu"], scope="module")
def several_pair(request: pytest.FixtureRequest) -> Iterator[tuple[Device, Device]]:
    request.getfixturevalue("vulkan_session")
    names = {"vulkan": "vulkan:0", "cpu": "cpu"}
    first, second = (open_device(names[name], queues=3) for name in request.param.split())
    yield first, second
    for device in (first, second):
        device.close()
        assert not getattr(getattr(device, "instance", None), "messages", None)
