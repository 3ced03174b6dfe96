"""What users see when something is wrong: the exact texts."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import errors, kernels
from dashi.kernels.abi import Limits
from dashi.runtime import Device, open_device
from dashi.runtime._instance import Instance
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice


def raises(kind: type[errors.DashiError], text: str) -> Any:
    return pytest.raises(kind, match=f"^{re.escape(text)}$")


def f32(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_wrong_dtype(device: Device) -> None:
    with raises(
        errors.DTypeError,
        "dashi has no element type dtype('complex64'). Fix: store complex numbers as pairs of real ones, in a last "
        "axis of 2: np.stack([z.real, z.imag], axis=-1).",
    ):
        device.array(np.ones(3, np.complex64))
    for kind, native in ((np.dtype("m8[s]"), np.float32), (np.dtype(">f8"), np.float64)):
        with raises(
            errors.DTypeError,
            f"dashi has no element type {np.dtype(kind)!r}. Fix: convert to one of float32, float64, float16, uint16, "
            "int16, uint32, int32, uint64, int64, int8, uint8, bool, for instance with "
            f".astype(np.{native.__name__}).",
        ):
            device.array(np.ones(3, kind))
    with raises(
        errors.DTypeError,
        "kernel 'add': y is float64, but x is float32. Fix: convert one of them, for instance y.astype(np.float32).",
    ):
        device.run("add", f32(3), np.ones(3))
    with raises(
        errors.DTypeError,
        "kernel 'tanh' has no variant i32; it has f32, f64. Fix: convert the arrays to float32.",
    ):
        device.run("tanh", np.array([1], np.int32))
    with raises(
        errors.DTypeError,
        "kernel 'gather': index is int32, but must be uint32. Fix: convert it: index.astype(np.uint32).",
    ):
        device.run("gather", f32(3), np.array([0], np.int32))
    with raises(
        errors.DTypeError,
        "an array of float64 cannot be written to one of float32. Fix: convert it first: values.astype(np.float32).",
    ):
        device.array(f32(2)).write(np.ones(2))


def test_wrong_shape(device: Device) -> None:
    with raises(
        errors.ShapeError,
        "kernel 'add': y has shape (4,), which does not stretch to (3,) and back. Fix: pass arrays whose lengths "
        "agree, or are 1, axis by axis from the last.",
    ):
        device.run("add", f32(3), f32(4))
    with raises(errors.ShapeError, "a shape cannot be negative: (-1,). Fix: give lengths of 0 or more."):
        device.empty(-1)
    with raises(
        errors.ShapeError,
        "kernel 'add': result must have shape (3,), the array given has (4,). Fix: pass an array of that shape, or "
        "leave `out` away.",
    ):
        device.run("add", f32(3), f32(3), out=device.empty(4))
    with raises(
        errors.DTypeError,
        "kernel 'add': result must be float32, the array given is float64. Fix: pass an array of that type, or leave "
        "`out` away.",
    ):
        device.run("add", f32(3), f32(3), out=device.empty(3, np.float64))
    with raises(
        errors.ShapeError,
        "an array of shape (3,) cannot be written to one of shape (2,). Fix: pass an array of the same shape.",
    ):
        device.array(f32(2)).write(f32(3))


def test_arrays_that_are_not_of_this_device(device: Device) -> None:
    with raises(
        errors.InputError,
        "kernel 'add': x is a ndarray, not an array of this device. Fix: pass it through device.array(...) first, or "
        "use device.run(...).",
    ):
        device.bind("add", f32(3), f32(3))  # pyright: ignore[reportArgumentType]
    with (
        NullDevice() as other,
        raises(
            errors.InputError,
            "kernel 'add': x lives on 'null', not here. Fix: copy it over: device.array(other.numpy()).",
        ),
    ):
        device.run("add", other.empty(3), f32(3))


def test_steps_of_another_device(device: Device) -> None:
    with NullDevice() as other:
        step = other.bind("add", other.empty(3), other.empty(3))
        with raises(
            errors.InputError,
            "a step of kernel 'add' is bound to arrays of another device. Fix: bind it on this device: "
            "device.bind(...).",
        ):
            device.program([step])


def test_closed_array(device: Device) -> None:
    x = device.array(f32(3))
    x.close()
    x.close()
    with raises(errors.ClosedError, "this array is closed. Fix: make a new one, or close arrays later."):
        x.numpy()


def test_arrays_outlive_their_closing_while_a_step_is_bound_to_them(device: Device) -> None:
    x = device.array(f32(3))
    step = device.bind("add", x, x)
    x.close()
    if isinstance(device, VulkanDevice):
        with device.program([step]) as program:
            program.run()
        assert np.array_equal(step.outputs[0].numpy(), [2, 2, 2])


@pytest.mark.usefixtures("vulkan_session")
def test_unknown_devices() -> None:
    with raises(
        errors.DeviceNotFoundError,
        "'gpu' is not a device. Fix: write auto, cpu, null, vulkan:0 or vulkan:part-of-name.",
    ):
        open_device("gpu")
    with pytest.raises(errors.DeviceNotFoundError, match="no Vulkan device matches 'voodoo'; there are: vulkan:0"):
        open_device("vulkan:voodoo")
    with pytest.raises(errors.DeviceNotFoundError, match="no Vulkan device matches '77'"):
        open_device("vulkan:77")


def test_no_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHI_VULKAN_LOADER", "/nowhere/libvulkan.so.1")
    with raises(
        errors.LoaderNotFoundError,
        "no Vulkan loader was found (tried /nowhere/libvulkan.so.1). Fix: install one (Debian: apt-get install "
        'libvulkan1 mesa-vulkan-drivers), or use `device="cpu"`.',
    ):
        open_device("vulkan:0")
    with open_device("auto") as device:
        assert device.info.spec == "cpu"


def test_missing_feature(fresh_vulkan: VulkanDevice) -> None:
    object.__setattr__(fresh_vulkan.info, "features", fresh_vulkan.info.features - {"fp64"} | {"int64"})
    with raises(
        errors.FeatureError,
        f"kernel 'add' (f64) needs fp64, which {fresh_vulkan.info.name!r} lacks. Fix: use another element type, or "
        "another device (`dashi devices list` shows features; cpu has them all).",
    ):
        fresh_vulkan.run("add", np.ones(3), np.ones(3))


def test_too_large_to_bind(vulkan: VulkanDevice) -> None:
    size = vulkan.limits.storage_range // 4 + 1
    with raises(
        errors.LimitError,
        f"an array of {4 * size} bytes is larger than {vulkan.info.name!r} can bind ({vulkan.limits.storage_range}). "
        "Fix: split it into smaller arrays, or choose another device.",
    ):
        vulkan.empty(size)


def test_too_many_buffers(fresh_vulkan: VulkanDevice) -> None:
    fresh_vulkan._limits = replace(fresh_vulkan.limits, storage_buffers=2)
    with raises(
        errors.LimitError,
        f"kernel 'add' binds 3 buffers; {fresh_vulkan.info.name!r} allows 2. Fix: split it into kernels of fewer "
        "arrays, or choose another device, for instance cpu.",
    ):
        fresh_vulkan.run("add", f32(3), f32(3))


def test_loops_that_the_device_would_cut_short() -> None:
    with (
        NullDevice(Limits(invocations=256, groups=1, loop_trips=10)) as device,
        raises(
            errors.LimitError,
            "kernel 'add' would loop 25 times in one invocation; this device is only right up to 10. Fix: split the "
            "work into smaller calls.",
        ),
    ):
        device.run("add", f32(10000), f32(10000))


@pytest.mark.parametrize(("code", "where"), [(-1, "host"), (-2, "device")])
def test_out_of_memory(fresh_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch, code: int, where: str) -> None:
    monkeypatch.setattr(fresh_vulkan.raw.fns, "AllocateMemory", lambda *_: code)
    with raises(
        errors.OutOfMemoryError,
        f"vkAllocateMemory found no {where} memory left. Fix: close arrays that are no longer needed, use smaller "
        "ones, or choose a device with more memory.",
    ):
        fresh_vulkan.empty(1 << 22)
    monkeypatch.undo()
    assert np.array_equal(fresh_vulkan.run("add", f32(3), f32(3)).numpy(), [2, 2, 2])


def test_lost_device(fresh_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    x = fresh_vulkan.array(f32(3))
    with fresh_vulkan.program([fresh_vulkan.bind("add", x, x)]) as program:
        for submission in program._first.submissions[0]:  # pyright: ignore[reportAttributeAccessIssue]
            submission._submit = lambda *_: -4
        with raises(
            errors.DeviceLostError,
            "vkQueueSubmit reports that the device was lost; every array and program on it is gone. Fix: close the "
            "device and open it again; if it recurs, submit less work at a time or update the driver.",
        ):
            program.run()
    fresh_vulkan.close()
    with open_device("vulkan:0") as again:
        assert np.array_equal(again.run("add", f32(3), f32(3)).numpy(), [2, 2, 2])


def test_work_that_does_not_end_in_time(fresh_vulkan: VulkanDevice) -> None:
    with raises(
        errors.TimeoutError_,
        "the device did not finish its work within 0.1 s. Fix: submit less work at a time, or raise the limit: "
        "dashi.open(device, timeout=SECONDS).",
    ):
        fresh_vulkan.queue.wait(fresh_vulkan.queue.submitted + 1, timeout=0.1)


def test_the_null_device_has_no_results() -> None:
    with (
        NullDevice() as device,
        raises(
            errors.NoResultError,
            'the null device computes nothing. Fix: compute elsewhere: `device="auto"`, `device="cpu"` or '
            '`device="vulkan:0"`.',
        ),
    ):
        device.run("add", f32(3), f32(3)).numpy()


def test_unknown_kernel_and_scalars(device: Device) -> None:
    with pytest.raises(errors.KernelNotFoundError, match=r"there is no kernel 'axpi'\. Fix: did you mean axpy"):
        device.run("axpi", f32(3))
    with raises(
        errors.InputError,
        "kernel 'axpy' has no scalar 'b'; its scalars are a. Fix: remove or rename it.",
    ):
        device.run("axpy", f32(3), f32(3), a=1, b=2)


@pytest.mark.usefixtures("vulkan_session")
def test_validation_without_layers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dashi.runtime._vk_instance.layer_names", lambda _: [])
    with raises(
        errors.VulkanError,
        "validation was asked for, but the validation layers are not installed. Fix: install them (Debian: apt-get "
        "install vulkan-validationlayers), or unset DASHI_VALIDATION.",
    ):
        Instance(validation=True)


@pytest.mark.usefixtures("vulkan_session")
def test_a_damaged_pipeline_cache_is_rebuilt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path))
    for damage in (None, b"", b"short", b"\xff" * 5000):
        for file in (tmp_path / "pipelines").glob("*") if damage is not None else ():
            file.write_bytes(damage or b"")
        with open_device("vulkan:0") as device:
            assert np.array_equal(device.run("add", f32(3), f32(3)).numpy(), [2, 2, 2])
        assert len(list((tmp_path / "pipelines").glob("*.bin"))) == 1


@pytest.mark.usefixtures("vulkan_session")
def test_a_cache_folder_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("DASHI_CACHE_DIR", str(blocked))
    with open_device("vulkan:0") as device:
        assert np.array_equal(device.run("add", f32(3), f32(3)).numpy(), [2, 2, 2])


def test_every_error_ends_with_a_fix() -> None:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.DashiError):
            assert str(kind("something happened.", "do this.")) == "something happened. Fix: do this."
    assert kernels.names()


@pytest.mark.usefixtures("vulkan_session")
def test_empty_driver_variables_mean_the_same_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(variable, "")
    with open_device("vulkan:0") as device:
        assert device.info.spec == "vulkan:0"
    assert os.environ["VK_DRIVER_FILES"] == ""
