"""Elementwise kernels by name: arrays are stretched to one shape by NumPy's rules, and element types are served that a
kernel's own shaders do not serve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.runtime.device import Device

SHAPES = [((3, 4), (4,)), ((2, 1, 5), (3, 1)), ((7,), ()), ((1, 1), (6, 2)), ((0, 3), (3,))]


def numbers(shape: tuple[int, ...], kind: Any, seed: int) -> Any:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape) * 50).astype(kind)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int16])
def test_arrays_are_stretched_as_numpy_stretches_them(device: Device, shapes: Any, kind: Any) -> None:
    x, y = (numbers(shape, kind, k) for k, shape in enumerate(shapes))
    full = [np.ascontiguousarray(a) for a in np.broadcast_arrays(x, y)]
    functions: dict[str, Any] = {"sub": np.subtract, "maximum": np.maximum, "less": np.less}
    for name, function in functions.items():
        got = device.run(name, x, y).numpy()
        assert got.tobytes() == device.run(name, *full).numpy().tobytes()
        assert np.array_equal(got, function(x, y))


def test_kernels_of_three_arrays_and_of_scalars_stretch_too(device: Device) -> None:
    x, row, one = numbers((3, 5), np.float32, 0), numbers((5,), np.float32, 1), numbers((), np.float32, 2)
    got = device.run("fma3", x, row, one).numpy()
    assert got.tobytes() == (x * row + one).tobytes()
    assert device.run("axpy", row, x, a=2).numpy().tobytes() == (2 * row + x).tobytes()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int8, np.uint64, np.bool_])
@pytest.mark.parametrize("condition", [np.bool_, np.float64, np.int16, np.float32])
def test_a_condition_has_any_type_and_bits_are_moved(device: Device, kind: Any, condition: Any) -> None:
    tests = np.array([[0], [1], [0]], condition)
    if condition in (np.float32, np.float64):
        tests = np.array([[-0.0], [np.nan], [np.finfo(condition).smallest_subnormal]], condition)
    x = numbers((4,), kind, 3)
    y = np.frombuffer(np.random.default_rng(4).bytes(12 * x.itemsize), f"u{x.itemsize}").reshape(3, 4)
    y = (y & 1).astype(np.bool_) if kind is np.bool_ else y.view(kind)  # any bits: payloads, subnormals, -0
    got = device.run("where", tests, x, y).numpy()
    assert got.tobytes() == np.where(tests != 0, x.view(f"u{x.itemsize}"), y.view(f"u{x.itemsize}")).tobytes()


def test_arrays_of_one_shape_run_the_kernel_that_they_name(device: Device) -> None:
    x, row = device.zeros((3, 4)), device.zeros(4)
    assert device.bind("add", x, x).kernel is kernels.get("add")
    stretched = device.bind("add", x, row)
    assert (stretched.name, stretched.kernel.family) == ("add", "fused")
    assert device.bind("add", x, row).kernel is stretched.kernel


def test_integers_and_bf16_are_added_where_the_kernel_has_no_variant(device: Device) -> None:
    assert device.run("add", np.array([250], np.uint8), np.array([10], np.uint8)).numpy().tolist() == [4]
    assert device.run("mul", np.array([2**40], np.int64), np.array([3], np.int64)).numpy().tolist() == [3 * 2**40]
    halves = device.array([1.5, 2.0], dtype="bf16")
    assert device.run("sub", halves, device.array([0.5], dtype="bf16")).numpy().tolist() == [1.0, 1.5]


def test_a_stretched_result_may_be_written_over_the_input_that_has_its_shape(device: Device) -> None:
    x, row = device.array(numbers((3, 4), np.float32, 5)), device.array(numbers((4,), np.float32, 6))
    product: Any = np.multiply(x.numpy(), row.numpy())
    out = device.empty((3, 4))
    device.run("mul", x, row, out=out)
    assert np.array_equal(out.numpy(), product)
    device.run("mul", x, row, out=x)
    assert np.array_equal(x.numpy(), product)
