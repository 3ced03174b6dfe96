"""What the reductions and the scan promise beyond agreeing with their references on the cases."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashi import kernels
from dashi.errors import InputError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels._reductions import TILE, passes
from dashi.kernels.abi import Call, Kernel, Limits, Plan
from dashi.kernels.portable import canon, prefix64, sum64
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

KINDS = pytest.mark.parametrize("kind", [np.float32, np.float64])
REDUCTIONS = (
    "reduce_sum", "reduce_sumsq", "reduce_max", "reduce_min", "reduce_argmax", "reduce_argmin", "reduce_l2",
    "reduce_statistics", "prefix_scan",
)  # fmt: skip


def few_groups(name: str, groups: int) -> Kernel:
    """The kernel as a device with few workgroups would run it."""
    kernel = kernels.get(name)

    def plan(call: Call) -> Plan:
        return kernel.plan(replace(call, limits=replace(call.limits, groups=groups)))

    return replace(kernel, plan=plan)


@KINDS
def test_argmax_names_the_first_of_equals_and_the_first_nan(device: Device, kind: Any) -> None:
    x = np.zeros(70000, kind)
    x[[4095, 4096, 69999]] = 7
    assert device.run("argmax", x).numpy() == [4095]
    x[[5001, 64000]] = np.nan
    assert device.run("argmax", x).numpy() == [5001]


@KINDS
def test_argmax_takes_zeros_and_what_counts_as_zero_for_equals(device: Device, kind: Any) -> None:
    x = np.array([-1, -0.0, 0.0, np.finfo(kind).smallest_subnormal], kind)
    assert device.run("argmax", x).numpy() == [1]
    assert device.run("max", x).numpy().tobytes() == kind(0).tobytes()


@KINDS
def test_max_of_minus_infinities_is_minus_infinity(device: Device, kind: Any) -> None:
    x = np.full((3, 1400), -np.inf, kind)
    assert device.run("max", x).numpy() == [-np.inf]
    assert device.run("argmax", x).numpy() == [0]


@KINDS
def test_max_is_nan_if_one_element_is(device: Device, kind: Any) -> None:
    x = np.full(5000, np.inf, kind)
    x[4999] = -np.nan
    assert np.isnan(device.run("max", x).numpy()[0])


@KINDS
def test_argmin_names_the_first_of_equals_and_the_first_nan(device: Device, kind: Any) -> None:
    x = np.ones(70000, kind)
    x[[4095, 4096, 69999]] = -7
    assert device.run("argmin", x).numpy() == [4095]
    x[[5001, 64000]] = np.nan
    assert device.run("argmin", x).numpy() == [5001]
    assert np.isnan(device.run("min", x).numpy()[0])


@KINDS
def test_min_of_infinities_is_infinity_and_of_zeros_plus_zero(device: Device, kind: Any) -> None:
    assert device.run("min", np.full(4100, np.inf, kind)).numpy() == [np.inf]
    x = np.array([1, -0.0, 0.0, np.finfo(kind).smallest_subnormal], kind)
    assert device.run("min", x).numpy().tobytes() == kind(0).tobytes()
    assert device.run("argmin", x).numpy() == [1]


@KINDS
@pytest.mark.parametrize("worst", [0.5, np.inf, -np.inf, np.nan])
def test_statistics_are_those_of_the_single_reductions(device: Device, kind: Any, worst: float) -> None:
    x = np.random.default_rng(9).standard_normal(9001).astype(kind)
    x[8999] = worst
    single = [device.run(name, x).numpy() for name in ("min", "max", "sum", "sumsq")]
    assert device.run("statistics", x).numpy().tobytes() == np.concatenate(single).tobytes()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_what_lies_behind_the_end_of_a_list_is_not_seen(vulkan: VulkanDevice, name: str) -> None:
    # Lists are read in vectors of 16 bytes: the last one reaches past an odd length, into what was there before.
    expected = vulkan.run(name, np.full(4097, -1.0, np.float32)).numpy()
    for tuning in kernels.get(name).tunings:
        x = vulkan.array(np.full(4100, np.nan, np.float32))
        del x
        assert vulkan.run(name, np.full(4097, -1.0, np.float32), tuning=tuning).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["max", "argmax", "min", "argmin", "statistics"])
def test_the_extremes_of_nothing_are_refused(device: Device, name: str) -> None:
    with pytest.raises(ShapeError) as caught:
        device.run(name, np.zeros((0, 3), np.float32))
    assert str(caught.value) == (
        "no elements have no largest or smallest among them. Fix: pass an array with at least one element."
    )


@KINDS
def test_nothing_sums_to_zero_and_scans_to_nothing(device: Device, kind: Any) -> None:
    nothing = np.zeros((0, 3), kind)
    assert device.run("sum", nothing).numpy().tobytes() == kind(0).tobytes()
    assert device.run("norm", nothing).numpy().tobytes() == kind(0).tobytes()
    assert device.run("cumsum", nothing).numpy().shape == (0, 3)


def test_a_sum_keeps_small_totals_of_large_parts(device: Device) -> None:
    # The totals of the runs cancel to less than the threshold: only the result is flushed, not what it is made of.
    x = np.zeros(8192, np.float32)
    x[0], x[4096], x[8191] = 2.0**-102 * (1 + 2.0**-23), -(2.0**-102), 2.0**-100
    expected = np.float32(2.0**-125) + np.float32(2.0**-100)
    assert device.run("sum", x).numpy() == [expected]


def test_the_norm_of_a_right_triangle(device: Device) -> None:
    assert device.run("norm", np.array([[3.0], [4.0]])).numpy() == [5.0]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_number_of_workgroups_does_not_change_the_bits(vulkan: VulkanDevice, name: str) -> None:
    x = np.random.default_rng(5).standard_normal(20 * TILE + 77).astype(np.float32)
    expected = vulkan.run(name, x).numpy()
    assert vulkan.run(few_groups(name, 3), x).numpy().tobytes() == expected.tobytes()


def test_sum_and_scan_go_on_past_two_passes(vulkan: VulkanDevice) -> None:
    x = np.random.default_rng(6).standard_normal(TILE * TILE + 2 * TILE + 5).astype(np.float32)
    total = canon(sum64(canon(x))).reshape(1)
    assert vulkan.run("sum", x).numpy().tobytes() == total.tobytes()
    assert vulkan.run("scan", x).numpy().tobytes() == canon(prefix64(canon(x))).tobytes()
    assert vulkan.run("argmax", x).numpy() == [np.argmax(x)]


@given(n=st.integers(0, 1 << 31), groups=st.integers(1, 1 << 20))
def test_passes_cover_every_element_and_end_with_one_value(n: int, groups: int) -> None:
    limits = Limits(groups=groups)
    steps = passes(n, limits)
    assert [p.last for p in steps] == [False] * (len(steps) - 1) + [True]
    assert steps[0].n == n
    for p in steps:
        assert p.n <= p.tiles * TILE < max(1, p.n) + TILE
        assert 1 <= p.groups <= min(groups, p.tiles)
    for before, after in pairwise(steps):
        assert after.n == before.tiles
    assert steps[-1].tiles == 1


@KINDS
@pytest.mark.parametrize("n", [1, 64, 65, 4097])
def test_scans_of_rows_have_the_bits_of_one_row_alone(device: Device, kind: Any, n: int) -> None:
    x = np.random.default_rng(n).standard_normal((3, n)).astype(kind)
    sums = device.run("cumsum_rows", x).numpy()
    alone = [device.run("prefix_scan", row).numpy() for row in x]
    assert sums.tobytes() == np.stack(alone).tobytes()
    without = device.run("cumsum_rows", x, exclusive=1).numpy()
    assert without[:, 1:].tobytes() == sums[:, :-1].tobytes()
    assert not without[:, 0].any()
    assert (device.run("cumprod_rows", x, exclusive=1).numpy()[:, 0] == 1).all()


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
def test_scans_of_integers_wrap_round(device: Device, kind: Any) -> None:
    limits = np.iinfo(kind)
    x = np.random.default_rng(2).integers(limits.min, limits.max, (2, 200), dtype=kind, endpoint=True)
    assert device.run("cumsum_rows", x).numpy().tobytes() == np.cumsum(x, 1, dtype=kind).tobytes()
    assert device.run("cumprod_rows", x).numpy().tobytes() == np.cumprod(x, 1, dtype=kind).tobytes()


@pytest.mark.parametrize("n", [1, 64, 65, 4096, 4097])
def test_scans_of_rows_dispatch_what_their_cost_counts(n: int) -> None:
    kernel = kernels.get("cumsum_rows")
    call = resolve_call(kernel, "f32", [(3, n)], {"exclusive": 0})
    assert kernel.cost(call).dispatches == len(kernel.plan(call).dispatches)


def test_a_scan_knows_two_ways_only(device: Device) -> None:
    with pytest.raises(InputError, match=r"exclusive is 2\. Fix: pass 0, or 1"):
        device.run("cumsum_rows", np.zeros((1, 1), np.float32), exclusive=2)
