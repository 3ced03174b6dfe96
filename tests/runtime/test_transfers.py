"""Uploads and downloads behind tickets: values are copied at once, nothing waits for work that it does not need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Device, open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

ONES = np.ones(8, np.float32)


@pytest.fixture(params=["cpu", "vulkan"])
def fresh(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Every device that computes, of the test's own."""
    if request.param == "vulkan":
        yield request.getfixturevalue("fresh_vulkan")
    else:
        with CpuDevice() as cpu:
            yield cpu


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (5, 7)])
def test_what_goes_up_comes_down(device: Device, dtype: Any, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    x = device.empty(shape, dtype)
    ticket = device.upload(x, values)
    download = device.download(x, after=[ticket])
    result = download.result()
    assert (result.dtype, result.shape) == (x.dtype.numpy, shape)
    assert np.array_equal(result, values.astype(x.dtype.numpy))
    assert download.done
    result[...] = 0
    assert np.array_equal(x.numpy(), values)


def test_the_values_may_change_as_soon_as_the_upload_was_started(fresh: Device) -> None:
    x = fresh.zeros(8)
    event = fresh.event()
    values = ONES.copy()
    ticket = fresh.upload(x, values, after=[event])
    values[:] = 7
    assert not ticket.done
    event.signal()
    ticket.wait()
    assert np.array_equal(x.numpy(), ONES)


def test_a_download_waits_for_nothing_but_what_it_is_told_to(fresh: Device) -> None:
    x, y = fresh.array(ONES), fresh.zeros(8)
    event = fresh.event()
    held = fresh.program([fresh.bind("add", x, x, out=y)]).submit(after=[event])
    assert np.array_equal(fresh.download(x, after=[]).result(timeout=10), ONES)
    later = fresh.download(y)  # after all that was submitted
    assert not held.done
    assert not later.done
    event.signal()
    assert np.array_equal(later.result(), 2 * ONES)


def test_an_upload_waits_for_what_still_reads_the_array(fresh: Device) -> None:
    x, y = fresh.array(ONES), fresh.zeros(8)
    event = fresh.event()
    program = fresh.program([fresh.bind("add", x, x, out=y)])
    program.submit(after=[event])
    ticket = fresh.upload(x, 5 * ONES)
    first = fresh.download(y, after=[ticket])
    second = program.submit(after=[ticket, first])
    event.signal()
    second.wait()
    assert np.array_equal(first.result(), 2 * ONES)
    assert np.array_equal(y.numpy(), 10 * ONES)


def test_a_result_stays_what_it_was_while_the_next_is_under_way(fresh: Device) -> None:
    x = fresh.zeros(1 << 10)
    downloads = []
    for i in range(6):
        fresh.upload(x, np.full(1 << 10, i, np.float32))
        downloads.append(fresh.download(x))
    fresh.upload(x, np.full(1 << 10, 9, np.float32)).wait()
    assert [download.result()[0] for download in reversed(downloads)] == [5, 4, 3, 2, 1, 0]
    assert [download.result()[-1] for download in downloads] == [0, 1, 2, 3, 4, 5]


def test_arrays_may_be_closed_while_they_travel(fresh: Device) -> None:
    x = fresh.array(ONES)
    event = fresh.event()
    fresh.upload(x, 3 * ONES, after=[event])
    download = fresh.download(x)
    x.close()
    del x
    event.signal()
    assert np.array_equal(download.result(), 3 * ONES)


def test_nothing_is_allocated_for_the_next_transfer_of_a_size(fresh_vulkan: VulkanDevice) -> None:
    x = fresh_vulkan.zeros(1 << 12)
    values = np.ones(1 << 12, np.float32)

    def both() -> None:
        fresh_vulkan.upload(x, values).wait()
        fresh_vulkan.download(x).result()

    both()
    before = fresh_vulkan.memory()
    for _ in range(20):
        both()
    assert fresh_vulkan.memory() == before


def test_large_arrays_take_memory_while_they_travel_alone(
    fresh_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.runtime._stages._LARGEST_KEPT", 1 << 16)
    values = np.random.default_rng(0).integers(0, 1 << 32, 1 << 18, dtype=np.uint32)
    x = fresh_vulkan.empty(values.shape, np.uint32)
    before = fresh_vulkan.memory().used
    fresh_vulkan.upload(x, values).wait()
    download = fresh_vulkan.download(x)
    assert np.array_equal(download.result(), values)
    del download
    assert fresh_vulkan.memory().used == before


@pytest.mark.parametrize("kind", ["cpu", "null", "vulkan:0"])
def test_bad_transfers_are_refused(kind: str, vulkan: VulkanDevice) -> None:
    with open_device(kind) as device:
        x = device.empty(3)
        other = vulkan.empty(3)
        with pytest.raises(errors.ShapeError, match=r"shape \(4,\) cannot be written to one of shape \(3,\)"):
            device.upload(x, np.zeros(4, np.float32))
        with pytest.raises(errors.DTypeError, match="float64 cannot be written to one of float32"):
            device.upload(x, np.zeros(3))
        with pytest.raises(errors.InputError, match=r"an array lives on .* not here"):
            device.download(other)
        with pytest.raises(errors.InputError, match="`after` takes a list"):
            device.download(x, after=3)  # type: ignore[arg-type]
        x.close()
        with pytest.raises(errors.ClosedError, match="this array is closed"):
            device.upload(x, np.zeros(3, np.float32))
    with pytest.raises(errors.ClosedError):
        device.download(x)


def test_the_null_device_brings_nothing_down() -> None:
    with open_device("null") as null:
        x = null.empty(3)
        null.upload(x, np.zeros(3, np.float32)).wait()
        event = null.event()
        download = null.download(x, after=[event])
        assert not download.done
        event.signal()
        with pytest.raises(errors.NoResultError, match="computes nothing"):
            download.result()


@pytest.mark.parametrize("by", ["auto", "transfer", "kernel"])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float64])
def test_copies_by_kernel_and_by_driver_have_the_same_bits(fresh: Device, by: Any, dtype: Any) -> None:
    values = np.random.default_rng(2).integers(0, 256, 64 * 8, dtype=np.uint8).view(dtype)
    x, y = fresh.array(values), fresh.empty(values.shape, dtype)
    event = fresh.event()
    ticket = fresh.copy(x, y, after=[event], by=by)
    assert not ticket.done
    event.signal()
    ticket.wait()
    assert y.numpy().tobytes() == values.tobytes()


