"""Submissions are told of, and devices and the host have one axis of time."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

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
