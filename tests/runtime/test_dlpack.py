"""Arrays of other libraries go in and out without a copy, where the device and the memory allow it."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dashi import errors
from dashi.runtime import Device, open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._memory import DeviceMemory
from dashi.runtime._null_device import NullDevice
from dashi.runtime._outside_memory import aligned_bytes
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.types import HostArray

PAGE = 4096


class Foreign:
    """An array of another library: nothing but the DLPack protocol."""

    def __init__(self, values: HostArray) -> None:
        self._values: Any = values

    def __dlpack__(self, **options: object) -> object:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()


def numbers(count: int, offset: int = 0) -> npt.NDArray[np.float32]:
    """0, 1, 2, ... in memory of the host that begins `offset` bytes after the beginning of a page."""
    values = aligned_bytes(4 * count + offset, PAGE)[offset : offset + 4 * count].view(np.float32)
    values[...] = np.arange(count)
    return values


def address(values: HostArray) -> int:
    return values.ctypes.data


def importing(device: Device) -> None:
    """Skips where the driver imports no memory of the host."""
    if isinstance(device, VulkanDevice) and not device.external.host_alignment:
        pytest.skip("the driver imports no memory of the host")


@pytest.mark.parametrize("count", [1024, 1000, 5])
@pytest.mark.parametrize("offset", [0, 256, PAGE - 256])
def test_borrowed_memory_is_read_and_written_in_place(device: Device, count: int, offset: int) -> None:
    importing(device)
    x = numbers(count, offset)
    a = device.from_dlpack(Foreign(x), copy=False)
    device.run("scale", a, a=2.0, out=a)
    assert np.array_equal(x, 2 * np.arange(count))
    x += 1  # seen by the next submission
    assert np.array_equal(device.run("scale", a, a=1.0).numpy(), x)
    a.write(np.zeros(count, np.float32))
    assert not x.any()


def test_bytes_beside_borrowed_memory_are_left_alone(device: Device) -> None:
    importing(device)
    room = aligned_bytes(3 * PAGE, PAGE)
    room[...] = 7
    part = room[PAGE + 256 : PAGE + 256 + 37]
    a = device.from_dlpack(part, copy=False)
    with device.program([device.fill_step(a, 3)]) as program:
        program.run()
    assert (part == 3).all()
    assert (room == 3).sum() == 37
    if isinstance(device, VulkanDevice):
        with pytest.raises(errors.AlignmentError, match="ends within 16 bytes that belong to others"):
            device.bind("copy", device.zeros(37, np.uint8), out=a)


def test_what_is_borrowed_lives_as_long_as_the_device_uses_it(device: Device) -> None:
    importing(device)
    x = numbers(2048)
    owner = weakref.ref(x.base if x.base is not None else x)
    a = device.from_dlpack(x, copy=False)
    step = device.bind("scale", a, a=3.0)
    program = device.program([step])
    a.close()
    del x
    gc.collect()
    assert owner() is not None
    program.run()
    assert step.outputs[0].numpy()[2047] == 3 * 2047
    program.close()
    del a, step, program
    gc.collect()
    device.wait()
    if isinstance(device, VulkanDevice):
        device.memory()  # buries what is dead
    gc.collect()
    assert owner() is None


# Freed memory of this size goes back to the system: whoever reads it crashes.
FORGOTTEN_DEVICE = """
import gc, weakref
import numpy as np
import dashi

def borrow():
    device = dashi.open("vulkan:0", validation=False)
    values = np.full(4 << 20, 7, np.uint8)
    return np.from_dlpack(device.from_dlpack(values, copy=False)), weakref.ref(values)

