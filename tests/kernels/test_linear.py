"""What the matrix products promise beyond agreeing with their references on the cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.kernels._calls import resolve_call
from dashi.kernels._validate import check_plan
from dashi.kernels.abi import Call, Kernel, Limits, Plan
from dashi.kernels.portable import sum64
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

KINDS = pytest.mark.parametrize("kind", [np.float32, np.float64])
CHUNK = 4096


def random(*shape: int, kind: Any) -> Any:
    return np.random.default_rng(11).standard_normal(shape).astype(kind)


def few(name: str, **limits: int) -> Kernel:
    """The kernel as a device with those limits would run it."""
    kernel = kernels.get(name)

    def plan(call: Call) -> Plan:
        return kernel.plan(replace(call, limits=replace(call.limits, **limits)))

    return replace(kernel, plan=plan)


@KINDS
def test_gemv_multiplies_a_row_with_a_matrix(device: Device, kind: Any) -> None:
    rng = np.random.default_rng(2)
    x, a = rng.integers(-8, 9, 70).astype(kind), rng.integers(-8, 9, (70, 5)).astype(kind)
    np.testing.assert_array_equal(device.run("gemv", x, a).numpy(), x @ a)


@KINDS
@pytest.mark.parametrize("depth", [65, 1100, 5000])
def test_gemm_with_one_row_gives_the_bits_of_gemv(device: Device, kind: Any, depth: int) -> None:
    x, a = random(depth, kind=kind), random(depth, 37, kind=kind)
    row = device.run("gemm", x[None], a).numpy()
    assert row.tobytes() == device.run("gemv", x, a).numpy().tobytes()


@KINDS
def test_a_row_of_gemm_does_not_depend_on_the_others(device: Device, kind: Any) -> None:
    a, b = random(67, 130, kind=kind), random(130, 70, kind=kind)
    whole = device.run("gemm", a, b).numpy()
    assert device.run("gemm", a[65:66], b).numpy().tobytes() == whole[65].tobytes()


@pytest.mark.parametrize(
    ("kind", "left", "right", "kept"),
    [
        (np.float32, -51, -51, True),
        (np.float32, -51, -52, False),
        (np.float32, -90, -12, True),
        (np.float32, -90, -13, False),
        (np.float32, 20, -102, True),
        (np.float64, -484, -485, True),
        (np.float64, -485, -485, False),
        (np.float64, -960, -9, True),
        (np.float64, -960, -10, False),
    ],
)
def test_products_below_the_threshold_count_as_zero(
    device: Device, kind: Any, left: int, right: int, kept: bool
) -> None:
    # 64 of them would be above it together, so skipping the flush where it is needed would show.
    a, b = np.full((3, 64), 2.0**left, kind), np.full((64, 5), 2.0**right, kind)
    expected = np.full((3, 5), 2.0 ** (left + right + 6) if kept else 0.0, kind)
    np.testing.assert_array_equal(device.run("gemm", a, b).numpy(), expected)
    np.testing.assert_array_equal(device.run("gemv", a[0], b).numpy(), expected[0])


def test_a_tiny_element_flushes_its_own_products_only(device: Device) -> None:
    # Row 0 is ordinary, row 1 tiny, in one tile; the second run of 64 is ordinary again.
    a, b = np.ones((2, 100), np.float32), np.full((100, 2), 2.0**-30, np.float32)
    a[1, :64] = 2.0**-80
    expected = np.array([[100 * 2.0**-30] * 2, [36 * 2.0**-30] * 2], np.float32)
    np.testing.assert_array_equal(device.run("gemm", a, b).numpy(), expected)


def test_zero_times_infinity_is_nan_and_negative_zero_never_appears(device: Device) -> None:
    a = np.array([[0.0, 1.0], [-1.0, 0.0]], np.float32)
    b = np.array([[np.inf, 0.0], [1.0, 0.0]], np.float32)
    result = device.run("gemm", a, b).numpy()
    np.testing.assert_array_equal(result, np.array([[np.nan, 0.0], [-np.inf, 0.0]], np.float32))
    assert not np.signbit(result[:, 1]).any()


def test_gemm_sums_more_than_three_levels(vulkan: VulkanDevice) -> None:
    x, a = random(64 * CHUNK + 70, kind=np.float32), random(64 * CHUNK + 70, 1, kind=np.float32)
    expected = vulkan.run("gemv", x, a).numpy()
    rows = vulkan.run("gemm", np.stack([x, x]), a).numpy()
    assert [row.tobytes() for row in rows] == [expected.tobytes()] * 2


@pytest.mark.parametrize("chunks", [1, 2, 63, 64, 65, 128, 129, 4096, 4097, 8200])
def test_the_levels_of_gemm_are_those_of_the_tree(chunks: int) -> None:
    # The plan is carried out on numbers that stand for the sums of 4096 products.
    kernel = kernels.get("gemm")
    call = resolve_call(kernel, "f64", [(2, chunks * CHUNK - 1), (chunks * CHUNK - 1, 1)])
    parts = random(chunks, kind=np.float64)
    values: dict[str, Any] = {}
    for dispatch in kernel.plan(call).dispatches:
        target = dispatch.buffers[-1]
        new = values[dispatch.buffers[0]] if dispatch.shader == "fold" else parts[int(dispatch.push["begin"]) // CHUNK]
        values[target] = new if dispatch.push["fresh"] else values[target] + new
    assert values["result"] == sum64(parts)


@pytest.mark.parametrize(("groups", "trips"), [(2, 65000), (1, 65000), (3, 1)])
def test_the_split_of_gemm_does_not_change_the_bits(vulkan: VulkanDevice, groups: int, trips: int) -> None:
    a, b = random(130, 70, kind=np.float32), random(70, 200, kind=np.float32)
    expected = vulkan.run("gemm", a, b).numpy()
    split = few("gemm", groups=groups, loop_trips=trips)
    assert vulkan.run(split, a, b).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize(("k", "n"), [(600, 100), (9000, 40), (130, 8200)])
def test_the_split_of_gemv_does_not_change_the_bits(vulkan: VulkanDevice, k: int, n: int) -> None:
    x, a = random(k, kind=np.float32), random(k, n, kind=np.float32)
    expected = vulkan.run("gemv", x, a).numpy()
    split = few("gemv", groups=3, loop_trips=30000)
    assert vulkan.run(split, x, a).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1 << 31), (1, 1 << 20, 2048), (1 << 15, 1 << 12, 1 << 16)])
def test_the_largest_products_stay_within_the_least_limits(m: int, k: int, n: int) -> None:
    limits = Limits()
    calls = [("gemm", [(m, k), (k, n)])] + ([("gemv", [(k,), (k, n)])] if m == 1 else [])
    for name, shapes in calls:
        kernel = kernels.get(name)
        call = resolve_call(kernel, "f32", shapes, limits=limits)
        for dispatch in check_plan(kernel, call, kernel.plan(call)).dispatches:
            assert dispatch.groups[0] <= limits.groups
