"""Devices that are closed, or left behind by a fork, while they are in use: typed errors, and the process lives."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dashi.errors import BusyError, ClosedError, ForkedError, InputError
from dashi.runtime import Device, open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

# Eight threads do what a device can do, until it is closed under them; in every fourth round a fork comes first.
THREADS = """
import gc, os, random, sys, threading, time
import numpy as np
import dashi
from dashi.errors import ClosedError, ForkedError, InputError

x = np.ones(64, np.float32)
other = []

def uses_of(d):
    a, c = d.array(x), d.empty(64)
    step = d.bind("scale", a, a=2.0)
    b = step.outputs[0]
    p = d.program([step], fetch=[b], timed=True, slots=9)
    ticket = p.submit()
    return [
        lambda: d.run("scale", x, a=2.0).numpy(), p.run, lambda: p.submit().fetched(b), lambda: p.fetched(b),
        p.device_ns, ticket.wait, lambda: ticket.done, b.numpy, lambda: c.write(x), lambda: d.copy(b, c).wait(),
        lambda: d.program([step]).run(), lambda: d.empty(5).close(), d.memory,
    ]

def work(seed, uses, finished):
    choose, refused = random.Random(seed).choice, 0
    while refused < 50:
        try:
            choose(uses)()
        except ClosedError:
            refused += 1
        except InputError as error:
            if "waited for" not in str(error) and "gave way" not in str(error):
                other.append(repr(error))
        except BaseException as error:
            other.append(repr(error))
            return
    finished.append(seed)

def in_child(uses, d):
    for use in uses:
        try:
            use()
            return 3
        except ForkedError:
            pass
    d.close()
    gc.collect()
    return 0

