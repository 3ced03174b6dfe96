"""The NumPy device computes in a thread of its own: submissions return at once, errors arrive where one waits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Ticket
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._host_queues import HostTicket

ONES = np.ones(8, np.float32)


@pytest.fixture
def cpu() -> Iterator[CpuDevice]:
    with CpuDevice() as device:
        yield device


def submit(cpu: CpuDevice, work: Callable[[], object], after: Iterable[Ticket] = (), queue: int = 0) -> HostTicket:
    """Work of any kind, in a queue of the device."""

    def call() -> None:
        work()

    ticket = HostTicket(cpu, cpu.host_queues)
    cpu.host_queues.submit(ticket, queue, call, after)
    return ticket


def fail() -> None:
    raise errors.InputError("it cannot be.", "do something else.")


def test_a_submission_returns_before_the_work_is_done(cpu: CpuDevice) -> None:
    leave = threading.Event()
    slow = submit(cpu, lambda: leave.wait(10))
    assert cpu.at_work()
    assert not slow.done
    leave.set()
    slow.wait()
    assert slow.done
    assert not cpu.at_work()


def test_work_of_one_queue_runs_in_order_and_work_of_others_passes_what_waits(cpu: CpuDevice) -> None:
    order: list[int] = []
    event = cpu.event()
    tickets = [
        submit(cpu, lambda: order.append(1), [event]),
        submit(cpu, lambda: order.append(2)),
        submit(cpu, lambda: order.append(3), queue=1),
    ]
    tickets[2].wait()
    assert order == [3]
    event.signal()
    tickets[1].wait()
    assert order == [3, 1, 2]


def test_an_error_arrives_where_the_work_is_waited_for_and_nowhere_else(cpu: CpuDevice) -> None:
    ticket = submit(cpu, fail)
    apart = submit(cpu, lambda: None, queue=2)
    later = submit(cpu, lambda: None)
    dependent = submit(cpu, lambda: None, [ticket], queue=1)
    apart.wait()
    with pytest.raises(errors.InputError, match="it cannot be"):
        later.wait()  # it comes after what failed, of which nobody was told yet
    later.wait()
    for failed in (ticket, dependent, ticket):
        with pytest.raises(errors.InputError, match="it cannot be"):
            failed.wait()
    cpu.wait()


def test_an_error_that_nobody_waited_for_is_raised_by_the_next_read(cpu: CpuDevice) -> None:
    x = cpu.array(ONES)
    submit(cpu, fail)
    with pytest.raises(errors.InputError, match="it cannot be"):
        x.numpy()
    assert np.array_equal(x.numpy(), ONES)
    submit(cpu, fail)
    with pytest.raises(errors.InputError, match="it cannot be"):
        cpu.wait()


def test_memory_that_runs_out_in_the_thread_is_the_typed_error(cpu: CpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    x = cpu.array(ONES)
    with cpu.program([cpu.bind("add", x, x)]) as program:

        def no_memory(*_: object) -> None:
            raise MemoryError("Unable to allocate 8 EiB.")

        monkeypatch.setattr("dashi.runtime._cpu_device._compute", no_memory)
        with pytest.raises(errors.OutOfMemoryError, match="8 EiB"):
            program.submit().wait()
        with pytest.raises(errors.OutOfMemoryError, match="8 EiB"):
            program.run()


def test_the_callers_floating_point_settings_hold_in_the_thread(cpu: CpuDevice) -> None:
    names: list[str] = []
    with np.errstate(over="ignore", divide="raise"):
        ticket = submit(cpu, lambda: names.append(np.geterr()["divide"]))
    ticket.wait()
    assert names == ["raise"]


def test_closing_ends_the_thread_after_the_work_that_was_submitted() -> None:
    cpu = CpuDevice()
    done: list[int] = []
    for i in range(20):
        submit(cpu, lambda i=i: (time.sleep(0.001), done.append(i)))
    cpu.close()
    assert done == list(range(20))
    assert not [thread for thread in threading.enumerate() if thread.name == "dashi-numpy"]


def test_a_device_that_is_forgotten_takes_its_thread_with_it() -> None:
    cpu = CpuDevice()
    submit(cpu, lambda: None).wait()
    del cpu
    deadline = time.monotonic() + 10
    while [thread for thread in threading.enumerate() if thread.name == "dashi-numpy"]:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_many_threads_submit_and_read(cpu: CpuDevice) -> None:
    wrong: list[object] = []

    def work(seed: int) -> None:
        x = cpu.array(np.full(16, seed, np.float32))
        step = cpu.bind("add", x, x)
        with cpu.program([step], queue=seed % 3) as program:
            for _ in range(20):
                ticket = program.submit()
                if seed % 2:
                    program.run()
                ticket.wait()
                if not np.array_equal(step.outputs[0].numpy(), np.full(16, 2 * seed)):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_work_under_way_at_a_fork_has_failed_in_the_child_alone(cpu: CpuDevice) -> None:
    x = cpu.array(ONES)
    started, leave = threading.Event(), threading.Event()
    running = submit(cpu, lambda: (started.set(), leave.wait(10)))
    waiting = submit(cpu, lambda: None)
    started.wait(10)
    child = os.fork()
    if child == 0:
        failures = 0
        for ticket in (running, waiting):
            try:
                ticket.wait()
            except errors.ForkedError:
                failures += 1
        step = cpu.bind("add", x, x)
        cpu.program([step]).submit().wait()
        os._exit(failures * 10 + int(step.outputs[0].numpy()[0]))
    leave.set()
    waiting.wait()
    running.wait()
    assert os.waitpid(child, 0)[1] >> 8 == 22


def test_the_interpreter_ends_while_the_thread_computes() -> None:
    code = """
import dashi, numpy as np
d = dashi.open("cpu")
x = d.array(np.ones(1 << 16, np.float32))
p = d.program([d.bind("add", x, x)] * 50)
for _ in range(20): p.submit()
d.program([]).submit(after=[d.event()])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
