"""Submissions are told of, and devices and the host have one axis of time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dashi.errors import InputError, NoResultError
from dashi.runtime import Device, Submission, open_device
from dashi.runtime._vulkan_device import VulkanDevice

ONES = np.ones(8, np.float32)


@pytest.fixture(params=["cpu", "null", "vulkan:0"])
def any_device(request: pytest.FixtureRequest) -> Iterator[Device]:
    if request.param == "vulkan:0":
        request.getfixturevalue("vulkan_session")
    with open_device(request.param, queues=2) as device:
        yield device


def test_whoever_asked_is_told_of_every_submission(any_device: Device, caplog: pytest.LogCaptureFixture) -> None:
    device = any_device
    x, y = device.array(ONES), device.array(ONES)
    submissions: list[Submission] = []

    def fail(_: Submission) -> None:
        raise ZeroDivisionError

    stop, stop_failing = device.on_submit(submissions.append), device.on_submit(fail)
    before = time.perf_counter_ns()
    with device.program([device.bind("add", x, x)], label="sum", queue=1) as program:
        program.run()
        program.submit().wait()
    device.upload(x, ONES)
    device.copy(x, y)
    device.download(y)
    stop()
    stop()
    stop_failing()
    device.program([]).run()
    assert [(s.queue, s.label) for s in submissions] == [
        ("queue 1", "sum"),
        ("queue 1", "sum"),
        ("upload", "upload"),
        ("upload", "copy"),
        ("download", "download"),
    ]
    assert all(s.device is device for s in submissions)
    assert before <= submissions[0].at <= submissions[-1].at <= time.perf_counter_ns()
    assert submissions[0].dispatches == program.dispatches
    for submission in submissions:
        submission.ticket.wait()
        assert submission.ticket.done
    assert "told of a submission failed" in caplog.text


@pytest.mark.parametrize("calibrates", [True, False])
def test_the_devices_clock_is_on_the_hosts_axis(
    fresh_vulkan: VulkanDevice, calibrates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = fresh_vulkan
    if not calibrates:
        monkeypatch.setattr(device, "_calibrates", False)
    x = device.array(np.ones(1 << 16, np.float32))
    with device.program([device.bind("add", x, x)] * 20, timed=True) as program:
        assert program.interval() is None
        before = time.perf_counter_ns()
        program.run()
        after = time.perf_counter_ns()
        interval = program.interval()
        nanoseconds = program.device_ns()
    assert interval is not None
    assert nanoseconds is not None
    clock = device.clock()
    assert clock.calibrated == (calibrates and "VK_EXT_calibrated_timestamps" in device.info.extensions)
    # Both readings of the clock may be off by their deviation, and crystals drift a little in between.
    slack = 2 * clock.deviation_ns + 2_000_000
    assert before - slack <= interval[0] <= interval[1] <= after + slack
    assert abs(interval[1] - interval[0] - nanoseconds) <= 2


def timed_steps(device: Device, count: int = 1 << 12) -> tuple[Any, Any, list[Any]]:
    """An array that is fed, one that is fetched, and three steps of different weight between them."""
    x, y = device.zeros(count), device.zeros(count)
    steps = [device.bind("sin", x, out=y), *[device.bind("sin", y, out=y)] * 30, device.fill_step(y, 2.0)]
    return x, y, steps


def test_every_submission_has_a_device_time_of_its_own(device: Device) -> None:
    x, y, steps = timed_steps(device)
    with device.program(steps, feed=[x], fetch=[y], slots=3, timed=True) as program:
        before = time.perf_counter_ns()
        tickets = [program.submit(feed={x: np.full(x.shape, i, np.float32)}) for i in range(3)]
        times = [ticket.device_ns() for ticket in tickets]
        wall = time.perf_counter_ns() - before
        assert all(nanoseconds is not None and nanoseconds > 0 for nanoseconds in times)
        # Runs of one queue follow each other: their times add up to no more than passed outside.
        assert sum(nanoseconds or 0 for nanoseconds in times) <= 1.02 * wall
        assert times == [ticket.device_ns() for ticket in tickets]
        assert program.device_ns() == times[-1]
        with pytest.raises(InputError, match=r"steps of this work were not timed\. Fix: .* timed=\"steps\""):
            tickets[0].step_times()


def test_times_of_runs_without_results_stay_for_as_many_as_there_are_slots(device: Device) -> None:
    x = device.zeros(64)
    with device.program([device.bind("add", x, x)], timed=True, slots=3, label="sum") as program:
        assert program.device_ns() is None
        tickets = [program.submit() for _ in range(5)]
        times = [ticket.device_ns() for ticket in tickets[2:]]
        assert None not in times
        for ticket in tickets[:2]:
            with pytest.raises(InputError, match=r"run \d of the program 'sum' left gave way .* slots=4"):
                ticket.device_ns()
        with pytest.raises(InputError, match="nothing comes back with the program"):
            program.fetched(x)
    assert [ticket.device_ns() for ticket in tickets[2:]] == times  # closing the program keeps them


@pytest.mark.parametrize("host_step", [False, True])
def test_every_step_has_a_time_on_the_devices_axis(device: Device, host_step: bool) -> None:
    x, y, steps = timed_steps(device)
    names = ["feed", *["sin"] * 31, "fill", "fetch"]
    if host_step:
        steps.insert(1, device.host_step(lambda values: values, [y], [y], name="host"))
        between = ["host"] if device.info.spec == "cpu" else ["host (inputs)", "host (outputs)"]
        names[2:2] = between
    with device.program(steps, feed=[x], fetch=[y], timed="steps") as program:
        ticket = program.submit(feed={x: np.ones(x.shape, np.float32)})
        times = ticket.step_times()
        assert (ticket.fetched(y) == 2).all()
        assert [step.label for step in times] == names
        edges = [moment for step in times for moment in step[1:]]
        assert edges == sorted(edges)
        assert ticket.device_ns() == edges[-1] - edges[0]
        interval = program.interval()
        assert interval is not None
        assert abs(interval[1] - interval[0] - (edges[-1] - edges[0])) <= 2
        with program.slot() as slot:
            slot[x][...] = 1
            again = slot.submit()
        assert again.step_times()[0].start_ns >= times[-1].end_ns
        assert again.step_times() != times


def test_what_is_not_timed_has_no_device_time(any_device: Device) -> None:
    x = any_device.zeros(8)
    with any_device.program([any_device.bind("add", x, x)]) as program:
        ticket = program.submit()
        assert ticket.device_ns() is None
        assert program.device_ns() is None
        with pytest.raises(InputError, match="were not timed"):
            ticket.step_times()
    assert any_device.copy(x, any_device.zeros(8)).device_ns() is None
    with pytest.raises(InputError, match=r"timed='step' is none of False, True and 'steps'\. Fix:"):
        any_device.program([], timed="step")  # pyright: ignore[reportArgumentType]


def test_the_null_device_has_no_clock() -> None:
    with open_device("null") as device:
        x = device.zeros(8)
        with device.program([device.bind("add", x, x)], timed="steps") as program:
            ticket = program.submit()
            assert ticket.device_ns() is None
            with pytest.raises(NoResultError, match=r"'null' has no clock .* Fix: time it elsewhere"):
                ticket.step_times()