def test_large_copies_on_hardware_are_a_kernels(fresh_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = fresh_vulkan.array(ONES), fresh_vulkan.zeros(8)
    monkeypatch.setattr("dashi.runtime._kernel_copies.KERNEL_COPY_BYTES", 32)
    monkeypatch.setattr(fresh_vulkan, "info", replace(fresh_vulkan.info, type="discrete"))
    queues: list[str] = []
    fresh_vulkan.on_submit(lambda submission: queues.append(submission.queue))
    fresh_vulkan.copy(x, y).wait()
    fresh_vulkan.copy(x[:4], y[:4]).wait()  # too small
    fresh_vulkan.copy(x[1:], y[1:], by="transfer").wait()
    assert queues == ["queue 0", "upload", "upload"]
    assert np.array_equal(y.numpy(), ONES)


def test_what_no_kernel_can_copy_is_refused_where_a_kernel_was_asked_for(fresh: Device) -> None:
    x, y = fresh.zeros(7, np.uint8), fresh.zeros(7, np.uint8)
    with pytest.raises(errors.AlignmentError, match="a kernel cannot copy"):
        fresh.copy(x, y, by="kernel")
    with pytest.raises(errors.InputError, match="by='magic' is none of"):
        fresh.copy(x, y, by="magic")  # type: ignore[arg-type]
    fresh.copy(x, y).wait()


def test_copy_steps_of_large_arrays_are_kernels_on_a_gpu(
    fresh_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = fresh_vulkan
    monkeypatch.setattr("dashi.runtime._kernel_copies.KERNEL_COPY_BYTES", 1 << 12)
    x, y, z = (device.array(np.full(1 << 10, i, np.float32)) for i in range(3))
    half = device.array(np.arange(1 << 12, dtype=np.float16))
    other = device.zeros(1 << 12, np.float16)

    def dispatches() -> int:
        steps = [device.fill_step(x, 7), device.copy_step(x, y), device.copy_step(half, other)]
        small = [device.copy_step(x[:512], z[:512]), device.copy_step(half[1:4000], other[1:4000])]
        with device.program([*steps, *small, device.bind("add", y, z, out=z)]) as program:
            assert program.check().hazards >= 3
            program.run()
            return program.dispatches

    assert dispatches() == 1
    expected = z.numpy()
    monkeypatch.setattr(device, "info", replace(device.info, type="discrete"))
    for array in (y, other):
        array[...] = 0
    z[...] = 2
    assert dispatches() == 3
    assert np.array_equal(z.numpy(), expected)
    assert np.array_equal(other.numpy(), half.numpy())