for turn in range(int(sys.argv[1])):
    d, finished = dashi.open("vulkan:0", validation=False), []
    uses = uses_of(d)
    threads = [threading.Thread(target=work, args=(i, uses, finished)) for i in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(random.random() * 0.02)
    if turn % 4 == 3:
        child = os.fork()
        if child == 0:
            os._exit(in_child(uses, d))
        assert os.waitpid(child, 0)[1] == 0
    d.close()
    for thread in threads:
        thread.join()
    assert len(finished) == 8, other
assert not other, other
print("alive")
"""


def survive(rounds: int) -> None:
    done = subprocess.run([sys.executable, "-c", THREADS, str(rounds)], capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@pytest.mark.usefixtures("vulkan_session")
def test_a_device_closed_under_eight_threads_ends_no_process() -> None:
    survive(12)


@pytest.mark.long
@pytest.mark.usefixtures("vulkan_session")
def test_a_device_closed_under_eight_threads_ends_no_process_in_two_hundred_rounds() -> None:
    survive(200)


@pytest.fixture(params=["cpu", "null", "vulkan:0"])
def closable(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device of each kind, of the test's own."""
    if request.param == "vulkan:0":
        yield request.getfixturevalue("fresh_vulkan")
    else:
        with open_device(request.param) as device:
            yield device


def uses_of(device: Device) -> dict[str, Callable[[], Any]]:
    """What can be done with a device and what hangs off it."""
    x, y = device.array(np.ones(8, np.float32)), device.empty(8)
    step = device.bind("add", x, x)
    out = step.outputs[0]
    program = device.program([step], fetch=[out], timed=True)
    ticket = program.submit()
    ticket.wait()
    return {
        "wait": ticket.wait,
        "done": lambda: ticket.done,
        "ticket.fetched": lambda: ticket.fetched(out),
        "fetched": lambda: program.fetched(out),
        "device_ns": program.device_ns,
        "submit": program.submit,
        "run program": program.run,
        "read": x.numpy,
        "write": lambda: y.write(np.ones(8, np.float32)),
        "copy": lambda: device.copy(x, y),
        "run": lambda: device.run("add", x, x),
        "array": lambda: device.array([1.0]),
        "empty": lambda: device.empty(3),
        "part": lambda: device.part(x, 0, 4),
        "bind": lambda: device.bind("add", x, x),
        "program": lambda: device.program([step]),
    }


def test_use_after_close_raises_closed_error_everywhere(closable: Device) -> None:
    uses = uses_of(closable)
    closable.close()
    closable.close()
    for name, use in uses.items():
        with pytest.raises(ClosedError, match=r"is closed\. Fix: open it again"):
            pytest.fail(f"{name} gave {use()!r}")
    assert repr(closable).endswith("closed)>")


def test_a_program_may_be_closed_after_its_device(closable: Device) -> None:
    x = closable.array(np.ones(8, np.float32))
    with closable.program([closable.bind("add", x, x)]) as program:
        closable.close()
    program.close()


def test_a_closed_program_is_refused_and_reads_no_dead_timestamps(closable: Device) -> None:
    x = closable.array(np.ones(8, np.float32))
    program = closable.program([closable.bind("add", x, x)], timed=True, label="sum")
    program.run()
    program.close()
    for use in (program.submit, program.run, program.run_timed, program.device_ns):
        with pytest.raises(ClosedError, match="the program 'sum' is closed"):
            use()


def test_close_waits_for_the_calls_that_are_inside(fresh_vulkan: VulkanDevice) -> None:
    entered, leave, order = threading.Event(), threading.Event(), []
    reading = fresh_vulkan._staging.read  # pyright: ignore[reportPrivateUsage]

    def slow_read(source: Any) -> Any:
        entered.set()
        leave.wait(10)
        order.append("read")
        return reading(source)

    fresh_vulkan._staging.read = slow_read  # pyright: ignore[reportPrivateUsage]
    x = fresh_vulkan.array(np.ones(8, np.float32))
    values: list[Any] = []
    reader = threading.Thread(target=lambda: values.append(x.numpy()))
    closer = threading.Thread(target=lambda: (fresh_vulkan.close(), order.append("close")))
    reader.start()
    entered.wait(10)
    closer.start()
    while not fresh_vulkan.gate.refusal:
        time.sleep(0.001)
    with pytest.raises(ClosedError):
        fresh_vulkan.empty(3)
    leave.set()
    reader.join()
    closer.join()
    assert order == ["read", "close"]
    assert values[0].tolist() == [1] * 8


def test_a_device_closed_from_inside_one_of_its_calls_is_freed_later(fresh_vulkan: VulkanDevice) -> None:
    reading = fresh_vulkan._staging.read  # pyright: ignore[reportPrivateUsage]

    def interrupted(source: Any) -> Any:
        fresh_vulkan.close()  # as a signal's handler would
        return reading(source)

    fresh_vulkan._staging.read = interrupted  # pyright: ignore[reportPrivateUsage]
    x = fresh_vulkan.array(np.ones(8, np.float32))
    assert x.numpy().tolist() == [1] * 8
    with pytest.raises(ClosedError):
        x.numpy()
    assert not fresh_vulkan.raw.fns.closed
    fresh_vulkan.close()
    assert fresh_vulkan.raw.fns.closed


def test_raw_calls_on_a_closed_device_raise_before_they_reach_the_driver(fresh_vulkan: VulkanDevice) -> None:
    raw, queue = fresh_vulkan.raw, fresh_vulkan.queue
    fresh_vulkan.close()
    for call in (raw.wait_idle, queue.reached, lambda: queue.wait(1), lambda: raw.allocate(16, 0)):
        with pytest.raises(ClosedError, match="cannot be called: the device is closed"):
            call()
    with pytest.raises(ClosedError, match="this queue is closed"):
        queue.submit(None)  # type: ignore[arg-type]
    fresh_vulkan.instance.close()


def test_a_device_that_cannot_be_made_leaves_nothing_to_close(
    vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.runtime._vulkan_device.DescriptorSets", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        open_device("vulkan:0")
    monkeypatch.undo()
    with open_device("vulkan:0") as device:
        assert device.run("add", np.ones(2, np.float32), np.ones(2, np.float32)).numpy().tolist() == [2, 2]


FORK = """
import os, sys
import numpy as np
import dashi
from dashi.errors import ForkedError

ones = np.ones(3, np.float32)
d = dashi.open("vulkan:0", validation=False)
x = d.array(ones)
program = d.program([d.bind("add", x, x)], timed=True)
ticket = program.submit()
child = os.fork()
if child == 0:
    for use in (x.numpy, program.run, ticket.wait, program.device_ns, lambda: d.run("add", x, x)):
        try:
            use()
        except ForkedError as error:
            said = str(error)
    print(said)
    program.close()
    sys.exit(5)  # what the parent opened is forgotten on the way
print(os.waitpid(child, 0)[1], flush=True)
child = os.fork()
if child == 0:
    try:
        with dashi.open("vulkan:0", validation=False) as own:
            print(own.run("add", ones, ones).numpy().tolist())
    except ForkedError as error:
        print(error)
    sys.exit(6)  # Mesa's handler at exit would join threads that only the parent has
print(os.waitpid(child, 0)[1], x.numpy().tolist())
"""


def test_a_forked_child_is_refused_and_exits_and_opens_its_own_device_on_software(vulkan: VulkanDevice) -> None:
    plain = {**os.environ, "DASHI_VALIDATION": "0"}
    # Python warns of forks beside threads, which drivers have.
    line = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=plain)
    assert (done.returncode, done.stderr) == (0, "")
    said, plain_exit, own, parent = done.stdout.splitlines()
    assert "was opened in another process" in said
    assert said.endswith(
        "Fix: open a device after the fork, or start processes by spawning: multiprocessing.get_context('spawn')."
    )
    assert (plain_exit, parent) == (str(5 << 8), f"{6 << 8} [1.0, 1.0, 1.0]")
    if vulkan.info.is_hardware:
        assert own.startswith("this process was forked from one that had ")
        assert own.endswith("; or fork before a device is opened.")
    else:
        assert own == "[2.0, 2.0, 2.0]"
    assert issubclass(ForkedError, ClosedError)


def test_the_numpy_device_survives_a_fork_while_another_thread_is_inside() -> None:
    with CpuDevice() as device:
        x = device.array(np.ones(3, np.float32))
        inside, leave = threading.Event(), threading.Event()

        def wait() -> None:
            device.gate.entered.append(None)
            inside.set()
            leave.wait(10)
            device.gate.entered.pop()

        holder = threading.Thread(target=device.host_queues.settled, args=(wait,))
        holder.start()
        inside.wait(10)
        child = os.fork()
        if child == 0:
            total = int(device.run("add", x, x).numpy().sum())
            device.close()
            os._exit(total)
        leave.set()
        holder.join()
        assert os.waitpid(child, 0)[1] >> 8 == 6


def doubling(device: Device) -> tuple[Any, list[Any]]:
    """An array, and steps that double it."""
    x = device.array(np.ones(4096, np.float32))
    return x, [device.bind("scale", x, out=x, a=2.0), device.bind("scale", x, out=x, a=0.5)] * 4 + [
        device.bind("scale", x, out=x, a=2.0)
    ]


def test_what_is_fetched_while_the_next_run_is_under_way_is_of_the_run_before(device: Device) -> None:
    x, steps = doubling(device)
    with device.program(steps, fetch=[x]) as program:
        before = program.submit()
        before.wait()
        for run in range(1, 60):
            following = program.submit()
            assert set(program.fetched(x)) == {2.0**run}
            assert set(before.fetched(x)) == {2.0**run}
            following.wait()
            before = following


def test_every_ticket_has_the_values_of_its_own_run(device: Device) -> None:
    x, steps = doubling(device)
    with device.program(steps, fetch=[x], slots=3) as program:
        for turn in range(5):
            tickets = [program.submit() for _ in range(3)]
            with pytest.raises(BusyError, match=r"all 3 slots .* hold results that were not read\. Fix: read them"):
                program.submit()
            # In any order, and after others have been waited for.
            for run in (1, 0, 2):
                assert set(tickets[run].fetched(x)) == {2.0 ** (3 * turn + run + 1)}
            assert set(program.fetched(x)) == {2.0 ** (3 * turn + 3)}


def test_with_one_slot_nothing_is_overwritten_in_silence(device: Device) -> None:
    x, steps = doubling(device)
    with device.program(steps, fetch=[x], slots=1) as program:
        first = program.submit()
        with pytest.raises(BusyError):
            program.submit()
        assert set(first.fetched(x)) == {2.0}
        second = program.submit()
        for stale in (first, program):
            with pytest.raises(InputError, match=r"gave way to a run that was submitted since\. Fix: "):
                stale.fetched(x)
        second.wait()
        assert set(program.fetched(x)) == {4.0}
        del second
        program.run()
        assert set(program.fetched(x)) == {8.0}


def test_slots_are_made_once_and_only_when_needed(fresh_vulkan: VulkanDevice) -> None:
    x, steps = doubling(fresh_vulkan)
    with fresh_vulkan.program(steps, fetch=[x], slots=4) as program:
        program.run()
        alone = fresh_vulkan.memory().allocations
        for _ in range(20):
            program.fetched(x)
            program.run()
        assert fresh_vulkan.memory().allocations == alone
        tickets = [program.submit() for _ in range(3)]
        ahead = fresh_vulkan.memory().allocations
        for _ in range(20):
            tickets.pop(0).fetched(x)
            tickets.append(program.submit())
        assert fresh_vulkan.memory().allocations == ahead
        assert 0 < ahead - alone <= 3


def test_fetching_asks_for_a_run_and_for_what_comes_back(device: Device) -> None:
    x, steps = doubling(device)
    nothing = device.empty((0, 3))
    with device.program(steps, fetch=[x, nothing, x], label="twice") as program:
        assert program.fetches == (x, nothing)
        with pytest.raises(InputError, match="no run of the program 'twice' was waited for"):
            program.fetched(x)
        ticket = program.submit()
        with pytest.raises(InputError, match="no run of the program 'twice' was waited for"):
            program.fetched(x)
        ticket.wait()
        with pytest.raises(InputError, match=r"does not come back with the program 'twice'\. Fix: name it"):
            program.fetched(device.empty(3))
        assert program.fetched(nothing).shape == (0, 3)
        assert set(program.fetched(x)) == {2.0}
    with device.program(steps) as program:
        with pytest.raises(InputError, match="nothing comes back with the program"):
            program.fetched(x)
        with pytest.raises(InputError, match="nothing comes back with this work"):
            program.submit().fetched(x)


def test_threads_of_one_program_read_their_own_runs(device: Device) -> None:
    x, steps = doubling(device)
    wrong: list[Any] = []
    with device.program([steps[0], steps[1]], fetch=[x], slots=8) as program:

        def work() -> None:
            for _ in range(30):
                values = set(program.submit().fetched(x))
                if values != {1.0}:
                    wrong.append(values)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
