"""Wrong kinds of arguments give typed errors with a fix, on every device; and what objects say of themselves."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dashi
from dashi import errors
from dashi.core import Linear
from dashi.runtime import Device
from dashi.runtime._vulkan_device import VulkanDevice


class Gradient:
    """A tensor that neither DLPack nor NumPy can have: of torch, one that requires grad."""

    def __dlpack__(self, **options: object) -> object:
        raise BufferError("Can't export tensors that require gradient")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def cpu(self) -> Gradient:
        return self

    def __array__(self, *values: object, **options: object) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


class Brain(Gradient):
    """One of bfloat16."""

    def __array__(self, *values: object, **options: object) -> Any:
        raise TypeError("Got unsupported ScalarType BFloat16")


MISUSES: dict[str, tuple[Any, type[errors.DashiError], str]] = {
    "shape 3.5": (lambda d, x, s: d.empty(3.5), errors.ShapeError, "3.5 is not a shape. Fix: give a length"),
    "shape None": (lambda d, x, s: d.empty(None), errors.ShapeError, "None is not a shape"),
    "shape (2.5,)": (lambda d, x, s: d.empty((2.5,)), errors.ShapeError, "(2.5,) is not a shape"),
    "shape text": (lambda d, x, s: d.empty("ab"), errors.ShapeError, "'ab' is not a shape"),
    "part at text": (lambda d, x, s: d.part(x, "a", 4), errors.InputError, "a whole number, not 'a'. Fix: pass an int"),
    "part of nothing": (lambda d, x, s: d.part(None, 0, 1), errors.InputError, "not an array of this device"),
    "program of arrays": (lambda d, x, s: d.program([x]), errors.InputError, "a list of steps, not from Array. Fix: "),
    "program of one": (lambda d, x, s: d.program(s), errors.InputError, "a list of steps, not from one Step. Fix: "),
    "program of nothing": (lambda d, x, s: d.program(None), errors.InputError, "not from NoneType"),
    "barriers": (lambda d, x, s: d.program([s], barriers="Auto"), errors.InputError, "Fix: did you mean 'auto'?"),
    "barriers always": (lambda d, x, s: d.program([s], barriers="always"), errors.InputError, "none of 'auto', 'all'"),
    "barriers True": (lambda d, x, s: d.program([s], barriers=True), errors.InputError, "barriers=True is none of"),
    "queue -1": (lambda d, x, s: d.program([s], queue=-1), errors.InputError, "there is no queue -1"),
    "queue text": (lambda d, x, s: d.program([s], queue="0"), errors.InputError, "a whole number, not '0'"),
    "no slots": (lambda d, x, s: d.program([s], slots=0), errors.InputError, "Fix: ask for one slot or more."),
    "fetch of one": (lambda d, x, s: d.program([s], fetch=x), errors.InputError, "Fix: pass fetch=[array]."),
    "fetch of 5": (lambda d, x, s: d.program([s], fetch=[5]), errors.InputError, "not an array of this device"),
    "after 5": (lambda d, x, s: d.program([s]).submit(after=[5]), errors.InputError, "`after` takes a list of tickets"),
    "after one": (lambda d, x, s: d.copy(x, d.empty(4), after=5), errors.InputError, "`after` takes a list of tickets"),
    "kernel None": (lambda d, x, s: d.run(None), errors.InputError, "None is no kernel. Fix: pass its name"),
    "out 5": (lambda d, x, s: d.run("add", x, x, out=5), errors.InputError, "result is a int"),
    "ragged": (lambda d, x, s: d.array([[1, 2], [3]]), errors.InputError, "inhomogeneous"),
    "objects": (lambda d, x, s: d.array([None]), errors.DTypeError, "dtype('O')"),
    "masked": (
        lambda d, x, s: d.array(np.ma.masked_array([1.0, 2.0], [True, False])), errors.InputError,
        "would lose its mask on the device. Fix: fill it",
    ),
    "gradient": (lambda d, x, s: d.array(Gradient()), errors.InputError, "requires grad: tensor.detach()"),
    "bfloat16": (lambda d, x, s: d.array(Brain()), errors.InputError, "bfloat16: tensor.float()."),
    "too large for the host": (
        lambda d, x, s: d.array(np.broadcast_to(np.float32(1), (1 << 45,))),
        errors.OutOfMemoryError, "Unable to allocate",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSES)
def test_wrong_kinds_of_arguments_are_typed_errors(device: Device, name: str) -> None:
    misuse, kind, text = MISUSES[name]
    x = device.array(np.ones(4, np.float32))
    step = device.bind("add", x, x)
    with pytest.raises(kind) as caught:
        misuse(device, x, step)
    assert text in str(caught.value)
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize("wrong", [0, None, 1.5, ["cpu"]])
def test_devices_are_opened_by_name(wrong: Any) -> None:
    with pytest.raises(errors.DeviceNotFoundError, match=r"is not a device: devices are opened by name\. Fix: pass "):
        dashi.open(wrong)


@pytest.mark.parametrize("options", [{"timeout": "a"}, {"timeout": float("nan")}, {"timeout": -1}, {"queues": 0}])
def test_what_a_device_is_opened_with_is_checked_for_every_device(options: dict[str, Any]) -> None:
    with pytest.raises(errors.InputError, match="Fix: "):
        dashi.open("cpu", **options)


def test_any_integer_is_a_length(device: Device) -> None:
    for shape in (np.int64(5), (np.int32(5),), np.array([5])):
        assert device.empty(shape).shape == (5,)
    whole = device.array(np.arange(64, dtype=np.float32))
    assert device.part(whole, np.int64(0), np.uint8(2)).numpy().tolist() == [0, 1]
    assert device.array(np.ma.masked_array([1.0], [False])).numpy().tolist() == [1]


def test_memory_of_the_host_that_runs_out_is_a_typed_error() -> None:
    with dashi.open("cpu") as cpu:
        with pytest.raises(errors.OutOfMemoryError, match=r"Unable to allocate .* Fix: close arrays"):
            cpu.empty((1 << 25, 1 << 25))
        assert issubclass(errors.OutOfMemoryError, MemoryError)


def test_values_in_another_byte_order_are_refused_with_a_fix_that_works() -> None:
    swapped = np.eye(3).astype(">f8")
    with pytest.raises(errors.DTypeError, match=r"A is an array of >f8\. Fix: convert it: A\.astype\(np\.float64\)"):
        Linear(swapped)
    Linear(swapped.astype(np.float64))


def test_the_fix_for_complex_values_keeps_the_imaginary_part(device: Device) -> None:
    z = np.array([1 + 2j, 3 - 1j], np.complex64)
    with pytest.raises(errors.DTypeError, match=r"np\.stack\(\[z\.real, z\.imag\], axis=-1\)"):
        device.array(z)
    pairs = device.array(np.stack([z.real, z.imag], axis=-1)).numpy()
    assert np.array_equal(pairs.view(np.complex64)[:, 0], z)


def test_copies_that_overlap_are_refused_and_copies_of_nothing_do_nothing(device: Device) -> None:
    whole = device.empty(1024, np.uint8)
    pitch = device.part_alignment
    low, high = device.part(whole, 0, 2 * pitch), device.part(whole, pitch, 2 * pitch)
    with pytest.raises(errors.InputError, match=r"share memory, .* Fix: copy between parts that do not overlap"):
        device.copy(low, high)
    device.copy(low, device.part(whole, 2 * pitch, 2 * pitch)).wait()
    ticket = device.copy(device.empty((0, 4)), device.empty((0, 4)))
    ticket.wait()
    assert ticket.done
    with pytest.raises(errors.InputError, match="nothing comes back with this work"):
        ticket.fetched(low)


@pytest.mark.validation
@pytest.mark.usefixtures("vulkan_session")
def test_copies_and_fetches_of_nothing_are_valid_for_the_layers() -> None:
    with dashi.open("vulkan:0", validation=True) as device:
        assert isinstance(device, VulkanDevice)
        nothing, x = device.empty(0), device.array(np.ones(8, np.float32))
        device.copy(nothing, device.empty(0)).wait()
        step = device.bind("add", x, x)
        with device.program([step], fetch=[nothing, step.outputs[0], step.outputs[0]], slots=3) as program:
            tickets = [program.submit() for _ in range(3)]
            assert [ticket.fetched(step.outputs[0])[0] for ticket in tickets] == [2, 2, 2]
            program.run()
            assert program.fetched(nothing).size == 0
        assert device.instance.messages == []


def test_queues_that_were_not_opened_are_refused(vulkan: VulkanDevice) -> None:
    with pytest.raises(errors.InputError, match=r"there is no compute queue 7; .* Fix: open it with more"):
        vulkan.program([], queue=7)


def test_objects_say_what_they_are_in_one_line(device: Device) -> None:
    x = device.array(np.ones((2, 3), np.float32))
    step = device.bind("axpy", x, x, a=2)
    with device.program([step, step], label="twice") as program:
        assert repr(step).startswith("<Step axpy f32: (2, 3), (2, 3) -> (2, 3), a=2")
        assert repr(program).startswith(f"<Program 'twice' on {device.info.spec}: 2 steps, ")
        assert repr(device) == f"<Device {device.info.spec}: {device.info.name} ({device.info.type})>"
        for thing in (step, program, device):
            assert len(repr(thing)) < 150
    assert "closed" in repr(program)


def test_the_package_shows_its_parts_and_nothing_else() -> None:
    code = """
import sys, dashi
print(dir(dashi))
assert not any(name in sys.modules for name in ("dashi.core", "dashi.fft", "dashi.flow", "numpy.fft"))
print(dashi.fft.rfft2.__name__, dashi.core.rollout.__name__, dashi.flow.Flow.__name__, dashi.__version__ != "")
try:
    dashi.nothing
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, parts, error = done.stdout.splitlines()
    assert names == str(sorted(dir(dashi)))
    assert (parts, error) == ("rfft2 rollout Flow True", "module 'dashi' has no attribute 'nothing'")
