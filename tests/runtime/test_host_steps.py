"""Programs with host steps: whoever submits goes on at once, the order is kept, and errors arrive where one waits."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dashi.errors import BusyError, ClosedError, HostStepError, TimeoutError_
from dashi.runtime import Array, Device, Program, open_device
from dashi.runtime._vulkan_device import VulkanDevice

Recorder = Callable[[list[Any]], Program]


@pytest.fixture(params=["cpu", "vulkan:0"])
def two_queues(request: pytest.FixtureRequest) -> Iterator[Device]:
    if request.param == "vulkan:0":
        request.getfixturevalue("vulkan_session")
    with open_device(request.param, queues=2, timeout=30) as device:
        yield device
        device.close()
        assert not getattr(getattr(device, "instance", None), "messages", None)


def adding(device: Device, x: Array, amount: float, wait: threading.Event | None = None) -> Any:
    """A host step that adds a number to an array, once it may."""

    def add(values: Any) -> Any:
        assert wait is None or wait.wait(20)
        return values + np.float32(amount)

    return device.host_step(add, [x], [x])


def test_submit_returns_before_the_host_steps_are_called(two_queues: Device) -> None:
    device = two_queues
    x, may = device.zeros(4), threading.Event()
    go = device.event("go")
    steps = [device.bind("scale", x, out=x, a=2.0), adding(device, x, 1, may), device.bind("scale", x, out=x, a=3.0)]
    with device.program(steps, fetch=[x], slots=3) as program:
        tickets = [program.submit(after=[go])] + [program.submit() for _ in range(2)]
        assert not any(ticket.done for ticket in tickets)
        go.signal()
        time.sleep(0.02)
        assert not tickets[0].done  # its host step waits
        may.set()
        assert [ticket.fetched(x)[0] for ticket in tickets] == [3, 21, 129]


def test_what_is_submitted_later_to_the_queue_comes_after_the_whole_run(two_queues: Device) -> None:
    device = two_queues
    x, y, may = device.zeros(4), device.zeros(4), threading.Event()
    slow = device.program([adding(device, x, 1, may), device.bind("scale", x, out=x, a=3.0), adding(device, x, 1)])
    plain = device.program([device.bind("scale", x, out=x, a=10.0)])
    elsewhere = device.program([device.bind("scale", y, out=y, a=1.0)], queue=1)
    after = device.program([device.bind("add", x, x, out=y)], queue=1)
    first, second = slow.submit(), plain.submit()
    other = elsewhere.submit()
    third = after.submit(after=[second])
    if isinstance(device, VulkanDevice):  # the thread of the NumPy device does one thing at a time
        other.wait()
    assert not first.done
    assert not second.done
    may.set()
    third.wait()
    assert x.numpy()[0] == 40
    assert y.numpy()[0] == 80
    assert first.done


def fail(*_: Any) -> Any:
    raise ZeroDivisionError("by nothing")


def test_an_error_lands_in_the_ticket_and_in_those_that_come_after_it(two_queues: Device) -> None:
    device = two_queues
    x, y = device.array(np.ones(4, np.float32)), device.zeros(4)
    steps = [device.host_step(fail, [x], [x]), device.bind("scale", x, out=x, a=3.0), adding(device, x, 1)]
    good = device.program([device.bind("add", x, x, out=y)])
    other = device.program([device.bind("add", x, x)], queue=1)
    with device.program(steps, fetch=[x], slots=1) as program:
        for _ in range(3):
            ticket = program.submit()
            depends, plain = other.submit(after=[ticket]), good.submit()
            with pytest.raises(HostStepError, match="'fail' failed: ZeroDivisionError: by nothing"):
                ticket.wait()
            with pytest.raises(HostStepError):
                depends.wait()
            plain.wait()  # the queue goes on
            assert x.numpy().tolist() == [1] * 4
            assert y.numpy().tolist() == [2] * 4
        program.submit()
        with pytest.raises(HostStepError):
            device.wait()  # nobody else was told
        device.wait()


def test_a_chain_of_runs_that_have_ended_remembers_none_of_them(vulkan_session: VulkanDevice) -> None:
    with open_device("vulkan:0", queues=2, timeout=30) as device:
        x = device.zeros(4)
        program = device.program([adding(device, x, 1)])
        copy = device.program([device.bind("scale", x, out=x, a=1.0)], queue=1)
        last: Any = device.event()
        last.signal()
        for _ in range(500):
            last = copy.submit(after=[program.submit(after=[last])])
            last.wait()
        assert len(last.events) < 5
        assert x.numpy()[0] == 500


def test_a_host_step_uses_its_device_while_others_wait_for_it(vulkan: VulkanDevice) -> None:
    device = vulkan
    x, y, z = device.array(np.ones(8, np.float32)), device.zeros(8), device.zeros(8)
    began = threading.Event()
    nested = device.program([device.bind("scale", z, out=z, a=2.0), adding(device, z, 1)], fetch=[z])

    def use(values: Any) -> Any:
        began.set()
        time.sleep(0.05)  # by now the other thread waits for this run
        y.write(values + 1)
        assert y.numpy()[0] == 3
        device.upload(z, np.full(8, 5, np.float32)).wait()
        nested.run()
        assert nested.fetched(z)[0] == 11
        assert device.download(z).result()[0] == 11
        device.copy(y, z).wait()
        device.wait()
        return device.run("add", y, z).numpy()

    steps = [device.bind("scale", x, out=x, a=2.0), device.host_step(use, [x], [x]), adding(device, x, 1)]
    with device.program(steps) as program:
        ticket = program.submit()
        assert began.wait(10)
        assert x.numpy()[0] == 7
        assert ticket.done


def test_a_host_step_that_waits_for_its_own_run_is_told_so(two_queues: Device) -> None:
    device = two_queues
    x, known, tickets = device.zeros(4), threading.Event(), list[Any]()

    def wait(_: Any) -> None:
        assert known.wait(10)
        tickets[0].wait()

    with device.program([device.host_step(wait, [x]), device.bind("add", x, x)]) as program:
        tickets.append(program.submit())
        known.set()
        with pytest.raises(HostStepError, match="BusyError: a host step waits for its own") as caught:
            tickets[0].wait()
        assert isinstance(caught.value.__cause__, BusyError)


def test_host_steps_of_two_queues_do_not_wait_for_each_other(vulkan_session: VulkanDevice) -> None:
    with open_device("vulkan:0", queues=2, timeout=30) as device:
        x, y = device.zeros(4), device.zeros(4)
        meet = threading.Barrier(2, timeout=20)
        steps = [device.host_step(lambda values: meet.wait() * 0 + values, [a], [a]) for a in (x, y)]
        programs = [device.program([step], queue=i) for i, step in enumerate(steps)]
        for ticket in [program.submit() for program in programs]:
            ticket.wait()


def test_too_long_a_wait_for_a_host_step_is_a_typed_error(two_queues: Device) -> None:
    x, may = two_queues.zeros(4), threading.Event()
    with two_queues.program([adding(two_queues, x, 1, may)]) as program:
        ticket = program.submit()
        with pytest.raises(TimeoutError_):
            ticket.wait(timeout=0.15)
        may.set()
        ticket.wait()
    assert x.numpy()[0] == 1


def test_closing_waits_for_the_function_and_lets_go_of_events(two_queues: Device) -> None:
    device = two_queues
    x, called = device.zeros(4), list[str]()

    def slow(values: Any) -> Any:
        time.sleep(0.05)
        called.append("slow")
        return values

    program = device.program([device.host_step(slow, [x], [x])])
    program.submit()
    stuck = device.program([device.host_step(lambda _: called.append("stuck"), [x])], queue=1)
    ticket = stuck.submit(after=[device.event("never")])
    time.sleep(0.01)
    device.close()
    assert called == ["slow"]
    with pytest.raises(ClosedError):
        ticket.wait()


def test_a_host_step_may_close_its_device(vulkan_session: VulkanDevice) -> None:
    device = open_device("vulkan:0")
    x = device.zeros(4)
    program = device.program([device.host_step(lambda _: device.close(), [x]), adding(device, x, 1)])
    ticket = program.submit()
    deadline = time.monotonic() + 10
    while not device.gate.refusal and time.monotonic() < deadline:
        time.sleep(0.001)
    with pytest.raises(ClosedError):
        ticket.wait()
    gc.disable()
    try:
        device.close()
        assert isinstance(device, VulkanDevice)
        assert device.exports._finish is None  # pyright: ignore[reportPrivateUsage]  # nothing holds what the step saw
    finally:
        gc.enable()
    with pytest.raises(ClosedError):
        x.numpy()


LEFT_OPEN = """
import time
import dashi
device = dashi.open("vulkan:0", validation=True)
x = device.zeros(4)
program = device.program([device.host_step(lambda _: device.close(), [x]), device.bind("scale", x, a=2.0)], fetch=[x])
ticket = program.submit()
while not device.gate.refusal:
    time.sleep(0.001)
