"""Values that go to the device with a run: slots, what they wait for, and that nothing is allocated for one."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

from dashi.errors import BusyError, DTypeError, InputError, ShapeError, TimeoutError_
from dashi.runtime import Device, open_device
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime._watching import WatchedProgram, watched
from dashi.runtime.device import Program


def doubling(device: Device, **options: Any) -> tuple[Any, Any, Program]:
    """A program that is fed with x and brings 2 x back."""
    x = device.empty(1000)
    y = device.empty(1000)
    program = device.program([device.bind("scale", x, out=y, a=2.0)], feed=[x], fetch=[y], label="double", **options)
    return x, y, program


def values_of(number: float) -> Any:
    return np.arange(1000, dtype=np.float32) + np.float32(number)


def test_every_run_computes_with_the_values_that_it_was_fed(device: Device) -> None:
    x, y, program = doubling(device, slots=3)
    with program:
        for turn in range(4):
            tickets = [program.submit(feed={x: values_of(3 * turn + i)}) for i in range(3)]
            for i in (2, 0, 1):
                assert np.array_equal(tickets[i].fetched(y), 2 * values_of(3 * turn + i))
        program.run(feed={x: values_of(-7)})
        assert np.array_equal(program.fetched(y), 2 * values_of(-7))
        assert np.array_equal(x.numpy(), values_of(-7))


def test_a_slot_is_filled_in_place_and_submitted_once(device: Device) -> None:
    x, y, program = doubling(device)
    with program:
        slot = program.slot()
        slot[x][...] = values_of(1)
        slot[x][10:20] = 5
        ticket = slot.submit()
        wanted = values_of(1)
        wanted[10:20] = 5
        assert np.array_equal(ticket.fetched(y), 2 * wanted)
        for misuse in (slot.submit, lambda: slot[x], lambda: program.submit(feed=slot)):
            with pytest.raises(InputError, match=r"submitted or given back already\. Fix: take another for each run"):
                misuse()


def test_a_slot_in_use_is_never_handed_out_again(device: Device) -> None:
    x, y, program = doubling(device, slots=2)
    with program:
        first, second = program.slot(), program.slot()
        assert not np.shares_memory(first[x], second[x])
        with pytest.raises(BusyError, match=r"all 2 slots .* 2 of them are being filled.* Fix: submit them"):
            program.slot()
        first.close()
        third = program.slot()
        third[x], second[x] = values_of(3), values_of(2)
        tickets = [second.submit(), third.submit()]
        with pytest.raises(BusyError, match="hold results that were not read"):
            program.slot()
        assert np.array_equal(tickets[1].fetched(y), 2 * values_of(3))
        assert np.array_equal(tickets[0].fetched(y), 2 * values_of(2))
        del third
        program.slot()  # forgotten at once, which gives it back
        with program.slot(), program.slot():
            pass


def test_slots_of_runs_that_nobody_reads_are_waited_for(device: Device) -> None:
    x = device.zeros(1 << 14)
    total = device.zeros(1 << 14)
    with device.program([device.bind("add", total, x, out=total)], feed=[x], slots=2) as program:
        for i in range(40):
            program.submit(feed={x: np.full(1 << 14, i, np.float32)})
        assert (total.numpy() == sum(range(40))).all()


def test_a_wait_for_a_slot_ends_with_what_it_waited_for(vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    x = vulkan.empty(16)
    with vulkan.program([vulkan.bind("scale", x, a=2.0)], feed=[x], slots=1, label="lone") as program:
        with monkeypatch.context() as patch:
            patch.setattr(vulkan.queue, "reached", lambda: 0)
            program.submit(feed={x: np.zeros(16, np.float32)})
            vulkan.wait()
            patch.setattr(vulkan.queue, "known", 0)
            patch.setattr(type(vulkan.queue), "wait", lambda self, value, timeout=None: late(timeout))
            with pytest.raises(TimeoutError_, match=r"all 1 slots of the program 'lone' .* run 1, the oldest, is not"):
                program.slot(timeout=0.01)
        program.run(feed={x: np.zeros(16, np.float32)})


def late(timeout: float | None) -> None:
    raise TimeoutError_(f"the device did not finish its work within {timeout:g} s.", "wait.")


FEEDS: dict[str, tuple[Any, Any, str]] = {
    "shape": (lambda x: {x: np.zeros(999, np.float32)}, ShapeError, "has the shape (999,), not (1000,). Fix: pass an"),
    "dtype": (
        lambda x: {x: np.zeros(1000)},
        DTypeError,
        "elements of float64, not of float32. Fix: convert it",
    ),
    "none": (lambda x: None, InputError, "nothing was passed. Fix: pass their values: program.submit(feed="),
    "empty": (lambda x: {}, InputError, "is also fed with Array("),
    "an array": (lambda x: np.zeros(1000, np.float32), InputError, "`feed` takes a dict of values by array, not nda"),
    "another": (lambda x: {x: values_of(0), "x": 1}, InputError, "does not feed 'x'. Fix: name it when"),
}


@pytest.mark.parametrize("name", FEEDS)
@pytest.mark.parametrize("null", [False, True])
def test_a_feed_that_does_not_fit_is_refused_and_takes_no_slot(device: Device, name: str, null: bool) -> None:
    feed, kind, text = FEEDS[name]
    with NullDevice() as nothing:
        x, _, program = doubling(nothing if null else device, slots=1)
        with program:
            with pytest.raises(kind) as caught:
                program.submit(feed=feed(x))
            assert text in str(caught.value)
            program.run(feed={x: values_of(0)})


def test_feeds_are_arrays_of_the_device_that_share_no_memory(device: Device) -> None:
    x = device.empty(64)
    step = device.bind("scale", x, a=1.0)
    with pytest.raises(InputError, match=r"`feed` takes a list of arrays, not Array\. Fix: pass feed=\[array\]"):
        device.program([step], feed=x)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"share memory: .* is written twice\. Fix: feed arrays that do not overlap"):
        device.program([step], feed=[x, x[:32]])
    with device.program([step]) as program:
        for misuse in (program.slot, lambda: program.submit(feed={x: 1})):
            with pytest.raises(InputError, match=r"is fed with nothing\. Fix: name the arrays"):
                misuse()
    with (
        device.program([step], feed=[x]) as mine,
        device.program([step], feed=[x]) as other,
        pytest.raises(InputError, match=r"this slot is none of the program ''\. Fix: submit slots where they"),
    ):
        mine.submit(feed=other.slot())


def test_results_are_read_into_memory_of_the_caller(device: Device) -> None:
    x, y, program = doubling(device)
    out = np.empty(1000, np.float32)
    with program:
        ticket = program.submit(feed={x: values_of(1)})
        assert ticket.fetched(y, out=out) is out
        assert np.array_equal(out, 2 * values_of(1))
        assert program.fetched(y, out=out) is out
        with pytest.raises(ShapeError, match="`out` for "):
            program.fetched(y, out=np.empty(3, np.float32))


def test_nothing_is_allocated_for_a_submission(bare_vulkan: VulkanDevice) -> None:
    device = bare_vulkan
    n = 1 << 14
    x, y = device.empty(n), device.empty(n)
    host, out = np.ones(n, np.float32), np.empty(n, np.float32)
    with device.program([device.bind("scale", x, out=y, a=2.0)], feed=[x], fetch=[y], slots=3) as program:

        def turn(count: int) -> None:
            for _ in range(count):
                slot = program.slot()
                slot[x][...] = host
                slot.submit().fetched(y, out=out)

        turn(20)
        gc.collect()
        before = device.memory()
        growths: list[int] = []
        peaks: list[int] = []
        tracemalloc.start()
        try:
            for _ in range(4):
                start, _ = tracemalloc.get_traced_memory()
                tracemalloc.reset_peak()
                turn(100)
                end, peak = tracemalloc.get_traced_memory()
                growths.append(end - start)
                peaks.append(peak - start)
        finally:
            tracemalloc.stop()
        after = device.memory()
    assert after == before
    # A ticket, a slot's handle and a view at a time, and never a copy of the 64 KiB; of 100 runs nothing stays. The
    # interpreter's own free lists may grow once.
    assert max(peaks) < 16384
    assert min(growths) < 100
    assert (out == 2).all()


def test_threads_share_the_slots_of_a_program(device: Device) -> None:
    x, y, program = doubling(device, slots=4)
    wrong: list[int] = []

    def work(seed: int) -> None:
        for i in range(10):
            values = values_of(100 * seed + i)
            if not np.array_equal(program.submit(feed={x: values}).fetched(y), 2 * values):
                wrong.append(seed)

    with program:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_watched_programs_are_fed_too(device: Device) -> None:
    submitted: list[Any] = []

    class Noting(WatchedProgram):
        def submit(self, after: Any = (), feed: Any = None) -> Any:
            submitted.append(feed)
            return super().submit(after, feed)

    with watched(device, Noting):
        x, y, program = doubling(device)
    with program:
        slot = program.slot()
        slot[x] = values_of(2)
        assert np.array_equal(slot.submit().fetched(y), 2 * values_of(2))
        program.run(feed={x: values_of(3)})
    assert len(submitted) == 2


def test_a_feed_is_ordered_with_the_steps_that_use_it(vulkan: VulkanDevice) -> None:
    with doubling(vulkan)[2] as program:
        (batch,) = program.schedule()
        assert list(batch.names) == ["feed", "scale", "fetch"]
        assert list(batch.barriers) == [0, 2, 2]
        assert program.check().hazards == 2


@pytest.mark.usefixtures("vulkan_session")
def test_memory_that_arrays_of_the_host_show_outlives_what_is_closed() -> None:
    """A view of a slot, or what a host step was given, may be kept by mistake: it must not crash the process."""
    device, inputs = open_device("vulkan:0", validation=False), list[Any]()
    assert isinstance(device, VulkanDevice)
    x = device.empty(5000)
    program = device.program([device.host_step(inputs.append, [x])], feed=[x])
    slot = program.slot()
    part = slot[x][10:20]
    slot[x][...] = 7
    slot.submit().wait()
    values, exports = inputs.pop(), device.exports
    program.close()
    del program, slot, x
    gc.collect()
    device.close()
    assert exports._finish is not None  # pyright: ignore[reportPrivateUsage]  # the device's memory is still there
    del device
    gc.collect()
    part[:] = 9
    assert set(part) == {9.0}
    assert set(values) == {7.0}
    del part
    assert exports._finish is not None  # pyright: ignore[reportPrivateUsage]
    del values
    gc.collect()
    assert exports._finish is None  # pyright: ignore[reportPrivateUsage]  # with the last of them it went


def test_a_device_that_shows_nothing_is_freed_when_it_is_closed(fresh_vulkan: VulkanDevice) -> None:
    x, _, program = doubling(fresh_vulkan)
    slot = program.slot()
    slot[x][...] = 1
    slot.submit().wait()
    with program.slot() as other:
        other[x] = values_of(1)
    exports = fresh_vulkan.exports
    fresh_vulkan.close()
    assert exports._finish is None  # pyright: ignore[reportPrivateUsage]
