"""The Vulkan device: order, barriers, queues, timing, splitting, threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from dashi.errors import ClosedError, InputError, LimitError
from dashi.runtime import Device, open_device
from dashi.runtime._lowering import split
from dashi.runtime._probes import SAFE_TRIPS, expected
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Step


def chain(device: Device, length: int) -> tuple[np.ndarray, list]:
    """Steps x <- x + y back and forth between two arrays, and what they start from."""
    start = np.arange(1000, dtype=np.float32)
    x, y, z = device.array(start), device.array(np.ones(1000, np.float32)), device.empty(1000)
    forth, back = device.bind("add", x, y, out=z), device.bind("add", z, y, out=x)
    return start, [forth, back] * (length // 2)


def test_each_step_of_a_program_sees_what_the_steps_before_it_wrote(device: Device) -> None:
    start, steps = chain(device, 100)
    with device.program(steps) as program:
        program.run()
        program.run()
    assert np.array_equal(steps[-1].outputs[0].numpy(), start + 200)


def test_barriers_stand_only_where_a_hazard_is(vulkan: VulkanDevice) -> None:
    one = [vulkan.array(np.ones(64, np.float32)) for _ in range(4)]
    independent = [vulkan.bind("add", a, one[0]) for a in one]
    with vulkan.program(independent) as program:
        assert (program.dispatches, program.barriers) == (4, 0)
    _, steps = chain(vulkan, 10)
    with vulkan.program(steps) as program:
        assert (program.dispatches, program.barriers) == (10, 9)
    with vulkan.program(independent, barriers="all") as program:
        assert program.barriers == 4


def overwriting(device: Device) -> list[Step]:
    """Steps of which the second overwrites what the first reads, and the others need what was written before."""
    w, x, y = (device.array(np.full(1000, value, np.float32)) for value in (1, 5, 3))
    z = device.empty(1000)
    first = device.bind("add", x, y, out=z)
    second = device.bind("add", w, w, out=x)
    return [first, second, device.bind("add", x, z), device.bind("add", w, y, out=z), device.bind("add", z, z)]


def test_what_only_overwrites_what_was_read_waits_and_flushes_nothing(
    vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, flushes, barrier = overwriting(vulkan), [], vulkan.raw.fns.CmdPipelineBarrier

    def spy(*values: Any) -> None:
        flushes.append(values[4])
        barrier(*values)

    monkeypatch.setattr(vulkan.raw.fns, "CmdPipelineBarrier", spy)
    with vulkan.program(steps) as program:
        assert (flushes, program.barriers) == ([1, 0, 1, 0, 1, 1], 4)  # the outer two are those of every recording
        program.run()
        assert set(steps[2].outputs[0].numpy()) == {10.0}
        program.run()
    assert (set(steps[2].outputs[0].numpy()), set(steps[4].outputs[0].numpy())) == ({7.0}, {8.0})
    flushes.clear()
    # What was written before such a wait is still to be seen: writing it again needs a flush.
    with vulkan.program([steps[0], steps[1], steps[3]]):
        assert flushes == [1, 0, 1, 1]


@pytest.mark.validation
@pytest.mark.usefixtures("vulkan_session")
def test_a_missing_barrier_is_caught_by_synchronisation_validation() -> None:
    with open_device("vulkan:0", validation=True) as device:
        assert isinstance(device, VulkanDevice)
        _, steps = chain(device, 4)
        with device.program(steps, barriers="none") as program:
            program.run()
        hazards = [m for m in device.instance.messages if "SYNC-HAZARD" in m]
        assert hazards, "the layers did not report the missing barriers"
        device.instance.messages.clear()
        for good in (steps, overwriting(device)):
            with device.program(good) as program:
                program.run()
        assert device.instance.messages == []


def test_a_step_may_write_over_its_input_only_where_the_kernel_allows_it(device: Device) -> None:
    x = device.array(np.arange(10, dtype=np.float32))
    device.run("add", x, x, out=x)
    assert np.array_equal(x.numpy(), 2 * np.arange(10))
    square = device.array(np.eye(4, dtype=np.float32))
    row = device.array(np.ones(4, np.float32))
    with pytest.raises(InputError, match="cannot write over its own operands"):
        device.bind("gemv", row, square, out=row)


def test_timestamps_lie_within_the_wall_time(vulkan: VulkanDevice) -> None:
    _, steps = chain(vulkan, 20)
    with vulkan.program(steps, timed=True) as program:
        assert program.device_ns() is None
        timing = program.run_timed()
    assert timing.device is not None
    assert 0 < timing.device <= timing.wall
    assert timing.wall >= timing.enqueue + timing.wait


def test_submissions_return_before_the_work_is_done_and_keep_their_order(vulkan: VulkanDevice) -> None:
    start, steps = chain(vulkan, 2)
    with vulkan.program(steps) as program:
        tickets = [program.submit() for _ in range(50)]
        tickets[-1].wait()
        assert all(ticket.done for ticket in tickets)
    assert np.array_equal(steps[-1].outputs[0].numpy(), start + 100)


def test_a_copy_waits_for_the_work_it_is_told_to_wait_for(device: Device) -> None:
    start, steps = chain(device, 2)
    target = device.empty(1000)
    with device.program(steps) as program:
        device.copy(steps[-1].outputs[0], target, after=[program.submit()]).wait()
    assert np.array_equal(target.numpy(), start + 2)


def test_many_threads_may_share_a_device(vulkan: VulkanDevice) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(10):
            x, y = rng.integers(-100, 100, (2, 5000)).astype(np.float32)
            if not np.array_equal(vulkan.run("axpy", x, y, a=3).numpy(), 3 * x + y):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_may_submit_one_program_at_once(vulkan: VulkanDevice) -> None:
    start, steps = chain(vulkan, 2)
    with vulkan.program(steps) as program:
        threads = [threading.Thread(target=lambda: [program.run() for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert np.array_equal(steps[-1].outputs[0].numpy(), start + 160)


def test_two_logical_devices_live_side_by_side(vulkan: VulkanDevice, fresh_vulkan: VulkanDevice) -> None:
    x = np.arange(100, dtype=np.float32)
    here, there = vulkan.array(x), fresh_vulkan.array(x)
    assert np.array_equal(vulkan.run("add", here, here).numpy(), fresh_vulkan.run("add", there, there).numpy())
    with pytest.raises(InputError, match="lives on"):
        vulkan.bind("add", here, there)


def test_dispatches_are_split_without_changing_the_result(fresh_vulkan: VulkanDevice) -> None:
    x = np.arange(1 << 16, dtype=np.float32)
    whole = fresh_vulkan.run("axpy", x, x, a=2).numpy()
    fresh_vulkan.work_per_dispatch = 1000
    array = fresh_vulkan.array(x)
    step = fresh_vulkan.bind("axpy", array, array, a=2)
    assert len(step.lowered.dispatches[0].pieces) > 20
    with fresh_vulkan.program([step]) as program:
        program.run()
    assert np.array_equal(step.outputs[0].numpy(), whole)


@pytest.mark.parametrize("groups", [(1, 1, 1), (7, 1, 1), (3, 100, 2), (1, 1, 5)])
@pytest.mark.parametrize("budget", [1, 10, 10_000])
def test_pieces_of_a_split_cover_every_group_once(groups: tuple[int, int, int], budget: int) -> None:
    work = 8 * groups[0] * groups[1] * groups[2]
    values = np.zeros(groups, int)
    for base, count in split(groups, work, budget) or (((0, 0, 0), groups),):
        values[tuple(slice(b, b + n) for b, n in zip(base, count, strict=True))] += 1
    assert (values == 1).all()


def test_long_programs_become_several_submissions(fresh_vulkan: VulkanDevice) -> None:
    fresh_vulkan.work_per_dispatch = 1000
    start, steps = chain(fresh_vulkan, 200)
    with fresh_vulkan.program(steps) as program:
        before = fresh_vulkan.queue.submitted
        program.run()
        assert fresh_vulkan.queue.submitted - before > 2
    assert np.array_equal(steps[-1].outputs[0].numpy(), start + 200)


def test_the_probe_knows_how_long_a_loop_may_run(vulkan: VulkanDevice) -> None:
    trips = vulkan.limits.loop_trips
    assert trips in (SAFE_TRIPS, 1 << 22)
    got = vulkan.run("iterate", np.array([1], np.uint32), steps=trips).numpy()[0]
    assert got == expected(1, trips)
    if "Mesa 22.3" in vulkan.info.driver_info:
        assert trips == SAFE_TRIPS
        assert vulkan.run("iterate", np.array([1], np.uint32), steps=70_000).numpy()[0] != expected(1, 70_000)


def test_uploads_and_readbacks_go_through_staging_where_memory_is_not_mapped(vulkan: VulkanDevice) -> None:
    from dashi.runtime._staging import Staging

    class Unmapped:
        """A buffer that hides its mapping, as on a discrete GPU."""

        view = None

        def __init__(self, buffer: object) -> None:
            self._buffer = buffer

        def __getattr__(self, name: str) -> object:
            return getattr(self._buffer, name)

    staging = Staging(vulkan.raw, vulkan.allocator, vulkan.graveyard, vulkan.queues)
    values = np.random.default_rng(0).integers(0, 1 << 32, 5_000_001, dtype=np.uint32)
    array = vulkan.empty(values.shape, np.uint32)
    staging.write(Unmapped(array.storage), values)  # type: ignore[arg-type]
    assert np.array_equal(array.numpy(), values)
    assert np.array_equal(staging.read(Unmapped(array.storage)).view(np.uint32), values)  # type: ignore[arg-type]


@pytest.mark.usefixtures("vulkan_session")
def test_more_queues_than_the_hardware_has_are_refused() -> None:
    with pytest.raises(LimitError, match="compute queues, 1000 asked for"):
        open_device("vulkan:0", queues=1000)


def test_everything_refuses_use_after_close(fresh_vulkan: VulkanDevice) -> None:
    x = fresh_vulkan.array(np.ones(4, np.float32))
    step = fresh_vulkan.bind("add", x, x)
    program = fresh_vulkan.program([step])
    program.close()
    program.close()
    with pytest.raises(ClosedError, match="the program '' is closed"):
        program.submit()
    other = fresh_vulkan.program([step])
    fresh_vulkan.close()
    fresh_vulkan.close()
    uses = (lambda: fresh_vulkan.array([1.0]), x.numpy, other.submit, lambda: fresh_vulkan.run("add", x, x))
    for use in uses:
        with pytest.raises(ClosedError, match="is closed"):
            use()


class Foreign:
    """An array of another library: nothing but the DLPack protocol."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __dlpack__(self, **options: object) -> object:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()


def test_arrays_of_other_libraries_go_in_and_out_by_dlpack(device: Device) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = device.run("add", Foreign(values), Foreign(values))
    assert np.array_equal(np.from_dlpack(result), 2 * values)
    assert np.array_equal(np.asarray(result), 2 * values)


def test_any_layout_of_a_numpy_array_goes_in(device: Device) -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (values.T, values[::2, ::-1], values[1], np.float32(3).reshape(())):
        assert np.array_equal(device.array(view).numpy(), view)
    empty = np.zeros((0, 3), np.float32)
    assert device.run("add", empty, empty).numpy().shape == (0, 3)


def test_blocks_of_memory_start_small_and_grow(fresh_vulkan: VulkanDevice) -> None:
    arrays = [fresh_vulkan.empty(1000)]
    assert fresh_vulkan.memory().reserved == 1 << 20
    arrays += [fresh_vulkan.empty(1 << 18) for _ in range(64)]
    stats = fresh_vulkan.memory()
    assert stats.blocks <= 7
    assert stats.used <= stats.reserved <= 2 * stats.used