view, owner = borrow()
gc.collect()
assert owner() is not None
assert (view == 7).all()
del view
gc.collect()
assert owner() is None
print("alive")
"""


def test_a_view_of_borrowed_memory_outlives_a_device_that_was_forgotten(vulkan: VulkanDevice) -> None:
    importing(vulkan)
    done = subprocess.run([sys.executable, "-c", FORGOTTEN_DEVICE], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def test_hazards_of_memory_that_was_borrowed_twice_are_seen(device: Device) -> None:
    importing(device)
    x = numbers(2048)
    whole, part = device.from_dlpack(x, copy=False), device.from_dlpack(x[1024:], copy=False)
    assert whole.overlaps(part)
    assert not device.from_dlpack(x[:1024], copy=False).overlaps(part)
    steps = [device.fill_step(whole, 2), device.bind("scale", part, a=5.0)]
    with device.program(steps) as program:
        assert program.check().hazards == 1
        program.run()
    assert (steps[1].outputs[0].numpy() == 10).all()


def test_exported_memory_is_the_arrays_own_and_comes_after_pending_work(device: Device) -> None:
    if isinstance(device, VulkanDevice) and not all(kind.host_cached for kind in device.info.memory_types):
        pytest.skip("arrays of this device are not in memory of the host")
    x = device.array(np.ones(1 << 18, np.float32))
    go = device.event()
    with device.program([device.bind("scale", x, out=x, a=2.0)] * 20) as program:
        ticket = program.submit(after=[go])
        go.signal()
        shown = np.from_dlpack(x, copy=False)
        assert ticket.done
    assert (shown == 2.0**20).all()
    assert address(shown) == address(np.asarray(x, copy=False)) == address(np.from_dlpack(x))
    shown[:3] = 5
    assert device.run("scale", x, a=1.0).numpy()[:4].tolist() == [5, 5, 5, 2.0**20]
    part = np.from_dlpack(x[4:8], copy=False)
    assert address(part) == address(shown) + 16
    for copy in (np.from_dlpack(x, copy=True), np.asarray(x), x.numpy()):
        assert not np.shares_memory(copy, shown)


@pytest.mark.parametrize("spec", ["cpu", "vulkan:0"])
def test_exported_memory_outlives_array_and_device(spec: str, request: pytest.FixtureRequest) -> None:
    if spec != "cpu":
        request.getfixturevalue("vulkan_session")
    device = open_device(spec)
    shown = np.from_dlpack(device.array(np.arange(4096, dtype=np.int32)))
    gc.collect()
    device.close()
    assert shown.sum() == 4095 * 2048
    shown[...] = 1
    assert shown.sum() == 4096


def test_what_the_host_does_not_reach_leaves_as_a_copy(
    fresh_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = fresh_vulkan.array(np.arange(3, dtype=np.float32))
    block: DeviceMemory = a.storage.allocation.block
    monkeypatch.setattr(block, "view", None)
    # The read itself would go through staging buffers on such a device.
    monkeypatch.setattr(fresh_vulkan, "read", lambda _: np.arange(3, dtype=np.float32).view(np.uint8))
    assert np.from_dlpack(a).tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match=r"leaves only as a copy\. Fix: leave copy=False away"):
        np.from_dlpack(a, copy=False)
    with pytest.raises(ValueError, match=r"leaves only as a copy\. Fix: leave copy=False away"):
        np.asarray(a, copy=False)


def read_only() -> HostArray:
    values = numbers(8)
    values.flags.writeable = False
    return values


class Elsewhere:
    """A tensor in memory of a GPU."""

    def __dlpack__(self, **_: object) -> object:
        raise BufferError("cannot be exported to the host")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "strided": (lambda: numbers(8)[::2], errors.UnsupportedOperationError, "not lie in one piece of memory in C order"),
    "read-only": (read_only, errors.UnsupportedOperationError, "is read-only, and kernels may write"),
    "list": (lambda: [1.0, 2.0], errors.UnsupportedOperationError, "list has no memory that DLPack shows"),
    "complex": (lambda: np.ones(4, np.complex64), errors.DTypeError, "has no element type"),
    "elsewhere": (Elsewhere, errors.UnsupportedOperationError, "Elsewhere is not in memory of the host"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_borrowed_is_refused_by_a_typed_error(device: Device, name: str) -> None:
    make, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text) as caught:
        device.from_dlpack(make(), copy=False)
    assert "Fix: " in str(caught.value)


def test_without_a_wish_what_cannot_be_borrowed_is_copied(device: Device) -> None:
    x = numbers(8)
    assert device.from_dlpack(x[::2]).numpy().tolist() == [0, 2, 4, 6]
    copy = device.from_dlpack(x, copy=True)
    x[...] = 0
    assert copy.numpy()[7] == 7
    assert device.from_dlpack(np.empty((0, 3), np.float32), copy=False).numpy().shape == (0, 3)


def test_a_vulkan_device_borrows_only_where_shaders_can_start(vulkan: VulkanDevice) -> None:
    importing(vulkan)
    x = numbers(64)
    with pytest.raises(errors.AlignmentError, match=rf"begins at a multiple of {vulkan.part_alignment} bytes, or copy"):
        vulkan.from_dlpack(x[1:], copy=False)
    assert vulkan.from_dlpack(x[1:]).numpy()[0] == 1


def test_a_driver_that_imports_nothing_says_so(vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulkan, "external", replace(vulkan.external, host_alignment=0))
    with pytest.raises(errors.UnsupportedOperationError, match="imports no memory of the host"):
        vulkan.from_dlpack(numbers(8), copy=False)
    assert vulkan.from_dlpack(numbers(8)).numpy()[7] == 7


def test_the_null_device_borrows_nothing() -> None:
    with NullDevice() as device, pytest.raises(errors.UnsupportedOperationError, match="uses no memory of the host"):
        device.from_dlpack(numbers(8), copy=False)


def test_truth_values_leave_as_copies() -> None:
    with CpuDevice() as device:
        a = device.array(np.array([1, 2, 0], np.uint8)).view(np.bool_)
        assert np.from_dlpack(a).view(np.uint8).tolist() == [1, 1, 0]
        with pytest.raises(BufferError, match="leaves only as a copy"):
            np.from_dlpack(a, copy=False)