print("ends", flush=True)
"""


@pytest.mark.validation
@pytest.mark.usefixtures("vulkan_session")
def test_what_a_process_leaves_to_its_end_is_destroyed_with_the_device() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr
    assert "has not been destroyed" not in done.stdout + done.stderr


# A device is closed, forked or forgotten while host steps of two queues run, and some of them use it.
ROUNDS = """
import gc, os, random, sys, threading, time
import numpy as np
import dashi
from dashi.errors import ClosedError, ForkedError, HostStepError

def use(values, d, other):
    if random.random() < 0.3:
        other.numpy()
    if random.random() < 0.1:
        raise ZeroDivisionError
    time.sleep(random.random() * 0.002)
    return values + 1

def submit(program, wrong):
    try:
        while True:
            ticket = program.submit()
            if random.random() < 0.5:
                try:
                    ticket.wait()
                except HostStepError:
                    pass
    except ClosedError:
        pass
    except BaseException as error:
        wrong.append(repr(error))

def one_round(turn):
    d, wrong = dashi.open("vulkan:0", queues=2, validation=False), []
    threads = []
    for queue in range(2):
        x, other = d.zeros(64), d.zeros(64)
        step = d.host_step(lambda values, other=other: use(values, d, other), [x], [x])
        program = d.program([d.bind("add", x, x, out=x), step, step, d.bind("add", x, x, out=x)], queue=queue)
        threads += [threading.Thread(target=submit, args=(program, wrong)) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(random.random() * 0.02)
    if turn % 4 == 3:
        child = os.fork()
        if child == 0:
            try:
                program.run()
            except ForkedError:
                sys.exit(0)  # with all that an interpreter does at its end
            os._exit(3)
        assert os.waitpid(child, 0)[1] == 0
    d.close()
    for thread in threads:
        thread.join()
    assert not wrong, wrong

turns = int(sys.argv[1])
for turn in range(turns):
    one_round(turn)
print("alive", flush=True)
d = dashi.open("vulkan:0", validation=False)
x = d.zeros(64)
d.program([d.host_step(lambda values: (time.sleep(0.01), values)[1], [x], [x])] * 3).submit()  # left at the exit
"""


def survive(rounds: int) -> None:
    done = subprocess.run([sys.executable, "-c", ROUNDS, str(rounds)], capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.usefixtures("vulkan_session")
def test_a_device_closed_while_host_steps_run_ends_no_process() -> None:
    survive(12)


@pytest.mark.long
@pytest.mark.usefixtures("vulkan_session")
def test_a_device_closed_while_host_steps_run_ends_no_process_in_two_hundred_rounds() -> None:
    survive(200)


def test_ctrl_c_ends_the_wait_and_not_the_run(two_queues: Device) -> None:
    x, may = two_queues.zeros(4), threading.Event()
    with two_queues.program([adding(two_queues, x, 1, may), two_queues.bind("scale", x, out=x, a=2.0)]) as program:
        ticket = program.submit()
        threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            ticket.wait()
        may.set()
        ticket.wait()
    assert x.numpy()[0] == 2
